"""Reductions and normalizations of the elements that a mask chooses.

Elements where the mask is False are as if they were not there; what has none left gets
the operation's identity. A `MaskedTensor` has its mask with it.
https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

from torchshim.masked import _ops as _ops
from torchshim.masked._masks import _canonical_dim as _canonical_dim
from torchshim.masked._masks import (
    _combine_input_and_mask as _combine_input_and_mask,
)
from torchshim.masked._masks import _input_mask as _input_mask
from torchshim.masked._masks import _output_mask as _output_mask
from torchshim.masked._masks import _reduction_identity as _reduction_identity
from torchshim.masked._masks import _where as _where
from torchshim.masked._ops import (
    amax,
    amin,
    argmax,
    argmin,
    cumprod,
    cumsum,
    log_softmax,
    logaddexp,
    logsumexp,
    mean,
    median,
    norm,
    normalize,
    prod,
    softmax,
    softmin,
    std,
    sum,
    var,
)
from torchshim.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from torchshim.masked.maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]
