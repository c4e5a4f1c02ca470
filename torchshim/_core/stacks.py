"""Values in a row: what the iterations of a loop made stays one array, a *stack*.

Operators that join tensors, or take one apart, compute on the stack (`Op.on_stack`): a
thousand slices of it would each be a kernel to XLA.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.call import Call, VjpCall
from torchshim._core.op import ARRAYS
from torchshim._core.state import State

# Fewer values in a row are joined and taken apart as they are.
LEAST = 8


@dataclass(slots=True)
class StackItem:
    """The n-th of the values in a stack."""

    stack: Any
    n: int


class Values(dict[int, Any]):
    """Slot -> value; what is in a stack is taken out of it when it is used."""

    def __getitem__(self, slot: int) -> Any:
        value = super().__getitem__(slot)
        return value.stack[value.n] if isinstance(value, StackItem) else value


def in_stack(env: Values, slots: Sequence[int]) -> Any:
    """The values of slots as one array, if that is part of a stack already; or None."""
    found = [env.get(slot) for slot in slots]
    values = [value for value in found if isinstance(value, StackItem)]
    if len(values) < max(len(found), 2):
        return None
    first, second = values[:2]
    step = second.n - first.n
    if abs(step) != 1 or any(
        value.stack is not first.stack or value.n != first.n + step * k
        for k, value in enumerate(values)
    ):
        return None
    low, high = sorted((first.n, values[-1].n))
    part = first.stack[low : high + 1]
    return part if step > 0 else part[::-1]


def stacked(env: Values, slots: Sequence[int]) -> Any:
    """The values of slots as one array."""
    part = in_stack(env, slots)
    return jnp.stack([env[slot] for slot in slots]) if part is None else part


def on_stack(
    event: State, call: Any, env: Values, slots: Sequence[int]
) -> Sequence[Any] | None:
    """The results of an operator that joins or takes apart, or of its gradient.

    None where they are to be computed one by one.
    """
    if call.__class__ is VjpCall:
        return _gradient_on_stack(call, env, slots)
    if call.__class__ is not Call or call.op.on_stack is None:
        return None
    function, given, metas = _function(call), event.given, event.metas
    if _joins(call):
        kinds = {(tuple(m.shape), m.dtype) for m in given}
        if len(given) < LEAST or len(kinds) > 1 or metas[0].dtype != given[0].dtype:
            return None
        part = in_stack(env, slots)
        return None if part is None else [function(part)]
    if len(metas) < LEAST or len({tuple(m.shape) for m in metas}) > 1:
        return None
    return _items(function(env[slots[0]]), range(len(metas)))


def _gradient_on_stack(
    call: VjpCall, env: Values, slots: Sequence[int]
) -> Sequence[Any] | None:
    inner = call.inner
    if inner.__class__ is not Call or inner.op.on_stack is None:
        return None
    shape, dtype = call.absent[0]
    array: Any = None
    if not _joins(inner):
        if len(call.cts) >= LEAST and all(call.cts):
            array = in_stack(env, slots)
    elif len(call.absent) >= LEAST and len(set(call.absent)) == 1:
        shape = (len(call.absent), *shape)
        array = env[slots[0]]
    if array is None or array.dtype != dtype.np:
        return None
    like = jax.ShapeDtypeStruct(shape, dtype.np)
    [found] = jax.linear_transpose(_function(inner), like)(array)
    return _items(found, call.wrt) if _joins(inner) else [found]


def _joins(call: Call) -> bool:
    return call.op.params[0].role == ARRAYS


def _function(call: Call) -> Callable[[Any], Any]:
    return lambda array: call.op.on_stack(array, *call.template[1:])


def _items(stack: Any, numbers: Iterable[int]) -> list[StackItem]:
    return [StackItem(stack, n) for n in numbers]
