"""Which of PyTorch's algorithms a convolution would take: all are XLA's here."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

_NAMES = (
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise "
    "MiopenTranspose Mkldnn MkldnnTranspose MkldnnEmpty NnpackSpatial Overrideable "
    "Slow2d Slow3d SlowDilated2d SlowDilated3d SlowTranspose2d SlowTranspose3d "
    "Winograd3x3Depthwise Xnnpack2d Mps MpsTranspose"
).split()
# PyTorch has a number for transposed ones of oneDNN, and no name.
_NUMBERED = [(name, i) for i, name in enumerate(_NAMES) if name != "MkldnnTranspose"]
_ConvBackend = enum.Enum("_ConvBackend", _NUMBERED, module="torch._C")


def _select_conv_backend(
    input: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    bias_sizes: Sequence[int] | None = None,
) -> _ConvBackend:
    """PyTorch's choice on a CPU without oneDNN.

    >>> import torchshim as torch
    >>> x, w = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    >>> torch._C._select_conv_backend(
    ...     x, w, None, [1, 1], [0, 0], [2, 2], False, [0, 0], 1
    ... )
    <_ConvBackend.SlowDilated2d: 15>
    """
    if 0 in input.shape[:2]:
        return _ConvBackend["Empty"]
    # One dimension is taken for two.
    n = max(input.dim() - 2, 2)
    if not input.numel():
        shape = [*input.shape[:2], *(1,) * (4 - input.dim()), *input.shape[2:]]
        raise RuntimeError(
            "Only zero batch or zero channel inputs are supported, but got input "
            f"shape: {shape}"
        )
    dilated = any(d != 1 for d in dilation)
    kind = "Transpose" if transposed else "Dilated" * dilated
    return _ConvBackend[f"Slow{kind}{n}d"]
