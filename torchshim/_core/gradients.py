"""Plans: what an event's gradient is computed from, found once and kept with the event.

Also how gradients are brought to the shape and the dtype of their value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torchshim._core.batching import alone, seen_by
from torchshim._core.call import Call, VjpCall, interned_vjp
from torchshim._core.declared import COMPUTED, DERIVED
from torchshim._core.dependence import dependence, sources_of
from torchshim._core.forward import JvpCall
from torchshim._core.meta import Meta
from torchshim._core.naming import WRAPPED, grad_name, saved_operands
from torchshim._core.op import REGISTRY
from torchshim._core.state import State

RESULT_REPLACED = (
    "the gradient of {} uses its result; that or an operand was overwritten through "
    ".data, and torchshim keeps the operands only"
)
OPERAND_REPLACED = (
    "the gradient of {} uses a value that was overwritten through .data, and others "
    "that were computed from it before, of which torchshim keeps none"
)


# Name of an operator -> a function of the operands that get gradients and of the
# arguments (metas for tensors). It tells for each operand whether PyTorch saves a copy
# of it (True), or the operand itself and nothing computed from it (False); None:
# that is not known.
COPIES: dict[str, Callable[..., Sequence[bool | None] | None]] = {}


def result_formula(name: str) -> str:
    """The operator that gives an operator's gradient from its result, where one does.

    Of what arrived, the result and the arguments: by PyTorch's formula.
    """
    return f"_{name}_from_result"


class GradientPlan:
    """How to record an event's gradient, for one choice of operands `wrt`."""

    __slots__ = (
        "_calls",
        "call",
        "event",
        "frees",
        "mixed",
        "needs",
        "parts",
        "plain",
        "read",
        "saved",
        "sparse",
        "wrt",
    )

    def __init__(self, event: State, call: Any, wrt: tuple[int, ...]) -> None:
        self.event = event
        self.call = call
        self.wrt = wrt
        self._calls: dict[Any, VjpCall] = {}
        # What makes the gradient of the first operand, if it is sparse.
        self.sparse: tuple[str, bool] | None = None
        if call.op is not None and call.op.sparse_grad is not None and 0 in wrt:
            given = call.arguments(event.given, call.placeholders())
            self.sparse = call.op.sparse_grad(*given)
        checks = call.op is not None and call.write and call.op.inplace_gradient_check
        if wrt and checks:
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
        # What PyTorch saves a copy of is not overwritten with its operand.
        copied = copied_operands(event, call)
        if True in copied:
            operands = list(zip(event.operands, copied, strict=True))
            kept = {slot for slot, is_copy in operands if not is_copy}
            slots = [s for s in slots if s in kept or s not in event.operands]
        self.saved = tuple(slots)
        # Of a gradient's gradient: slots of what PyTorch's formula reads once more. It
        # does not compare their versions, but it reads what hidden writes put there.
        self.read: tuple[int, ...] = ()
        # Operands beside which PyTorch uses what was computed from them before.
        self.mixed: frozenset[int] = frozenset()
        self.plain = False
        # Whether what the event gives is several nodes' in PyTorch, each of which uses
        # up what it saved: the gradients of a product by its factors.
        self.parts = False
        if call.__class__ is VjpCall:
            formula = formula_of(call)
            self.parts = self.frees and formula.apart and len(event.metas) > 1
            self.plain = formula.plain
            self.read = tuple(dict.fromkeys(event.operands[i] for i in formula.kept))
            self.mixed = frozenset() if formula.product else frozenset(formula.kept)
        else:
            mixed = mixed_operands(alone(call), event.wrt)
            self.mixed = frozenset(i for i in mixed if copied[i] is None)

    def depends(self, vjp: VjpCall, metas: Sequence[Meta]) -> frozenset[int]:
        """Those of the `mixed` operands that the gradient depends on at all."""
        if not self.plain or any(m.batch or m.levels for m in metas):
            return self.mixed
        sources = dependence(vjp, tuple((m.shape, m.dtype) for m in metas))
        found = frozenset[int]().union(*sources)
        return self.mixed & {self.needs[k] for k in found if k < len(self.needs)}

    @property
    def from_result(self) -> Any:
        """What gives the gradient from the result, if anything does."""
        call = self.call
        if call is not self.event.call or not isinstance(call, Call):
            return None
        return REGISTRY.get(result_formula(call.op.name.rstrip("_")))

    def reads(self, i: int) -> bool:
        """Whether PyTorch's formula looks at the operand itself."""
        return self.event.call.__class__ is not VjpCall or (
            self.event.operands[i] in self.read
        )

    def replaced_text(self) -> str:
        """What is said where PyTorch would use one of the `mixed` operands."""
        call = self.call
        while isinstance(call, VjpCall):
            call = call.inner
        event = self.event
        by_result = not set(self.saved).isdisjoint(range(event.slot, event.n_slots))
        text = RESULT_REPLACED if by_result else OPERAND_REPLACED
        return text.format(alone(call).op.public)

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


