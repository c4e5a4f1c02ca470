"""Names for kinds of arguments, and questions about tensors and dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchshim as torch
from torchshim._core.layout import channels_last, channels_last_3d, contiguous_format
from torchshim._errors import unsupported
from torchshim._lazy import submodules as _submodules

Tensor = TensorLike = TensorLikeType = torch.Tensor
ShapeType = torch.Size | list[int] | tuple[int, ...]
StrideType = DimsSequenceType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
Dim = IntWithoutSymInt = int
FloatWithoutSymFloat = float
NumberType = bool | int | float | complex
NumberTypeType = type[bool] | type[int] | type[float] | type[complex]
RealNumberType = bool | int | float
TensorSequenceType = list[torch.Tensor] | tuple[torch.Tensor, ...]
TensorOrNumberLikeType = torch.Tensor | bool | int | float | complex
CUDARngStateHelper = unsupported(
    "_prims_common.CUDARngStateHelper", "generators have no state on CUDA's devices"
)
DeviceLikeType = str | torch.device | int

_COMPLEX = {
    torch.bfloat16: torch.complex64,
    torch.float16: torch.complex32,
    torch.float32: torch.complex64,
    torch.float64: torch.complex128,
}
_REAL = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
_INTEGRAL = frozenset(
    (
        *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
        *(torch.int8, torch.int16, torch.int32, torch.int64),
    )
)


def suggest_memory_format(x: Any) -> Any:
    """The format in which a tensor's strides are ordered."""
    for dims, found in ((4, channels_last), (5, channels_last_3d)):
        ordered = x.dim() == dims and x.is_contiguous(memory_format=found)
        if ordered and not x.is_contiguous():
            return found
    return contiguous_format


def corresponding_complex_dtype(dtype: torch.dtype) -> torch.dtype:
    """The complex dtype whose parts are of a floating one."""
    return _COMPLEX[dtype]


def corresponding_real_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of a complex dtype's parts."""
    return _REAL[dtype]


def is_boolean_dtype(dtype: torch.dtype) -> bool:
    """Whether it is `torch.bool`."""
    return dtype is torch.bool


def is_integer_dtype(dtype: torch.dtype) -> bool:
    """Whether it is a dtype of whole numbers."""
    return dtype in _INTEGRAL


def is_float_dtype(dtype: torch.dtype) -> bool:
    """Whether it is a real floating dtype."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: torch.dtype) -> bool:
    """Whether it is a complex dtype."""
    return dtype in _REAL


def dtype_to_type(dtype: torch.dtype) -> type:
    """Python's type for the numbers of a dtype."""
    if dtype is torch.bool:
        return bool
    if dtype in _INTEGRAL:
        return int
    if dtype.is_floating_point:
        return float
    if dtype in _REAL:
        return complex
    raise ValueError("Invalid dtype!")


def make_contiguous_strides_for(
    shape: Iterable[int], row_major: bool = True
) -> tuple[int, ...]:
    """The strides of a contiguous tensor; the last two dimensions may be swapped."""
    strides: list[int] = []
    step = 1
    sizes = tuple(shape)
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    found = tuple(reversed(strides))
    if row_major or len(found) < 2:
        return found
    return (*found[:-2], 1, max(sizes[-2], 1))


__getattr__ = _submodules(__name__, "wrappers")
