"""The loop over examples that PyTorch's `vmap` falls back to.

Functions that read values need it, and the one that PyTorch's tests of it call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core.record import local
from torchshim._core.storage import tensor_class
from torchshim._derived import fns, public
from torchshim._errors import warn
from torchshim._functions.vmap import entered, has_level, left

# Whether the loop may be used, and whether its use is told.
fallback = {"enabled": True, "told": True}
_NAME = "aten::_test_functorch_fallback"


def _tell(name: str, tensors: Sequence[Any]) -> None:
    """Warns of the loop where tensors are mapped; RuntimeError where it is not used."""
    sizes = [size for t in tensors for _, size in t._tmeta.batch]
    if not sizes:
        return
    if not fallback["enabled"]:
        raise RuntimeError(f"{name} hit the vmap fallback which is currently disabled")
    if 0 in sizes:
        raise RuntimeError(
            f"Batching rule not implemented for {name}. The fallback path does not "
            "support vmap over dims of size 0."
        )
    if fallback["told"]:
        warn(
            "There is a performance drop because we have not yet implemented the "
            f"batching rule for {name}. Please file us an issue on GitHub so that we "
            "can prioritize its implementation."
        )


def example_by_example(
    name: str, function: Callable[..., Any], tensors: Sequence[Any]
) -> Any:
    """What a function of tensors that reads their values gives within `vmap`."""
    _tell(f"aten::{name}", [t for t in tensors if t is not None])
    return _each(function, tensors)


def _each(function: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    numbers = [number for t in tensors if t is not None for number, _ in t._tmeta.batch]
    if not numbers:
        return function(*tensors)
    level = next(each for each in local.rec.levels if each.number == max(numbers))
    columns = [
        left(t, 0, level).unbind()
        if t is not None and has_level(t, level)
        else [t] * level.size
        for t in tensors
    ]
    results = [_each(function, row) for row in zip(*columns, strict=True)]
    return entered(fns.stack(results), 0, level)


@public(namespaces=("torch",))
def _test_functorch_fallback(input: Any, other: Any) -> Any:
    """A copy of `input`; under `vmap` one example after the other.

    It has no gradient.
    """
    tensors = [t for t in (input, other) if isinstance(t, tensor_class[0])]
    _tell(_NAME, tensors)
    result = fns.clone(input)
    if result.requires_grad:
        raise NotImplementedError(f"derivative for {_NAME} is not implemented")
    missing = [t for t in tensors[1:] if set(t._tmeta.batch) - set(input._tmeta.batch)]
    return fns._vmap_as(result, missing[0]) if missing else result
