"""Names for annotations: `torch.types`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

from torchshim._core.device import device
from torchshim._core.dtypes import dtype
from torchshim._core.layout import layout
from torchshim._core.meta import Size as Size
from torchshim._questions import SymBool, SymFloat, SymInt
from torchshim._tensor import Tensor as Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
IntLikeType: TypeAlias = int | SymInt
FloatLikeType: TypeAlias = float | SymFloat
BoolLikeType: TypeAlias = bool | SymBool
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
PySymType: TypeAlias = SymInt | SymFloat | SymBool
py_sym_types = SymInt, SymFloat, SymBool
# Python's own types, which annotations in `torch.Tensor`'s scope call so.
_int, _float, _bool, _complex = int, float, bool, complex
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int | SymInt]
_device, _dtype, _layout = device, dtype, layout


class Storage:
    """What both kinds of storages have in common, for annotations."""

    _cdata: int
    device: Any
    dtype: Any
