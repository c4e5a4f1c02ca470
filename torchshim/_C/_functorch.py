"""What programs ask of transforms in progress, and dimensions moved into others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._core.levels import DUAL, VMAP
from torchshim._core.record import local
from torchshim._functions.func_unwrap import level_of, outside
from torchshim._functions.vmap import (
    _add_batch_dim,  # noqa: F401 (asked for here)
    _remove_batch_dim,  # noqa: F401
    argument_behind,
)
from torchshim._functions.vmap_fallback import fallback
from torchshim._tensor import Tensor


def _checked(function: Callable[[Any], Any], tensor: Any, result: str) -> None:
    """A TypeError, in the words of PyTorch's bindings, for what is no tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{function.__name__}(): incompatible function arguments. The following "
            "argument types are supported:\n    1. (arg0: torch.Tensor) -> "
            f"{result}\n\nInvoked with: {tensor!r}"
        )


def maybe_current_level() -> int | None:
    """How many transforms are in progress, one in another; None where none is."""
    return get_dynamic_layer_stack_depth() or None


def get_dynamic_layer_stack_depth() -> int:
    """How many transforms are in progress, one in another."""
    return sum(level.kind != DUAL for level in local.rec.levels)


def maybe_get_level(tensor: Any) -> int:
    """The depth of the innermost transform that a tensor belongs to; -1 of none."""
    _checked(maybe_get_level, tensor, "int")
    level = level_of(tensor)
    return -1 if level is None else level.depth


def maybe_get_bdim(tensor: Any) -> int:
    """Which dimension the innermost `vmap` maps over; -1 of what is not mapped.

    Of an argument that which was asked for, of what was computed 0.
    """
    _checked(maybe_get_bdim, tensor, "int")
    level = level_of(tensor)
    if level is None or level.kind != VMAP:
        return -1
    return argument_behind(tensor, level)[1]


def is_batchedtensor(tensor: Any) -> bool:
    """Whether the innermost transform that a tensor belongs to is `vmap`."""
    _checked(is_batchedtensor, tensor, "bool")
    level = level_of(tensor)
    return level is not None and level.kind == VMAP


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether the innermost transform that a tensor belongs to differentiates."""
    _checked(is_gradtrackingtensor, tensor, "bool")
    level = level_of(tensor)
    return level is not None and level.kind != VMAP


def is_functorch_wrapped_tensor(tensor: Any) -> bool:
    """Whether a tensor belongs to a transform in progress."""
    _checked(is_functorch_wrapped_tensor, tensor, "bool")
    return level_of(tensor) is not None


def is_functionaltensor(tensor: Any) -> bool:
    """False: no transform here makes tensors functional."""
    _checked(is_functionaltensor, tensor, "bool")
    return False


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """False: `torch._vmap_internals` maps as `torch.vmap` does here."""
    _checked(is_legacy_batchedtensor, tensor, "bool")
    return False


def get_unwrapped(tensor: Any) -> Any:
    """What a tensor stands for outside of its innermost transform.

    RuntimeError for one that belongs to none.
    """
    _checked(get_unwrapped, tensor, "torch.Tensor")
    level = level_of(tensor)
    if level is None:
        raise RuntimeError("No wrappers present!")
    return outside(tensor, level)


def unwrap_if_dead(tensor: Any) -> Any:
    """The tensor: what leaves a transform belongs to it no more."""
    _checked(unwrap_if_dead, tensor, "torch.Tensor")
    return tensor


def _is_vmap_fallback_enabled() -> bool:
    """Whether `vmap` may call an operator for each example (one of tests alone)."""
    return fallback["enabled"]


def _set_vmap_fallback_enabled(enabled: bool) -> None:
    """Sets whether `vmap` may call an operator for each example."""
    fallback["enabled"] = enabled


def _set_vmap_fallback_warning_enabled(enabled: bool) -> None:
    """Sets whether a warning tells of an operator that is called for each example."""
    fallback["told"] = enabled


def reshape_dim_into(src: int, dst: int, x: Any) -> Any:
    """Moves one dimension into another, which becomes so many times as long."""
    src %= x.dim()
    dst %= x.dim() - 1
    moved = x.movedim(src, dst)
    return moved.flatten(dst, dst + 1)


def reshape_dim_outof(src: int, size1: int, x: Any) -> Any:
    """Splits a dimension in two, the first of this size."""
    src %= x.dim()
    size2 = x.shape[src] // size1 if size1 else 1
    return x.reshape(*x.shape[:src], size1, size2, *x.shape[src + 1 :])