def copied_operands(event: State, call: Any) -> Sequence[bool | None]:
    """Which operands of an event PyTorch saves a copy of: see `COPIES`.

    Nothing is said within transforms, where they have other dimensions.
    """
    unknown = (None,) * len(event.operands)
    if call is not event.call or not isinstance(call, Call):
        return unknown
    rule = COPIES.get(call.op.name)
    if rule is None:
        return unknown
    given = call.arguments(event.given, call.placeholders())
    found = rule(event.wrt, *given) or ()
    return (*found, *unknown[len(found) :])


def mixed_operands(call: Any, wrt: Sequence[int]) -> frozenset[int]:
    """Operands that PyTorch saves beside what was computed from them."""
    if not isinstance(call, Call):
        return frozenset()
    names = call.saved(wrt)
    found = range(call.n_arrays)
    if DERIVED.isdisjoint(names):
        if COMPUTED not in names:
            return frozenset()
        found = [i for i in found if call.owners[i] == call.owners[0]]
    return frozenset(found)


class Formula(NamedTuple):
    """What PyTorch's formula of a gradient reads when it is differentiated."""

    # The operands of the gradient that it holds as they are.
    kept: list[int]
    # Whether it is a product of nothing else: others hold values computed from these.
    product: bool
    # Whether it takes the operator's operands only.
    plain: bool
    # Whether each operand's gradient has nodes of its own.
    apart: bool


def formula_of(call: VjpCall) -> Formula:
    """The formula of a gradient: it holds what the operator saved, and what arrived."""
    vjps: list[VjpCall] = [call]
    while isinstance(inner := vjps[-1].inner, VjpCall):
        vjps.append(inner)
    inner = alone(inner)
    if not isinstance(inner, Call):
        return Formula([], True, True, False)
    names = inner.saved(vjps[-1].wrt)
    kept: list[int] = []
    for i in range(call.n_arrays):
        at: int | None = i
        for vjp in vjps:
            at = vjp.kept[at] if at < len(vjp.kept) else None
            if at is None:
                break
        if at == 0 and inner.write:
            continue  # an in-place operator keeps a copy
        if at is None or inner.owners[at] in names:
            kept.append(i)
    plain = DERIVED.isdisjoint(names) and COMPUTED not in names
    op, product = inner.op, inner.op.is_product
    apart = op.name.rstrip("_") == "div" or (product and not op.convolves)
    return Formula(kept, product, plain, apart)


def plan_of(event: State, call: Any, wrt: tuple[int, ...]) -> GradientPlan:
    """The plan for the gradient of an event, whose call is seen as `call`."""
    return event.memoized(
        ("gradient", call, wrt), lambda: GradientPlan(event, call, wrt)
    )


def reaching(event: State, grads: Sequence[Any], wrt: tuple[int, ...]) -> Any:
    """Those of the operands `wrt` that a result with a gradient is computed from.

    One event gives all gradients of an operator, which come from several nodes in
    PyTorch: that of `a * b` with respect to `a` does not depend on `a`.
    """
    kind = event.call.__class__
    if kind is not JvpCall:  # (which may not depend on the value, but on its tangent)
        if kind is not VjpCall or all(g is not None for g in grads):
            return wrt
    there = tuple([g is not None for g in grads])
    return event.memoized(
        ("reaching", there, wrt), lambda: _reaching(event, there, wrt)
    )


def _reaching(event: State, there: Sequence[bool], wrt: tuple[int, ...]) -> Any:
    sources = sources_of(event.call, event.given)
    if sources is None:
        return wrt
    of = frozenset[int]().union(
        *(s for s, given in zip(sources, there, strict=True) if given)
    )
    return wrt if of.issuperset(wrt) else tuple(i for i in wrt if i in of)


def brought_to(rec: Any, grad: Any, meta: Meta, name: str, at: int) -> Any:
    """A gradient brought to the shape and the dtype of its value, as PyTorch does.

    RuntimeError if it can't be; `name` and `at` tell the node and which of its
    gradients it is.
    """
    shape, got = tuple(meta.shape), tuple(grad._tmeta.shape)
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
    dtype = grad._tmeta.dtype
    if dtype is not meta.dtype:
        if not dtype.is_floating_point and dtype.is_complex != meta.dtype.is_complex:
            raise RuntimeError(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == "
                "grad_is_complex) to be true, but got false.  (Could this error "
                "message be improved?  If so, please report an enhancement request to "
                "PyTorch.)"
            )
        grad = cast(rec, grad, meta.dtype)
    return grad


def cast(rec: Any, grad: Any, dtype: Any) -> Any:
    """A gradient in a dtype; None: in its own."""
    if dtype is None or grad._tmeta.dtype is dtype:
        return grad
    if grad._composed:
        return grad.to(dtype)
    return rec.result(rec.call(REGISTRY["_gradient_cast"], (grad, dtype)))


def alike(meta: Meta, grad: Any) -> bool:
    """Whether a gradient has the shape and the dtype of a value, and is where it is."""
    other = grad._tmeta
    return (
        meta.shape == other.shape
        and meta.dtype is other.dtype
        and meta.device is other.device
    )
