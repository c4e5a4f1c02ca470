"""What wrappers of modules have in common: arguments, containers, names."""

from __future__ import annotations

import dataclasses
import traceback
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import nn
from torchshim._tensor import Tensor
from torchshim.nn.parallel.scatter_gather import _is_namedtuple
from torchshim.nn.utils.rnn import PackedSequence


def _pack_kwargs(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """All arguments in a row, and the names of the last of them."""
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(
    flat_args: tuple[Any, ...], kwarg_keys: tuple[str, ...]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inverse of `_pack_kwargs`."""
    count = len(flat_args) - len(kwarg_keys)
    if count < 0:
        raise AssertionError(f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    return flat_args[:count], dict(zip(kwarg_keys, flat_args[count:], strict=True))


def _cast_forward_inputs(dtype: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The arguments with their tensors of floating point in another dtype."""
    if dtype is None:
        return args, kwargs

    def cast(x: Tensor) -> Tensor:
        return x.to(dtype) if x.is_floating_point() else x

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _apply_to_tensors(fn: Callable[[Tensor], Any], container: Any) -> Any:
    """A container like the given one, with what `fn` makes of its tensors."""

    def apply(x: Any) -> Any:
        if isinstance(x, Tensor):
            return fn(x)
        if hasattr(x, "__dataclass_fields__"):
            names = [f.name for f in dataclasses.fields(x)]
            changes = {name: apply(getattr(x, name)) for name in names}
            return dataclasses.replace(x, **changes)
        if isinstance(x, PackedSequence):
            apply(x.data)
            return x
        if isinstance(x, dict):
            made = ((key, apply(value)) for key, value in x.items())
            return type(x)(made) if isinstance(x, OrderedDict) else dict(made)
        if _is_namedtuple(x):
            return type(x)(*map(apply, x))
        if isinstance(x, (list, tuple, set)):
            return type(x)(map(apply, x))
        return x

    return apply(container)


def _recursive_to(inputs: Any, target_device: Any, use_side_stream: bool) -> list[Any]:
    """The inputs on a device, as a list of one."""
    target = torchshim.device(target_device)

    def move(x: Any) -> Any:
        if isinstance(x, (Tensor, PackedSequence)):
            return x.to(target)
        if _is_namedtuple(x):
            return type(x)(*map(move, x))
        if isinstance(x, (list, tuple)):
            return type(x)(map(move, x))
        if isinstance(x, dict):
            return type(x)((key, move(value)) for key, value in x.items())
        return x

    return [move(inputs)]


def _to_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_device: Any,
    use_side_stream: bool,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """The arguments of a call on a device, each as a tuple of one."""
    moved = _recursive_to(inputs, target_device, use_side_stream) if inputs else []
    named = _recursive_to(kwargs, target_device, use_side_stream) if kwargs else []
    if not inputs and kwargs:
        moved = [()]
    elif inputs and not kwargs:
        named = [{}]
    return tuple(moved), tuple(named)


def _p_assert(cond: Any, s: str, raise_assertion_error: bool = True) -> None:
    """An assertion that is also printed, as hooks may lose the error."""
    if not cond:
        print(s)
        traceback.print_stack()
        if raise_assertion_error:
            raise AssertionError(s)


def _replace_by_prefix(
    state_dict: dict[str, Any], old_prefix: str, new_prefix: str
) -> None:
    """Gives the keys that begin with a prefix another one, in place."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in [key for key in state_dict if key.startswith(old_prefix)]:
        state_dict[new_prefix + key.removeprefix(old_prefix)] = state_dict.pop(key)


def _get_root_modules(modules: list[nn.Module]) -> list[nn.Module]:
    """Those modules that are in none of the others."""
    return [
        module
        for module in modules
        if not any(
            other is not module and module in set(other.modules()) for other in modules
        )
    ]
