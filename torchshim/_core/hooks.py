"""Hooks on a tensor's gradient, and where in the graph they are.

In PyTorch a tensor's hooks belong to the node that made it. A write that gives the
tensor another node leaves them behind; only `retain_grad` moves on to the new node.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any

from torchshim._core.graph import Place, origin
from torchshim._core.leaf_facts import OWN_DTYPE
from torchshim._core.leaves import added
from torchshim._core.naming import REPLACED_NONE, check_replacement
from torchshim._core.record import Recorder, local
from torchshim._core.state import CALL
from torchshim._core.storage import SLOT_BITS, version_of

# Tensors whose gradient is retained. A write moves that to the tensor's new node, so
# each backward begins with `move_retained`.
retaining: dict[int, weakref.ref[Any]] = {}


def place_of(rec: Recorder, tensor: Any) -> Place:
    """Where the gradient of a tensor arrives."""
    slot = tensor._slot
    if slot >> SLOT_BITS != rec.id:
        if slot < 0 and tensor._hist is not None and tensor._view_of is None:
            return origin(*rec.history(*tensor._hist))
        slot = rec.slot_seen(tensor)
    return origin(rec.recording, slot)


class TensorHooks:
    """The hooks of one tensor at one place of the graph."""

    # (No `__init__`: of a loop's hooks most keep what the class has.)
    backward: OrderedDict[int, Any] | None = None
    post: OrderedDict[int, Any] | None = None
    # Of a leaf: see `leaf_facts.grad_dtype`.
    grad_dtype = OWN_DTYPE
    # The tensor whose `.grad` is to hold the gradient, though it is no leaf.
    retained: weakref.ref[Any] | None = None
    # Of a leaf: whether it was such a tensor before it left its graph.
    retains = False
    # Of tensors with a node: the graph and the slot where they hang, and the tensor's
    # version at that time. (The number of the graph, as the graph holds these hooks:
    # a reference to it would be a cycle.)
    place: tuple[int, int] | None = None
    version = 0

    def hang(self, rec: Recorder, tensor: Any) -> None:
        """Hangs the hooks on the node that made the tensor's present value."""
        recording, slot = place_of(rec, tensor)
        self.place = recording.graph, slot
        self.version = version_of(tensor)
        others = recording.hooked.get(slot)
        if others is self:
            return
        recording.hooked[slot] = self if others is None else HookChain(others, self)
        rec.mark("hook", slot)

    def come_last(self, rec: Recorder, tensor: Any) -> None:
        """Moves behind the hooks of the node's other results."""
        recording, slot = place_of(rec, tensor)
        if self.place == (recording.graph, slot):
            recording.hooked[slot] = recording.hooked.pop(slot)

    def derived(self, rec: Recorder, tensor: Any) -> None:
        """Follows a view that was derived again from its base."""
        if self.version == version_of(tensor):
            self.hang(rec, tensor)
        else:
            hooks_of(tensor)

    def run(self, grad: Any) -> Any:
        """What the hooks make of a gradient, which is retained where that is asked."""
        if self.backward:
            grad = self.replace(grad)
        if self.retained is not None:
            self.retain(grad)
        return grad

    def replace(self, grad: Any) -> Any:
        """What the hooks make of a gradient."""
        for hook in (*(self.backward or {}).values(),):
            result = hook(grad)
            if result is not None:
                if grad is None:
                    raise RuntimeError(REPLACED_NONE)
                check_replacement(hook, grad, result)
                grad = result
        return grad

    def retain(self, grad: Any) -> None:
        """Gives a gradient to the tensor that retains it, if one does."""
        tensor = None if self.retained is None else self.retained()
        if tensor is not None and grad is not None:
            before = tensor._grad
            if before is not None:
                tensor._grad = added(before, grad)
            elif grad._tmeta.requires_grad:
                tensor._grad = grad.clone()
            elif grad._composed:
                tensor._grad = grad._twin()
            else:
                # Not the object itself, which may be the caller's.
                tensor._grad = local.rec.without_history(grad)

    def accumulated(self, leaf: Any) -> None:
        """Runs the hooks of a leaf whose `.grad` was just brought up to date."""
        given = leaf
        for hook in list((self.post or {}).values()):
            result = hook(given)
            if result is not None:
                check_replacement(hook, None, result)
                given = result
        if given is not leaf:  # functions in place give that
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


