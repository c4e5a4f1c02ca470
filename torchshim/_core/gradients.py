"""What the gradient of an event takes: found out once, and kept with the event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.batching import seen_by
from torchshim._core.call import VjpCall, interned_vjp
from torchshim._core.dependence import dependence, is_telling
from torchshim._core.meta import Meta
from torchshim._core.naming import WRAPPED, grad_name, saved_operands
from torchshim._core.op import REGISTRY
from torchshim._core.state import State


class GradientPlan:
    """What recording an event's gradient takes, for one choice of operands `wrt`."""

    __slots__ = ("_calls", "call", "event", "frees", "needs", "saved", "wrt")

    def __init__(self, event: State, call: Any, wrt: tuple[int, ...]) -> None:
        self.event = event
        self.call = call
        self.wrt = wrt
        self._calls: dict[Any, VjpCall] = {}
        checks = call.op is not None and call.write and call.op.inplace_gradient_check
        if checks:
            checks(*call.arguments(event.given, call.placeholders()))
        # Operands whose values the gradient is computed from.
        self.needs = call.needs(wrt)
        # Slots of the values that PyTorch saves, and looks at the versions of.
        slots = saved_operands(event, call, event.wrt)
        op = call.op
        # A write through a view keeps the node of what was written.
        copies = op is not None and grad_name(event) == "CopySlices"
        # Whether a second backward finds them freed. (Numbers are not freed, but
        # where they are made tensors.)
        if op is not None and op.name.rstrip("_") not in WRAPPED:
            self.frees = copies or bool(slots)
        else:
            self.frees = copies or bool(call.saved(event.wrt))
        if event.write is not None and call.owners[0] in call.saved(event.wrt):
            # An in-place operator keeps a copy of what it overwrites.
            slots.remove(event.write)
        self.saved = tuple(slots)

    def vjp(self, cts: tuple[bool, ...], checked: bool) -> VjpCall:
        """The gradient as a call, where these results have a cotangent."""
        found = self._calls.get((cts, checked))
        if found is None:
            absent = tuple(
                None if i in self.needs else (tuple(seen_by(self.call, m)), m.dtype)
                for i, m in enumerate(self.event.given)
            )
            found = interned_vjp(self.call, self.wrt, cts, absent, checked)
            self._calls[cts, checked] = found
        return found


def plan_of(event: State, call: Any, wrt: tuple[int, ...]) -> GradientPlan:
    """The plan for the gradient of an event, whose call is seen as `call`."""
    return event.kept(("gradient", call, wrt), lambda: GradientPlan(event, call, wrt))


def reaching(event: State, grads: Sequence[Any], wrt: tuple[int, ...]) -> Any:
    """Those of the operands `wrt` that a result with a gradient is computed from.

    The gradients that an operator's event gives at once are several nodes' in PyTorch:
    of `a * b` the one by `a` knows nothing of `a`.
    """
    call = event.call
    if call.__class__ is not VjpCall or all(g is not None for g in grads):
        return wrt
    there = tuple([g is not None for g in grads])
    return event.kept(("reaching", there, wrt), lambda: _reaching(event, there, wrt))


def _reaching(event: State, there: Sequence[bool], wrt: tuple[int, ...]) -> Any:
    if any(m.batch or m.levels for m in event.given) or not is_telling(event.call):
        return wrt
    sources = dependence(event.call, tuple((m.shape, m.dtype) for m in event.given))
    of = frozenset[int]().union(
        *(s for s, given in zip(sources, there, strict=True) if given)
    )
    return wrt if of.issuperset(wrt) else tuple(i for i in wrt if i in of)


def brought_to(rec: Any, grad: Any, meta: Meta, name: str, at: int) -> Any:
    """A gradient brought to the shape and the dtype of its value, as PyTorch does.

    RuntimeError if it can't be; `name` and `at` tell the node and which of its
    gradients it is.
    """
    shape, got = tuple(meta.shape), tuple(grad._meta.shape)
    if shape != got:
        lead = len(got) - len(shape)
        if lead < 0 or any(
            a not in (1, b) for a, b in zip(shape, got[lead:], strict=True)
        ):
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {at} - got "
                f"{list(got)} but expected shape compatible with {list(shape)}"
            )
        grad = rec.result(rec.call(REGISTRY["_gradient_sum"], (grad, shape)))
    dtype = grad._meta.dtype
    if dtype is not meta.dtype:
        if not dtype.is_floating_point and dtype.is_complex != meta.dtype.is_complex:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                "grad_is_complex) to be true, but got false.  (Could this error "
                "message be improved?  If so, please report an enhancement request to "
                "PyTorch.)"
            )
        grad = rec.result(rec.call(REGISTRY["_gradient_cast"], (grad, meta.dtype)))
    return grad


def alike(meta: Meta, grad: Any) -> bool:
    """Whether a gradient has the shape and the dtype of a value, and is where it is."""
    other = grad._meta
    return (
        meta.shape == other.shape
        and meta.dtype is other.dtype
        and meta.device is other.device
    )
