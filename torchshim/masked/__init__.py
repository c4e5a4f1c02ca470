"""Reductions and normalizations of the elements that a mask chooses.

Elements where the mask is False are as if they were not there; what has none left gets
the operation's identity. `masked_tensor` and its class are not supported.
https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

from typing import Any, NoReturn

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


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "torch.masked.masked_tensor is not supported: keep data and mask apart, and "
        "pass mask= to the functions of torch.masked"
    )


class MaskedTensor:
    """Not supported: NotImplementedError."""

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _refuse()


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> NoReturn:
    """Not supported: NotImplementedError."""
    _refuse()


def as_masked_tensor(data: Any, mask: Any) -> NoReturn:
    """Not supported: NotImplementedError."""
    _refuse()


def is_masked_tensor(obj: Any, /) -> bool:
    """Always False, as there are no masked tensors."""
    return isinstance(obj, MaskedTensor)