class HookChain:
    """Hooks of several tensors that show one value."""

    __slots__ = ("chain",)

    def __init__(self, *chain: Any) -> None:
        self.chain = chain

    def run(self, grad: Any) -> Any:
        for hooks in self.chain:
            grad = hooks.run(grad)
        return grad

    def replace(self, grad: Any) -> Any:
        for hooks in self.chain:
            grad = hooks.replace(grad)
        return grad

    def retain(self, grad: Any) -> None:
        for hooks in self.chain:
            hooks.retain(grad)


def hooks_of(tensor: Any, make: bool = False) -> TensorHooks | None:
    """The hooks of a tensor's present value; those of an earlier one stay behind."""
    hooks: TensorHooks | None = tensor._hooks
    if hooks is not None and hooks.place is not None:
        rec = local.rec
        if tensor._view_of is not None:
            moved = hooks.version != version_of(tensor)
        else:
            recording, slot = place_of(rec, tensor)
            moved = hooks.place != (recording.graph, slot)
        if moved:
            kept = hooks.retained
            hooks.retained = None
            hooks = tensor._hooks = None
            if kept is not None and tensor._tmeta.requires_grad:
                hooks = tensor._hooks = TensorHooks()
                hooks.retained = kept
                hooks.hang(rec, tensor)
    if hooks is None:
        return new_hooks(tensor) if make else None
    if make and tensor._view_note is not None:
        local.rec.check_current(tensor)
    return hooks


def new_hooks(tensor: Any) -> TensorHooks:
    """Hooks of a tensor that has none yet."""
    rec = local.rec
    if tensor._view_note is not None:
        rec.check_current(tensor)
    hooks = tensor._hooks = TensorHooks()
    if tensor._tmeta.leaf:
        return hooks
    slot, state, hooked = tensor._slot, rec.state, rec.recording.hooked
    if (
        state.slot <= slot < state.n_slots
        and state.kind == CALL
        and tensor._view_of is None
        and slot not in hooked
    ):  # it was just computed, as it often is: as `hang`, in fewer steps
        hooks.place = rec.recording.graph, slot
        hooked[slot] = hooks
        rec.mark("hook", slot)
    else:
        hooks.hang(rec, tensor)
    return hooks


def leave_node(tensor: Any) -> None:
    """The tensor becomes a leaf: its hooks stay at its node, and it keeps them, too."""
    left: TensorHooks | None = tensor._hooks
    tensor._hooks = None
    if left is not None and (
        left.backward is not None or left.retained is not None or left.retains
    ):
        tensor._hooks = TensorHooks()
        tensor._hooks.backward = left.backward
        tensor._hooks.retains = left.retained is not None or left.retains


def move_retained() -> None:
    """Moves `retain_grad` of tensors to the nodes that they have now."""
    for key in list(retaining):  # (of pairs none: making one may end other tensors)
        ref = retaining.get(key)
        tensor = None if ref is None else ref()
        if tensor is None or tensor._hooks is None:
            retaining.pop(key, None)
        elif tensor._view_of is not None or tensor._hooks.place is None:
            pass  # (A view gets another node when it is used: `derived`.)
        elif tensor._lost is None and tensor._hooks.version != version_of(tensor):
            # Only a write gives a tensor another node. Most have seen none, and need
            # not be looked for in other threads' recordings.
            hooks = hooks_of(tensor)
            if hooks is not None:
                hooks.version = version_of(tensor)
