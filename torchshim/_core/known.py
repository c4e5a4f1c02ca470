"""Events that were recorded before, looked up by the keys that the hot path uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.integers import BOUND, punched
from torchshim._core.learning import Learning
from torchshim._core.op import INDEX, INDICES, SCALAR_ROLES, Op
from torchshim._core.state import State
from torchshim._core.storage import TensorBase
from torchshim._core.template import INT_HOLE, PLAIN_HOLE, ScalarHole

_INT = (int,)


class Known(Learning):
    """Finds known events with numbers that became runtime scalars, too."""

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
        """A known event some of whose numbers became runtime scalars; fills these in.

        Floats, which come first among the runtime scalars, are left to the caller.
        """
        op, learnt = key[0], start.learnt
        if learnt is None or op.warns is not None:
            return None
        floats = [i for i, part in enumerate(key) if part is float]
        numbers = _varying_of(op, key)
        if floats and numbers and floats[-1] > numbers[0][0]:
            return None
        holed = tuple(punched(key, [n[:3] for n in numbers]))
        mask = learnt.get(holed)
        if mask is None:
            return None
        if False in mask:
            numbers = [n for n, dynamic in zip(numbers, mask, strict=True) if dynamic]
            holed = tuple(punched(key, [n[:3] for n in numbers]))
        values = [n[3] for n in numbers]
        if values and (max(values) >= BOUND or min(values) <= -BOUND):
            return None
        found = start.next.get(holed)
        if found is not None:
            at = found.scalar + len(floats)
            self.scalars[at : found.n_scalars] = values
        return found


def _varying_of(
    op: Op, key: Sequence[Any]
) -> list[tuple[int, int | None, ScalarHole, Any]]:
    """The static numbers in an event's key that may become runtime scalars.

    Each as in `learning.Varying`, but with the number itself at the end.
    """
    found: list[tuple[int, int | None, ScalarHole, Any]] = []
    for i, (param, part) in enumerate(zip(op.params, key[2:], strict=True), 2):
        if param.role == INDEX and part.__class__ is int:
            found.append((i, None, INT_HOLE, part))
        elif part.__class__ is not tuple:
            if op.varies and op.may_vary(param.name, part):
                found.append((i, None, PLAIN_HOLE, part))
        elif part[:1] == _INT:
            found.append((i, None, INT_HOLE, part[1]))
        elif param.role == INDICES:
            found += [(i, j, INT_HOLE, value) for j, value in enumerate(part)]
    return found
