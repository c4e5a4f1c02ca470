"""The values that gradients need: whether they are still what was saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.call import VjpCall
from torchshim._core.gradients import (
    RESULT_REPLACED,
    GradientPlan,
    brought_to,
    plan_of,
)
from torchshim._core.graph import Place, before_entry, origin
from torchshim._core.naming import flows_of, grad_name, modified_text
from torchshim._core.op import REGISTRY, puts_back
from torchshim._core.present import Present
from torchshim._core.state import IDENTITY, INPUT, Recording, State, UsedUp
from torchshim._core.storage import hidden_writes
from torchshim._core.versions import (
    Overwritten,
    number_of,
    showing,
)

SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed). Saved intermediate values of the "
    "graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if "
    "you need to access saved tensors after calling backward."
)
DETACHED_IN_PLACE = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with "
    ".detach_().This is not supported, please use out-of-place `.detach()` instead"
)


# How many tensors left the graph by `detach_()`: seldom any.
detached_in_place = [0]


def was_detached(recording: Recording, slot: int) -> bool:
    """Whether the tensor that was saved as this value left the graph in place."""
    while (before := before_entry(recording, slot)) is not None:
        recording, slot = before
    return slot in recording.detached


def number_in(saver: State, slot: int) -> int:
    """The number of a saved value: PyTorch keeps that of a node's own results only."""
    return slot - saver.slot if saver.slot <= slot < saver.n_slots else 0


