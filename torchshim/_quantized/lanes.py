"""Element-wise functions as PyTorch's vectorized loops round them.

Such a loop takes 64 elements at a time, in the order of memory, and the rest one by
one. What it has at once is scaled by a fused multiplication and addition, and rounded
before the zero point is added; a single element is rounded after.
https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/cpu/vec/vec256/vec256_qint.h
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import torchshim
from torchshim._core import dtypes
from torchshim._core.record import untracked
from torchshim._quantized.tensor import (
    CODES,
    PerTensor,
    quantized,
)

_AT_ONCE, _OF_ROW = 64, 32


def _head(like: Any, row: int) -> Any:
    """Which elements are computed many at once, within rows of memory; None if none."""
    number = like.numel()
    length = row or number
    whole = length - length % (_OF_ROW if row else _AT_ONCE)
    if not whole:
        return None
    places = torchshim.arange(number, device=like.device)
    return (places % length).as_strided(like.shape, like.stride()) < whole


def _alone(tensor: Any) -> Any:
    """What the codes stand for, each rounded before it is added to another."""
    scale, zero = tensor._scheme
    return ((tensor._v.double() - zero) * float(np.float32(scale))).float()


def _fused(tensor: Any) -> Any:
    """What the codes stand for, scaled by a fused multiplication and addition."""
    scale, zero = tensor._scheme
    scale = np.float32(scale)
    shift = float(np.float32(scale * np.float32(-zero)))
    return (tensor._v.double() * float(scale) + shift).float()


def _rounded(numbers: Any, scheme: PerTensor, dtype: Any, first: bool) -> Any:
    """The codes of numbers that are rounded before the zero point is added, or after.

    float64 in between keeps the compiler from fusing the two, as it does in `_alone`.
    """
    kind, least, most = CODES[dtype]
    steps = numbers * float(np.float32(1) / np.float32(scheme.scale))
    if first:
        codes = steps.round().double() + scheme.zero_point
    else:
        codes = (steps.double() + scheme.zero_point).float().round()
        codes = codes.double() if kind is dtypes.int32 else codes
    return codes.clamp(least, most).nan_to_num(nan=most).to(kind)


def by_lanes(
    function: Callable[..., Any],
    operands: Any,
    scheme: PerTensor,
    singly: bool = False,
    row: int = 0,
) -> Any:
    """A function of quantized tensors of one size and order, by the result's scheme.

    `singly`: PyTorch's loop takes one element after the other. `row`: it takes 32 at
    once, in rows of this length.
    """
    first = operands[0]
    with untracked():
        made = function(*map(_alone, operands))
        codes = _rounded(made, scheme, first.dtype, False)
        head = None if singly else _head(first._v, row)
        if head is not None:
            made = function(*map(_fused, operands))
            codes = _rounded(made, scheme, first.dtype, True).where(head, codes)
        return quantized(codes, scheme)
