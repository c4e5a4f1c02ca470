"""What the memory of a saved value holds by now: PyTorch's gradients use that.

Where no version counted a write (it went through `.data`), PyTorch raises no error, and
computes the gradient from what the memory holds at the time of the backward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.call import Call, VjpCall, interned_vjp
from torchshim._core.gradients import GradientPlan
from torchshim._core.graph import origin
from torchshim._core.leaves import Leaves
from torchshim._core.meta import broadcast_shape
from torchshim._core.op import REGISTRY
from torchshim._core.state import Recording, State
from torchshim._core.storage import REPLACED, hidden_of
from torchshim._core.versions import Elsewhere, Moved, Overwritten, moved_at

INNER_REPLACED = (
    "create_graph where a value that is no leaf was given data of another shape"
)

OTHER_SHAPE = "a gradient whose operand was given data of a shape that does not fit"


class Present(Leaves):
    """The part of a walk that finds what a memory holds by now."""

    __slots__ = ()

    writes: Overwritten | None
    copied: list[tuple[int, Recording, int, int]]

    def scalars_of(self, recording: Recording, event: State) -> list[float]:
        """The runtime scalars that an event was recorded with."""
        if event.n_scalars == event.scalar:
            return []
        if recording is self.rec.recording:
            return self.rec.scalars[event.scalar : event.n_scalars]
        return recording.scalars[event.scalar : event.n_scalars]

    def present(self, recording: Recording, slot: int, saved: Any) -> Any:
        """What the memory of a saved value holds by now, as PyTorch would use it."""
        tracked = self.create and saved._tmeta.requires_grad
        if tracked and (tensor := recording.entered.get(slot)) is not None:
            return tensor
        if tracked and (found := self.on_leaf(recording, slot)) is not None:
            return found
        views: list[tuple[Recording, State, int]] = []
        root = slot
        while (event := self.event((recording, root))).alias and event.operands:
            if event.call is not None:
                views.append((recording, event, root - event.slot))
            root = event.operands[0]
        # What was written through a view is where that is in the memory.
        path = recording.pieces[root][1] if root in recording.pieces else ()
        if recording.state is None:
            moved = self.moved_at(recording, slot)
            if moved is not None:
                views.clear()
            last = self.overwritten().last(root if moved is None else moved.value)
            there = self.elsewhere(recording, root)
            if moved is not None and moved.tensor is not None:
                piece = moved.tensor
            elif there is not None and there.moved():
                if views:
                    return saved  # a view stays on the memory that it was made of
                piece = there.holder
            elif there is not None and there.is_hidden():
                piece = self.rec.piece_of(
                    self.rec.whole(there.holder), path or there.note.path
                )
            else:
                event = self.event((recording, last))
                whole = self.rec.tensor_on(last, event.metas[last - event.slot])
                piece = self.rec.piece_of(whole, path)
        else:
            known = recording.versions[slot]
            holder = known.holder()
            if (moved := known.moved()) is not None:
                holder = moved
                views.clear()
            elif known.hidden is None or hidden_of(holder) < known.hidden + REPLACED:
                holder = self.rec.piece_of(self.rec.whole(holder), path or known.path)
            else:
                return saved  # as above
            piece = holder
        found = self.viewed(self.rec.without_history(piece), views)
        if tracked:
            if found._tmeta.shape != saved._tmeta.shape:
                raise NotImplementedError(INNER_REPLACED)
            found = self.with_history(found, saved)
        return found

    def with_history(self, value: Any, source: Any) -> Any:
        """A value whose gradient is that of another one."""
        call = self.rec.call(REGISTRY["_with_history_of"], (value, source))
        return self.rec.result(call)

    def on_leaf(self, recording: Recording, slot: int) -> Any:
        """The view of a leaf that a value is, made anew from what the leaf holds now.

        None if it is no view of a leaf, or if the leaf has other memory by now: views
        stay behind on the old.
        """
        views: list[tuple[Recording, State, int]] = []
        while True:
            recording, slot = origin(recording, slot)
            event = self.event((recording, slot))
            if not (event.view and event.operands):
                break
            views.append((recording, event, slot - event.slot))
            slot = event.operands[0]
        leaf = recording.entered.get(slot)
        if leaf is None or leaf._replaced:
            return None
        return self.viewed(leaf, views)

    def viewed(self, piece: Any, views: Sequence[tuple[Recording, State, int]]) -> Any:
        """A view of a value by the events of `views`, which has the last one first."""
        for recording, event, k in reversed(views):
            scalars = self.scalars_of(recording, event)
            made = self.rec.event(event.call, [piece], scalars)
            if scalars:
                self.copied.append((made.scalar, recording, event.scalar, len(scalars)))
            piece = self.rec.result(made, k)
        return piece

    def misfits(self, plan: GradientPlan, operands: Sequence[Any]) -> bool:
        """Whether operands of a gradient were given data of another shape."""
        given = plan.event.given
        return any(
            operand._tmeta.shape != given[i].shape
            for i, operand in zip(plan.needs, operands, strict=True)
        )

    def fitted(
        self, vjp: VjpCall, operands: list[Any], grads: Sequence[Any]
    ) -> tuple[VjpCall, list[Any], list[Any]]:
        """A gradient's call, such operands and what arrived, fitting one another.

        They are broadcast, as by PyTorch's formulas of element-wise operators.
        """
        arrived = [g for g in grads if g is not None]
        metas = [value._tmeta for value in (*arrived, *operands)]
        if isinstance(vjp.inner, Call) and vjp.inner.op.layout == "preserve":
            shape = broadcast_shape([tuple(meta.shape) for meta in metas])
            rec, expand = self.rec, REGISTRY["expand"]
            arrived, operands = (
                [rec.result(rec.call(expand, (value, shape))) for value in values]
                for values in (arrived, operands)
            )
            absent = tuple(a and (shape, a[1]) for a in vjp.absent)
            vjp = interned_vjp(vjp.inner, vjp.wrt, vjp.cts, absent, vjp.checked)
        else:
            try:
                needed = metas[len(arrived) :] + metas[: len(arrived)]
                vjp.infer(tuple((tuple(m.shape), m.dtype) for m in needed))
            except (TypeError, ValueError) as error:
                raise NotImplementedError(OTHER_SHAPE) from error
        left = iter(arrived)
        return vjp, operands, [None if g is None else next(left) for g in grads]

    def moved_at(self, recording: Recording, slot: int) -> Moved | None:
        """As `versions.moved_at`, of a recording that goes on."""
        return moved_at(recording, self.overwritten(), slot)

    def overwritten(self) -> Overwritten:
        if self.writes is None:
            self.writes = Overwritten(self.frozen or self.rec.state)
        return self.writes

    def elsewhere(self, recording: Recording, slot: int) -> Elsewhere | None:
        """As `Overwritten.elsewhere`, of a recording."""
        written = self.overwritten()
        return written.elsewhere(written.noted(recording), slot)
