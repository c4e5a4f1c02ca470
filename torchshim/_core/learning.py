"""An operator's call becomes an event; numbers that vary become runtime scalars.

An integer is compiled into the program at first. Once a second value of it is met at
the same place of the trie, or on the same line of the script, it is passed to the
program instead. The same holds for floats that an operator names in `varies`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._core.call import Call, intern_call, known_call
from torchshim._core.callers import caller
from torchshim._core.integers import BOUND, punched
from torchshim._core.meta import Meta
from torchshim._core.op import (
    ARRAY,
    ARRAYS,
    INDEX,
    INDICES,
    OPT_ARRAY,
    OPT_ARRAYS,
    STATIC,
    Op,
)
from torchshim._core.state import IDENTITY, INPUT, State
from torchshim._core.storage import TensorBase
from torchshim._core.template import (
    FLOAT_HOLE,
    HOLE,
    INT_HOLE,
    PLAIN_HOLE,
    Number,
    ScalarHole,
)
from torchshim._core.trie import Met, Trie

# Lines kept whose numbers were seen to vary.
VARIED_BOUND = 4_096
# A static number among the arguments that may vary: which part of the key it is, which
# item of that part if that is a tuple, the hole that takes its place in the template,
# and its index among the event's numbers.
Varying = tuple[int, int | None, ScalarHole, int]
# For each of these, whether it is a runtime scalar.
Mask = tuple[bool, ...]


class Learning(Trie):
    """Records operators, and learns which of their numbers vary."""

    # Line and operator -> which numbers there were seen to vary.
    varied: dict[Any, Mask]
    # Line and operator -> (number of flushes when it was last recorded, its numbers
    # then; none if several calls on the line had different ones).
    last: dict[Any, tuple[int, tuple[Any, ...]]]

    def call(self, op: Op, args: Sequence[Any]) -> State:
        """Records an operator, however it was called. Raises as PyTorch does."""
        parts: list[Any] = []
        template: list[Any] = []
        operands: list[tuple[int, Meta]] = []
        values: list[Any] = []
        numbers: list[Varying] = []

        def scalar(value: Any, inner: int | None) -> Any:
            """The part of the key, and the entry of the template, for a number."""
            kind = value.__class__
            if kind is float:
                values.append(value)
                return float, FLOAT_HOLE
            if kind is int and -BOUND < value < BOUND:
                numbers.append((len(parts), inner, INT_HOLE, len(values)))
                values.append(value)
                return (int, value), Number(value)
            return (kind, value), Number(value)

        for param, arg in zip(op.params, args, strict=True):
            role = param.role
            # Complex numbers are refused where real ones that equal them are not.
            if arg is None or (role == STATIC and arg.__class__ is not complex):
                if op.varies and arg is not None and op.may_vary(param.name, arg):
                    numbers.append((len(parts), None, PLAIN_HOLE, len(values)))
                    values.append(arg)
                parts.append(arg)
                template.append(arg)
            elif isinstance(arg, TensorBase):
                slot = self.slot_of(arg)
                parts.append(slot)
                template.append(HOLE)
                operands.append((slot, arg._tmeta))
            elif role in (ARRAYS, OPT_ARRAYS):
                slots = []
                for item in arg:
                    if item is None:
                        slots.append(None)
                    else:
                        slots.append(self.slot_of(item))
                        operands.append((slots[-1], item._tmeta))
                parts.append(tuple(slots))
                template.append(tuple(None if s is None else HOLE for s in slots))
            elif role in (ARRAY, OPT_ARRAY):
                raise TypeError(f"{op.public}(): {param.name} must be a Tensor")
            elif role == INDICES:
                inner = [scalar(v, i)[1] for i, v in enumerate(arg)]
                parts.append(tuple(arg))
                template.append(tuple(inner))
            elif arg.__class__ is float and arg in op.own_floats.get(param.name, ()):
                parts.append((float, arg))
                template.append(Number(arg))
            elif isinstance(arg, (bool, int, float, complex)):
                part, entry = scalar(arg, None)
                # An index is keyed as plainly as the hot path keys it.
                parts.append(arg if role == INDEX else part)
                template.append(entry)
            else:
                parts.append(arg)
                template.append(arg)
        key = (op, self.bits, *parts)
        if self.volatile:
            self.forget_volatile()
        if not numbers:
            found = self._step(key, op, template, operands, values, None)
        else:
            found = self._step_learning(key, op, template, operands, values, numbers)
        if self.forward and self.recording.duals:
            self.push_forward(found, operands)
        return found

    def _step(
        self,
        key: tuple[Any, ...],
        op: Op,
        template: Sequence[Any],
        operands: Sequence[tuple[int, Meta]],
        values: Sequence[Any],
        met: Met | None,
    ) -> State:
        if op.warns is not None or op.fits:
            key = self.noticed(key, op, template, operands, values)
        found = self.state.next.get(key)
        if found is None:
            default = dtypes.get_default_dtype()
            template = tuple(template)
            fields = op, template, default
            call = known_call(fields) or Call(op, template, default, op.writes)
            found = self.extend(key, call, operands, len(values), met)
            # Not before: an equal call may be right where this one is refused, as 2.0
            # equals 2.
            intern_call(fields, lambda: call)
        self.advance(found, values)
        return found

    def _step_learning(
        self,
        key: tuple[Any, ...],
        op: Op,
        template: list[Any],
        operands: Sequence[tuple[int, Meta]],
        values: list[Any],
        numbers: list[Varying],
    ) -> State:
        """Records an event with numbers that may turn out to be runtime scalars.

        A second value at the same place makes the number a runtime scalar from then
        on, if the operator's shapes do not depend on it.
        """
        state = self.state
        may_vary = {at for *_, at in numbers}
        floats = [v for i, v in enumerate(values) if i not in may_vary]
        if key in state.next:
            found = state.next[key]
            self.advance(found, floats)
            return found
        given = tuple(values[at] for *_, at in numbers)
        place = self._blank(key, numbers, (True,) * len(numbers))
        if op.static_for is not None and op.static_for([meta for _, meta in operands]):
            return self._step(key, op, template, operands, floats, (place, given))
        before, mask = self._met(place)
        mask = self._mask_of(op, operands, numbers, given, before, mask)
        if mask is not None:
            chosen = [n for n, dynamic in zip(numbers, mask, strict=True) if dynamic]
            static = may_vary.difference(at for *_, at in chosen)
            try:
                found = self._step(
                    self._blank(key, numbers, mask),
                    op,
                    punched(template, [n[:3] for n in chosen]),
                    operands,
                    [v for i, v in enumerate(values) if i not in static],
                    (place, given),
                )
            except Exception:
                # The operator needs this number to be static.
                pass
            else:
                if state.learnt is None:
                    state.learnt = {}
                state.learnt[place] = mask
                if before is not None:
                    self._note_varied(op, numbers, mask)
                return found
        return self._step(key, op, template, operands, floats, (place, given))

    def _met(self, place: Any) -> tuple[tuple[Any, ...] | None, Mask | None]:
        """The numbers that were met at a place, and which of them were learnt.

        `place`: a key without its numbers. Looked for here or, where nothing was met
        yet, in the recording that this one runs parallel to.
        """
        state, shadow = self.state, self.shadow
        mask = state.learnt.get(place) if state.learnt else None
        known = state.places.get(place) if state.places else None
        if known is None and shadow is not None and shadow.places:
            known = shadow.places.get(place)
            mask = mask or (shadow.learnt.get(place) if shadow.learnt else None)
        return (None if known is None else known[0]), mask

    def _mask_of(
        self,
        op: Op,
        operands: Sequence[tuple[int, Meta]],
        numbers: Sequence[Varying],
        given: tuple[Any, ...],
        before: tuple[Any, ...] | None,
        learnt: Mask | None,
    ) -> Mask | None:
        """Which numbers are to be runtime scalars; None: all are static.

        `before`: those met here the last time; `learnt`: what was found out then.
        """
        if before is not None:
            varied = tuple(a != b for a, b in zip(given, before, strict=True))
            if learnt is not None:
                return tuple(a or b for a, b in zip(learnt, varied, strict=True))
            if any(varied):
                return varied
        elif learnt is not None:
            return learnt
        elif self._chooses_of_input(op, operands, numbers):
            # The part of its data that a program takes is most likely to vary.
            return (True,) * len(numbers)
        return self._mask_of_line(op, numbers, given)

    def _mask_of_line(
        self,
        op: Op,
        numbers: Sequence[Varying],
        given: tuple[Any, ...],
    ) -> Mask | None:
        """Which of the numbers varied on the script's line, if any.

        What varies in one iteration of a loop does so in the others. So does an operand
        that was another number in the recording before, whatever else differs.
        """
        line = self._line(op, numbers)
        mask = self.varied.get(line)
        if mask is not None:
            return mask
        if not any(op.params[n[0]].role in (INDEX, INDICES) for n in numbers):
            if len(self.last) >= VARIED_BOUND:
                self.last.clear()
            flush, before = self.last.get(line, (self.flushes, given))
            self.last[line] = self.flushes, given
            if before != given:
                if flush == self.flushes or not before:
                    self.last[line] = self.flushes, ()  # several calls stand there
                else:
                    mask = tuple(a != b for a, b in zip(given, before, strict=True))
                    self.varied[line] = mask
        return mask

    @staticmethod
    def _line(op: Op, numbers: Sequence[Varying]) -> Any:
        """A key for the numbers of an operator on a line of the script."""
        return caller(), op, tuple(n[:2] for n in numbers)

    def _note_varied(
        self,
        op: Op,
        numbers: Sequence[Varying],
        mask: tuple[bool, ...],
    ) -> None:
        if len(self.varied) >= VARIED_BOUND:
            self.varied.clear()
        line = self._line(op, numbers)
        before = self.varied.get(line, mask)
        self.varied[line] = tuple(a or b for a, b in zip(before, mask, strict=True))

    def _chooses_of_input(
        self,
        op: Op,
        operands: Sequence[tuple[int, Meta]],
        numbers: Sequence[Varying],
    ) -> bool:
        """Whether the integers are indices into an input, or a view of one."""
        if any(op.params[n[0]].role not in (INDEX, INDICES) for n in numbers):
            return False
        slot, meta = operands[0]
        state: State | None = None if meta.requires_grad else self.state
        while state is not None:
            if state.slot == slot and (state.kind == IDENTITY or state.view):
                slot = state.operands[0]
            elif state.slot <= slot < state.n_slots:
                return state.kind == INPUT
            state = state.parent
        return False

    @staticmethod
    def _blank(
        key: tuple[Any, ...],
        numbers: Sequence[Varying],
        mask: Sequence[bool],
    ) -> tuple[Any, ...]:
        """The key with the masked numbers taken out."""
        places = [
            (part + 2, inner, hole)
            for (part, inner, hole, _), dynamic in zip(numbers, mask, strict=True)
            if dynamic
        ]
        return tuple(punched(key, places))


def frozen_call(op: Op, args: Sequence[Any]) -> Call:
    """The call of a view operator with all its integers static."""
    template: list[Any] = [HOLE]
    for param, arg in zip(op.params[1:], args, strict=True):
        if param.role == INDICES:
            template.append(tuple(Number(v) for v in arg))
        elif isinstance(arg, int) and param.role == INDEX:
            template.append(Number(arg))
        else:
            template.append(arg)
    frozen, default = tuple(template), dtypes.get_default_dtype()
    return intern_call((op, frozen, default), lambda: Call(op, frozen, default, False))
