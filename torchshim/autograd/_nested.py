"""Helpers of old custom functions: nested structures of tensors, dicts of hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from torchshim._functions.query import typename
from torchshim._hooks import RemovableHandle
from torchshim._tensor import Tensor


def _unknown(obj: Any, condition_msg: str | None) -> ValueError:
    more = f". Accepted types: {condition_msg}, or lists/tuples of them"
    return ValueError(
        "Auto nesting doesn't know how to process an input object of type "
        f"{typename(obj)}{more if condition_msg else ''}"
    )


def _nested_map(
    condition: Callable[[Any], bool],
    fn: Callable[[Any], Any],
    condition_msg: str | None = None,
) -> Callable[[Any], Any]:
    """A function that applies another one to what meets a condition, however nested."""

    def _map(obj: Any) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            mapped = (_map(x) for x in obj)
            if hasattr(obj, "_fields"):
                return type(obj)(*mapped)
            return type(obj)(mapped)
        if isinstance(obj, dict):
            return {x: _map(obj[x]) for x in obj}
        raise _unknown(obj, condition_msg)

    return _map


def _jit_unwrap_structured(obj: Any) -> Any:
    return obj._jit_unwrap() if hasattr(obj, "_jit_unwrap") else obj


def _iter_filter(
    condition: Callable[[Any], bool],
    allow_unknown: bool = False,
    condition_msg: str | None = None,
    conversion: Callable[[Any], Any] | None = None,
) -> Callable[[Any], Iterator[Any]]:
    """A function that gives what meets a condition, however nested."""

    def _iter(obj: Any) -> Iterator[Any]:
        if conversion is not None:
            obj = conversion(obj)
        if condition(obj):
            yield obj
        elif obj is None:
            return
        elif isinstance(obj, (list, tuple, dict)):
            for each in obj.values() if isinstance(obj, dict) else obj:
                yield from _iter(each)
        elif allow_unknown:
            yield obj
        else:
            raise _unknown(obj, condition_msg)

    return _iter


def _unflatten(input: Any, proto: Any) -> Any:
    """A flat sequence, nested as `proto` is."""
    return _taken(input, proto)[0]


def _taken(input: Any, proto: Any) -> Any:
    if hasattr(proto, "_jit_wrap"):
        return proto._jit_wrap(input)
    if not isinstance(proto, (list, tuple)):
        return input[0], input[1:]
    made = []
    for each in proto:
        if each is not None:
            each, input = _taken(input, each)
        made.append(each)
    return type(proto)(made), input


def _is_tensor(x: Any) -> bool:
    return isinstance(x, Tensor)


_iter_tensors = _iter_filter(_is_tensor, False, "Tensors", _jit_unwrap_structured)
_iter_tensors_permissive = _iter_filter(_is_tensor, True, "Tensors (permissive)")
_iter_None_tensors = _iter_filter(
    lambda x: x is None or isinstance(x, Tensor), condition_msg="Tensors or None"
)
_map_tensor_data = _nested_map(_is_tensor, lambda x: x.data, "Tensors")


class _HookMixin:
    """Hooks kept in a dict that is made for the first one."""

    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Any) -> tuple[Any, Any]:
        if backward_hooks is None:
            backward_hooks = OrderedDict()
        handle = RemovableHandle(backward_hooks)
        backward_hooks[handle.id] = hook
        return backward_hooks, handle
