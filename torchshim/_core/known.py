"""Events that were recorded before, looked up as the hot path does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.integers import BOUND, punched
from torchshim._core.learning import Learning
from torchshim._core.op import INDEX, INDICES, SCALAR_ROLES, Op
from torchshim._core.state import State
from torchshim._core.storage import TensorBase

_INT = (int,)


class Known(Learning):
    """Finds known events with integers that are runtime scalars, too."""

    def call_again(self, op: Op, args: Sequence[Any]) -> State:
        """As `call`, of a view operator or the write of a view; looked up first."""
        if self.volatile or self.recording.duals:
            return self.call(op, args)
        parts: list[Any] = [op, self.bits]
        for param, arg in zip(op.params, args, strict=True):
            if isinstance(arg, TensorBase):
                parts.append(self.slot_of(arg))
            elif arg is None or param.role not in SCALAR_ROLES:
                parts.append(arg)
            else:
                parts.append((arg.__class__, arg))
        found = self.state.next.get(key := tuple(parts))
        if found is None:
            found = self._learnt_event(key, self.state)
        if found is None:
            return self.call(op, args)
        self.state = found
        return found

    def _learnt_event(self, key: Any, start: State) -> State | None:
        """A known event with integers that are runtime scalars, which it fills in.

        The others, floats, are left to the caller, who takes them for the first ones.
        """
        op, learnt = key[0], start.learnt
        if learnt is None or op.warns is not None:
            return None
        floats = [i for i, part in enumerate(key) if part is float]
        numbers = _integers_of(op, key)
        if floats and numbers and floats[-1] > numbers[0][0]:
            return None
        mask = learnt.get(tuple(punched(key, [n[:2] for n in numbers])))
        if mask is None:
            return None
        chosen = [n for n, dynamic in zip(numbers, mask, strict=True) if dynamic]
        values = [value for *_, value in chosen]
        if values and (max(values) >= BOUND or min(values) <= -BOUND):
            return None
        found = start.next.get(tuple(punched(key, [n[:2] for n in chosen])))
        if found is not None:
            at = found.scalar + len(floats)
            self.scalars[at : found.n_scalars] = values
        return found


def _integers_of(op: Op, key: Sequence[Any]) -> list[tuple[int, int | None, int]]:
    """The integers in an event's key that may be runtime scalars.

    Each with its place, and its place there if that is a tuple of indices.
    """
    found: list[tuple[int, int | None, int]] = []
    for i, (param, part) in enumerate(zip(op.params, key[2:], strict=True), 2):
        if param.role == INDEX and part.__class__ is int:
            found.append((i, None, part))
        elif part.__class__ is not tuple:
            continue
        elif part[:1] == _INT:
            found.append((i, None, part[1]))
        elif param.role == INDICES:
            found += [(i, j, value) for j, value in enumerate(part)]
    return found