class SavedValues(Present):
    """The part of a walk that deals with what gradients are computed from."""

    __slots__ = ()

    freed: list[tuple[Recording, UsedUp]]
    nothing: set[Place]
    retain: bool
    writes: Overwritten | None
    cotangents: Sequence[Any]

    def unpack(
        self, recording: Recording, event: State, grads: Sequence[Any]
    ) -> dict[Any, Any]:
        """What saved-tensor hooks give back of the values of an event."""
        packed = recording.packed.get(event.depth)
        if packed is None:
            return {}
        self.catch_up()
        self.cotangents = grads
        place = recording, event.slot
        found = {
            i: self.calling(place, each.for_backward, recording, event, i, self.create)
            for i, each in packed.items()
        }
        if not self.retain:
            recording.packed[event.depth] = dict.fromkeys(packed)
        return found

    def use(
        self,
        recording: Recording,
        event: State,
        plan: GradientPlan,
        grads: Sequence[Any],
        formula: Any,
    ) -> dict[int, Place]:
        """Raises if what an event saved is freed, or was overwritten in place.

        Gives the values that were overwritten without any version counting it, and
        where that is known. `formula`: as in `check_versions`.
        """
        if plan.parts:
            parts = self.parts_of(recording, event, grads)
            freed = plan.frees and not recording.freed.isdisjoint(parts)
        else:
            freed = plan.frees and event.depth in recording.freed
        if freed:
            raise RuntimeError(SECOND_BACKWARD)
        outdated = self.check_versions(recording, plan, formula)
        if self.capture is not None and recording.state is not None:
            if plan.saved:
                self.capture.checked.append((recording, plan.saved, True))
            for slot in plan.read:
                self.note_read(recording, slot)
        return outdated or self.written_unseen(recording, plan.read)

    def free(
        self,
        recording: Recording,
        event: State,
        plan: GradientPlan,
        grads: Sequence[Any],
    ) -> None:
        """Notes that what an event saved is used up."""
        if plan.parts:
            parts = self.parts_of(recording, event, grads)
            self.freed += [(recording, part) for part in parts]
        elif plan.frees:
            self.freed.append((recording, event.depth))

    def parts_of(
        self, recording: Recording, event: State, grads: Sequence[Any]
    ) -> tuple[UsedUp, ...]:
        """What tells the nodes that edges led to, of those that an event stands for.

        The event's own depth is that of all of them.
        """
        nothing, slot = self.nothing, event.slot
        found: list[UsedUp] = [
            (event.depth, k)
            for k, grad in enumerate(grads)
            if grad is not None or (recording, slot + k) in nothing
        ]
        return (*found, event.depth) if len(found) == len(grads) else tuple(found)

    def note_read(self, recording: Recording, slot: int) -> None:
        """Notes for the jump edge that nobody wrote to a value unseen."""
        assert self.capture is not None
        place: Place | None = recording, slot
        while place is not None:
            self.capture.checked.append((place[0], (place[1],), False))
            place = before_entry(*place)

    def spend(
        self,
        recording: Recording,
        event: State,
        grads: Sequence[Any],
        wrt: Sequence[int],
    ) -> None:
        """Uses up what an event saved, though no gradient is computed from it.

        Where none of the operands `wrt` is to get one, or no gradient arrived.
        """
        if wrt and self.spend_write(recording, event):
            return
        plan = plan_of(event, event.call, ())
        self.use(recording, event, plan, grads, "nothing is computed")
        if event.call.__class__ is VjpCall:
            self.check_forward(recording, event, wrt)
        self.unpack(recording, event, grads)
        self.free(recording, event, plan, grads)

    def spend_write(self, recording: Recording, event: State) -> bool:
        """As `spend`, of a write through a view that no gradient arrives at.

        In PyTorch the writing operator is part of that node, which looks at nothing
        then.
        """
        place = recording, event.depth
        if event.write is not None and place in self.freed:
            return True
        op = event.call.op
        if op is None or not puts_back(op):
            return False
        self.freed.append(place)
        slot = event.operands[1]
        if slot not in recording.entered and slot not in recording.hists:
            writer = self.event((recording, slot))
            if writer.write is not None:
                self.freed.append((recording, writer.depth))
        return True

    def keep_write(self, recording: Recording, event: State) -> None:
        """Takes back that a write through a view was used up: its operator failed.

        In PyTorch the two are one node.
        """
        slots, depths = set(range(event.slot, event.n_slots)), set()
        for later in (recording.state or self.frozen or self.rec.state).path():
            op = None if later.call is None else later.call.op
            if op is not None and puts_back(op) and later.operands[1] in slots:
                slots.update(range(later.slot, later.n_slots))
                depths.add(later.depth)
        self.freed = [
            (owner, depth)
            for owner, depth in self.freed
            if owner is not recording or depth not in depths
        ]

    def check_versions(
        self, recording: Recording, plan: GradientPlan, formula: Any = None
    ) -> dict[int, Place]:
        """Raises if a value that a gradient needs was overwritten; see `use`.

        `formula`: what can use a result that is another by now.
        """
        event, slots = plan.event, plan.saved
        if not slots or event.depth in recording.packed:  # hooks keep their own
            return {}
        if detached_in_place[0]:
            # (A result is saved without its tensor.)
            operands = set(slots).difference(range(event.slot, event.n_slots))
            if any(was_detached(recording, slot) for slot in operands):
                raise RuntimeError(DETACHED_IN_PLACE)
        if not self.may_be_written(recording):
            return {}
        outdated: dict[int, Place] = {}
        for slot in slots:
            result = event.slot <= slot < event.n_slots
            count, hidden = self.writes_since(recording, slot, result)
            if recording.apart and self.is_apart(recording, event, slot):
                # Its own version is as it was: it is used as it is by now.
                hidden, count = hidden or count > 0, 0
            if count > 0:
                self.raise_modified(recording, event, slot, count)
            if hidden:
                outdated[slot] = recording, slot
                if result and formula is None:
                    raise NotImplementedError(
                        RESULT_REPLACED.format(plan.call.op.public)
                    )
        return outdated

    def writes_since(
        self, recording: Recording, slot: int, result: bool
    ) -> tuple[int, bool]:
        """The counted writes to a value's memory, and whether there were others.

        `result`: PyTorch saves it without its tensor.
        """
        count, hidden = 0, False
        if recording.state is None:
            count = self.overwritten().count(slot)
            hidden = self.overwritten().is_hidden(slot)
            if (moved := self.moved_at(recording, slot)) is not None:
                hidden = hidden or not result
                if moved.tensor is not None and moved.version is not None:
                    count = number_of(moved.tensor) - moved.version
            if recording.elsewhere:
                there = self.elsewhere(recording, slot)
                if there is not None:
                    count = there.writes()
                    hidden = hidden or there.is_hidden()
        elif slot in recording.versions:
            saved = recording.versions[slot]
            count = saved.written()
            hidden = recording.hidden != hidden_writes[0] or saved.hidden is None
            hidden = hidden and saved.outdated(result)
        return count, hidden

    def written_unseen(
        self, recording: Recording, slots: Sequence[int]
    ) -> dict[int, Place]:
        """Those of some values that were overwritten without any version counting it.

        With the place where that is known: values of closed recordings enter as copies.
        """
        found: dict[int, Place] = {}
        for slot in slots:
            place: Place | None = recording, slot
            while place is not None:
                if (
                    self.may_be_written(place[0])
                    and self.writes_since(*place, False)[1]
                ):
                    found[slot] = place
                    break
                place = before_entry(*place)
        return found

    def may_be_written(self, recording: Recording) -> bool:
        if recording.state is not None or recording.elsewhere:
            return True
        return (self.frozen or self.rec.state).written

    def now_used(self, place: Place, saved: Any, mixed: str | None) -> Any:
        """What the gradient of an event uses of a value that was overwritten unseen.

        One beside which PyTorch uses what was computed from it (`mixed`: the error) has
        to be as it was: here all of the gradient is computed from it.
        """
        found = self.present(*place, saved)
        if mixed is not None:
            self.capture = None
            check = REGISTRY["_unless_changed"]
            found = self.rec.result(self.rec.call(check, (found, saved, mixed)))
        return found

    def gives_others(self, event: State, unpacked: dict[Any, Any]) -> bool:
        """Whether saved-tensor hooks gave something else than what they were shown."""
        for i, tensor in unpacked.items():
            if not isinstance(i, int):  # a result: None if it is that very one
                if tensor is not None:
                    return True
            elif self.rec.slot_of(tensor) != event.operands[i]:
                return True
        return False

    def as_used(
        self,
        plan: GradientPlan,
        vjp: VjpCall,
        operands: Sequence[Any],
        grads: Sequence[Any],
        outdated: dict[int, Place],
        unpacked: dict[Any, Any],
    ) -> list[Any]:
        """The operands of a gradient, some of which were overwritten unseen."""
        given = [*operands, *(g for g in grads if g is not None)]
        mixed = plan.depends(vjp, [g._tmeta for g in given])
        text = plan.replaced_text()
        found: list[Any] = []
        for i, operand in zip(plan.needs, operands, strict=True):
            slot = plan.event.operands[i]
            if slot in outdated and i not in unpacked and plan.reads(i):
                place, known = outdated[slot], text if i in mixed else None
                operand = self.now_used(place, operand, known)
            found.append(operand)
        return found

    def from_result(
        self,
        recording: Recording,
        event: State,
        plan: GradientPlan,
        operands: Sequence[Any],
        grad: Any,
        outdated: dict[int, Place],
        unpacked: dict[Any, Any],
    ) -> Any:
        """The gradient by PyTorch's formula, of what was overwritten unseen.

        Or of what saved-tensor hooks gave.
        """
        result = unpacked.get(("result", 0))
        self.capture = None
        rec, call, slot, meta = self.rec, plan.call, event.slot, event.metas[0]
        scalars = self.scalars_of(recording, event)
        if result is None:
            if recording is rec.recording:
                result = source = rec.tensor_on(slot, meta)
            else:
                args = call.arguments(operands, scalars)
                op = REGISTRY[call.op.name.rstrip("_")]
                result = rec.result(rec.call(op, tuple(args)))
                source = rec.tensor_on(
                    rec.identity(result._slot, meta, Recording), meta
                )
                rec.recording.hists[source._slot] = recording, slot
            if slot in outdated:
                result = self.present(
                    recording, slot, rec.tensor_on(result._slot, meta.plain)
                )
            if self.create and result is not source:
                result = self.with_history(result, source)
        given = list(operands)
        for i, at in enumerate(event.operands):
            if at in outdated and i not in unpacked:
                given[i] = self.now_used(outdated[at], given[i], None)
        args = call.arguments(given, scalars)
        self.free(recording, event, plan, (grad,))
        return rec.result(rec.call(plan.from_result, (grad, result, *args)))

    def as_declared(self, plan: GradientPlan, wrt: Any, grads: Any) -> list[Any]:
        """Gradients in the shapes and dtypes of operands, whatever data were used."""
        given, name = plan.event.given, grad_name(plan.event) or ""
        flows = flows_of(plan.event)
        return [
            brought_to(self.rec, grad, given[i], name, flows.index(i))
            for i, grad in zip(wrt, grads, strict=True)
        ]

    def switched(self, recording: Recording, slot: int) -> Any:
        """The tensor of a saved value that came to require grad, or ceased to, since.

        PyTorch saves operands as tensors, and differentiates gradients by these.
        """
        tensor = recording.switched.get(slot)
        if tensor is None and recording.state is not None:
            known = recording.versions.get(slot)
            if known is None or known.tensor is None:
                return None
            tensor = known.tensor()
            if tensor is None or known.written() or known.outdated():
                return None
            event = self.event((recording, slot))
            before = event.metas[slot - event.slot].requires_grad
            if tensor._tmeta.requires_grad is before or not tensor._tmeta.leaf:
                return None
        if tensor is not None:
            self.capture = None  # the path does not tell where it is
        return tensor

    def is_apart(self, recording: Recording, saver: State, slot: int) -> bool:
        """Whether a value came by `.data`; raises if its own version went on."""
        at, viewed, detached = slot, False, False
        while (known := recording.apart.get(at)) is None:
            event = self.event((recording, at))
            if not event.alias or not event.operands:
                return False
            if event.call is None:
                return False  # of another tensor that shows the value
            viewed, detached = True, detached or event.call.op.view.detached
            at = event.operands[0]
        ref, cell, version = known
        tensor = ref()
        now = cell[0]
        if tensor is not None and tensor._own_version is not cell:
            now = number_of(tensor)  # it counts as its memory does by now
        if now != version:
            source = self.event((recording, slot))
            tensor = None if detached else tensor
            name = None
            if saver.slot <= slot < saver.n_slots:
                name = self.name_now(recording, saver, slot)
            elif tensor is not None and tensor.grad_fn is not None:
                name = "AsStridedBackward0" if viewed else tensor.grad_fn.name()
            meta, number = source.metas[slot - source.slot], number_in(saver, slot)
            raise RuntimeError(modified_text(meta, name, number, now, version))
        return True

    def check_forward(
        self, recording: Recording, event: State, wrt: Sequence[int]
    ) -> None:
        """Checks what the gradient that an event is was computed from, and frees it.

        Where PyTorch's formula holds a result, the second derivative goes by way of the
        node that made it; here it goes to the operands at once.
        """
        forward: Any = event
        by_result = any(i < len(forward.call.kept) for i in wrt)
        while forward.call.__class__ is VjpCall:
            within, found = recording.forwards.get(forward.depth, (recording, None))
            if found is None:
                depth = forward.gradient_of
                if depth is None:
                    return
                found = forward.parent
                while found.depth != depth:
                    found = found.parent
            recording, forward = within, found
        op = forward.call.op
        if (
            op is None
            or not op.curved
            or "result" not in forward.call.saved(forward.wrt)
        ):
            return
        if recording.state is not None:
            self.capture = None
        plan = plan_of(forward, forward.call, forward.wrt)
        self.check_versions(recording, plan)
        if by_result and plan.frees:
            if forward.depth in recording.freed:
                raise RuntimeError(SECOND_BACKWARD)
            self.freed.append((recording, forward.depth))

    def raise_modified(
        self, recording: Recording, event: State, slot: int, count: int
    ) -> None:
        """PyTorch's error for a saved value that was overwritten."""
        source = self.event((recording, slot))
        meta = source.metas[slot - source.slot]
        name = self.name_now(recording, event, slot)
        version = count + self.version_at(recording, slot)
        number = number_in(event, slot)
        raise RuntimeError(modified_text(meta, name, number, version, version - count))

    def name_now(self, recording: Recording, event: State, slot: int) -> str | None:
        """The node of the tensor that was saved, as it is by now."""
        source = self.event((recording, slot))
        meta = source.metas[slot - source.slot]
        if event.slot <= slot < event.n_slots:
            piece = recording.pieces.get(slot)
            view = None if piece is None else piece[0]()
            # Where the view was used since, PyTorch made it another node.
            if view is not None and view._slot < 0:
                if view._path[-1][0].view.strided:
                    return "AsStridedBackward0"
            return grad_name(source) if meta.requires_grad else None  # positions
        if meta.requires_grad and not meta.leaf:
            made = source
            if slot in recording.hists:
                made = self.event(origin(recording, slot))
            if made.view and made.call.op.view.strided:
                return "AsStridedBackward0"
        if source.alias and not meta.requires_grad:
            detached = self.detached_at(recording, slot)
            if detached is not None:
                return self.name_of_write(recording, slot, detached)
        if recording.state is None:
            moved = self.moved_at(recording, slot)
            if moved is not None and (tensor := moved.tensor) is not None:
                return None if tensor.grad_fn is None else tensor.grad_fn.name()
            there = self.elsewhere(recording, slot)
            for tensor in showing(None if there is None else there.holder):
                return None if tensor.grad_fn is None else tensor.grad_fn.name()
            tensor = recording.entered.get(slot)
            if tensor is not None and tensor._view_note is None:
                return None if tensor.grad_fn is None else tensor.grad_fn.name()
            written = self.overwritten()
        elif source.kind in (INPUT, IDENTITY):
            known = recording.versions[slot]
            alive = known.tensor() if known.tensor is not None else None
            if slot in recording.elsewhere:  # another thread's tensor, not its copy
                alive = next(iter(known.tensors()), alive)
            if alive is not None:
                node = alive.grad_fn
                return None if node is None else node.name()
            written = Overwritten(recording.state)
        else:
            known = recording.versions[slot]
            for tensor in known.tensors():
                if tensor.grad_fn is not None:
                    return tensor.grad_fn.name()
            if known.node is not None:
                return known.node
            written = Overwritten(recording.state)
        for last in reversed(written.chain(slot)):
            made_by = self.event((recording, last))
            if self.is_detached(recording, made_by.write):
                continue  # that gave the alias a node, and not this value
            now = made_by.metas[last - made_by.slot]
            if now.requires_grad and not now.leaf:
                return grad_name(made_by)
        return None

    def detached_at(self, recording: Recording, slot: int) -> int | None:
        """The detached alias of a value that a value is, or is a view of."""
        event = self.event((recording, slot))
        while event.alias and event.operands and not event.metas[0].requires_grad:
            made = event.operands[0]
            event = self.event((recording, made))
            if event.metas[made - event.slot].requires_grad:
                return slot
            slot = made
        return None

    def is_detached(self, recording: Recording, slot: int | None) -> bool:
        return slot is not None and self.detached_at(recording, slot) is not None

    def name_of_write(
        self, recording: Recording, slot: int, detached: int
    ) -> str | None:
        """The node that writes to a detached alias gave a value that shows it."""
        name = None
        for event in (recording.state or self.frozen or self.rec.state).path():
            to = event.write
            if to is None or not (event.metas and event.metas[0].requires_grad):
                continue
            if self.detached_at(recording, to) == detached:
                if slot != detached:
                    name = "AsStridedBackward0"
                else:
                    name = grad_name(event) if to == slot else "CopySlices"
        return name

    def version_at(self, recording: Recording, slot: int) -> int:
        """The version number of a value's memory when it was saved."""
        if recording.state is not None:
            saved = recording.versions.get(slot)
            if saved is not None and saved.holder is not None:
                return saved.version + saved.ahead
        else:
            moved = self.moved_at(recording, slot)
            if moved is not None and moved.version is not None:
                return moved.version
        if recording.elsewhere:
            there = self.elsewhere(recording, slot)
            if there is not None:
                return there.version + there.note.ahead
        first, writes = self.overwritten().origin(slot)
        known = self.overwritten().noted(recording).get(first)
        if known is not None:
            return writes + known.version + known.ahead
        holder = recording.entered.get(first)
        if holder is None:
            holder = recording.bases.get(first)
        if holder is not None:
            writes += max(number_of(holder) - self.overwritten().count(first), 0)
        return writes
