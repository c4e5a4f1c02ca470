"""What programs import of PyTorch's own helpers."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._derived import fns
from torchshim._device_index import _get_all_device_indices as _get_all_device_indices
from torchshim._device_index import (
    _get_available_device_type as _get_available_device_type,
)
from torchshim._device_index import (
    _get_current_device_index as _get_current_device_index,
)
from torchshim._device_index import _get_device_attr as _get_device_attr
from torchshim._device_index import _get_device_index as _get_device_index
from torchshim._device_index import _get_device_module as _get_device_module
from torchshim._device_index import _get_devices_properties as _get_devices_properties
from torchshim._device_index import get_current_device_index as get_current_device_index
from torchshim._functions._arguments import warn
from torchshim._functions.memory import get_tensor_metadata, set_tensor_metadata
from torchshim._functions.rebuilding import (
    _rebuild_meta_tensor_no_storage,
    _rebuild_tensor,
    _rebuild_tensor_v2,
)
from torchshim._functions.rebuilding import _rebuild_tensor_v3 as _rebuild_tensor_v3
from torchshim._printing import printoptions
from torchshim.nn.parameter import (
    UninitializedParameter,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
)
from torchshim.overrides import resolve_name
from torchshim.serialization._names import REBUILD as _REBUILD
from torchshim.utils.data._utils.worker import ExceptionWrapper as _Carried
from torchshim.utils.data._utils.worker import KeyErrorMessage

__all__ = [
    "ExceptionWrapper",
    "KeyErrorMessage",
    "_flatten_dense_tensors",
    "_import_dotted_name",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_reorder_tensors_as",
    "_take_tensors",
    "_unflatten_dense_tensors",
    "classproperty",
    "get_tensor_metadata",
    "set_tensor_metadata",
    "try_import",
]


# What pickles of PyTorch name here, rarer kinds of tensors included.
globals().update(_REBUILD)


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


class classproperty:
    """An attribute of a class that is computed."""

    def __init__(self, func: Any) -> None:
        own = isinstance(func, (classmethod, staticmethod))
        self.fget = func if own else classmethod(func)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        owner = type(instance) if owner is None else owner
        return self.fget.__get__(instance, owner)()


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


def _flatten_sparse_tensors(tensors: Any) -> tuple[Any, Any]:
    """The places of several sparse tensors one after the other, and their values."""
    tensors = list(tensors)
    places = _flatten_dense_tensors([t._indices() for t in tensors])
    return places, _flatten_dense_tensors([t._values() for t in tensors])


def _handle_complex(tensor: Any) -> Any:
    """A complex tensor as a real one of pairs; others as they are."""
    if isinstance(tensor, UninitializedParameter) or not tensor.is_complex():
        return tensor
    return fns.view_as_real(tensor)


def _get_async_or_non_blocking(
    function_name: str, non_blocking: bool, kwargs: dict[str, Any]
) -> Any:
    """`non_blocking`, which had another name once."""
    if not kwargs:
        return non_blocking
    if len(kwargs) != 1 or "async" not in kwargs:
        argument = list(kwargs)[-1]
        raise TypeError(
            f"{function_name}() got an unexpected keyword argument '{argument}'"
        )
    warn("'async' is deprecated; use 'non_blocking'")
    return kwargs["async"]


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Groups of tensors of one type with up to so many bytes, or one of more."""
    groups: dict[str, list[Any]] = {}
    sizes: dict[str, int] = {}
    for tensor in tensors:
        kind = tensor.type()
        parts = (tensor._indices(), tensor._values()) if tensor.is_sparse else (tensor,)
        size = sum(part.numel() * part.element_size() for part in parts)
        if sizes.get(kind, 0) and sizes[kind] + size > size_limit:
            yield groups[kind]
            groups[kind], sizes[kind] = [], 0
        groups.setdefault(kind, []).append(tensor)
        sizes[kind] = sizes.get(kind, 0) + size
    yield from filter(None, groups.values())


def _reorder_tensors_as(tensors: Any, ordered_tensors: Iterable[Any]) -> Any:
    """Tensors grouped by type, in the order in which the types come in others."""
    groups: dict[str, list[Any]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.type(), []).append(tensor)
    rest = {kind: iter(group) for kind, group in groups.items()}
    return tuple(next(rest[tensor.type()]) for tensor in ordered_tensors)


def try_import(module_name: str) -> Any:
    """A module, or None where there is none of that name."""
    if module_name in sys.modules:
        return sys.modules[module_name]
    if importlib.util.find_spec(module_name) is None:
        return None
    return importlib.import_module(module_name)


def render_call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    """A call of a function as text, tensors by their sizes."""
    with printoptions(threshold=0, edgeitems=0):
        texts = [repr(a) for a in args]
        texts += [f"{key}={value!r}" for key, value in kwargs.items()]
    return f"{resolve_name(fn) or fn}({', '.join(texts)})"


def _running_with_deploy() -> bool:
    """Whether `torch::deploy` runs the interpreter: it never does."""
    return False
