"""Events that were recorded before, looked up by the keys that the hot path uses."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from torchshim._core.integers import BOUND
from torchshim._core.learning import Learning
from torchshim._core.op import INDEX, INDICES, SCALAR_ROLES, Op
from torchshim._core.state import State
from torchshim._core.storage import TensorBase
from torchshim._core.template import INT_HOLE, PLAIN_HOLE

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
        holed, values, filled = list(key), [], []
        for i, name, role in _numbered(op):
            part = key[i]
            kind = part.__class__
            if role == INDICES:
                if kind is not tuple or not part:
                    continue
                holed[i] = (INT_HOLE,) * len(part)
                values += part
            elif kind is tuple:
                if part[:1] != _INT:
                    continue
                holed[i] = INT_HOLE
                values.append(part[1])
            elif role == INDEX and kind is int:
                holed[i] = INT_HOLE
                values.append(part)
            elif name in op.varies and op.may_vary(name, part):
                holed[i] = PLAIN_HOLE
                values.append(part)
            else:
                continue
            filled.append(i)
        floats = [i for i, part in enumerate(key) if part is float]
        if floats and filled and floats[-1] > filled[0]:
            return None
        mask = learnt.get(tuple(holed))
        if mask is None:
            return None
        if False in mask:  # some stayed as they are
            left = iter(mask)
            for i in filled:
                if holed[i].__class__ is tuple:
                    pairs = zip(holed[i], key[i], strict=True)
                    holed[i] = tuple([hole if next(left) else n for hole, n in pairs])
                elif not next(left):
                    holed[i] = key[i]
            values = [n for n, dynamic in zip(values, mask, strict=True) if dynamic]
        if values and (max(values) >= BOUND or min(values) <= -BOUND):
            return None
        found = start.next.get(tuple(holed))
        if found is not None:
            at = found.scalar + len(floats)
            self.scalars[at : found.n_scalars] = values
        return found


@functools.lru_cache(8192)
def _numbered(op: Op) -> tuple[tuple[int, str, str], ...]:
    """The parameters that may be numbers: place in a key, name, role."""
    roles = (INDEX, INDICES, *SCALAR_ROLES)
    return tuple(
        (i, param.name, param.role)
        for i, param in enumerate(op.params, 2)
        if param.role in roles or param.name in op.varies
    )
