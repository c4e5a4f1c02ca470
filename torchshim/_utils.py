"""What programs import of PyTorch's own helpers."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from torchshim._core import dtypes
from torchshim._derived import fns
from torchshim._functions.rebuilding import _rebuild_tensor, _rebuild_tensor_v2
from torchshim.nn.parameter import _rebuild_parameter
from torchshim.utils.data._utils.worker import ExceptionWrapper as _Carried
from torchshim.utils.data._utils.worker import KeyErrorMessage

__all__ = [
    "ExceptionWrapper",
    "KeyErrorMessage",
    "_flatten_dense_tensors",
    "_import_dotted_name",
    "_rebuild_parameter",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_unflatten_dense_tensors",
]


class ExceptionWrapper(_Carried):
    """An exception on its way to another thread or process."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        error = sys.exc_info()[1] if exc_info is None else exc_info[1]
        if error is None:
            raise ValueError("there is no exception to wrap")
        super().__init__(error, where)


def _element_size(dtype: Any) -> int:
    """Bytes of one element."""
    if not isinstance(dtype, dtypes.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _import_dotted_name(name: str) -> Any:
    """The object of this name: the first part is a module, the others attributes."""
    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found


def _flatten_dense_tensors(tensors: Any) -> Any:
    """The elements of several tensors, one after the other."""
    return fns.cat([fns.view(t.contiguous(), (-1,)) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Pieces of a vector, of the shapes that `tensors` have."""
    pieces = flat.split([t.numel() for t in tensors])
    return tuple(p.view(t.shape) for p, t in zip(pieces, tensors, strict=True))
