"""Which operands the results of a gradient are computed from.

Under `create_graph` a gradient requires grad where something that it was computed from
does: that of a product by one factor holds the other, that of a sum holds neither.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from torchshim._core.avals import Avals, trace_of
from torchshim._core.call import Call, VjpCall
from torchshim._core.forward import JvpCall
from torchshim._core.interpret import parts_of_scan
from torchshim._core.meta import Meta

# Operators of two factors, of which one may be a number.
PRODUCTS = frozenset({"mul", "div", "mul_", "div_"})


def is_telling(call: Any, metas: Sequence[Meta]) -> bool:
    """Whether this is a derivative that PyTorch's formula takes no more for than JAX.

    Those of operators of one tensor are left out where PyTorch keeps that: the formulas
    hold it, even where the derivative is a constant (`x**1`). A reduction of a number
    passes the gradient on.
    """
    kind = call.__class__
    if kind not in (VjpCall, JvpCall):
        return False
    while isinstance(call, VjpCall | JvpCall):
        call = call.inner
    if not isinstance(call, Call) or _replaces_part(call):
        return False
    wrt = [i for i in range(call.n_arrays) if call.differentiable(i)]
    if kind is JvpCall and call.op.name in PRODUCTS:
        return False  # where one operand has a tangent, the other's is taken for zero
    if set(wrt).isdisjoint(call.needs(wrt)):
        return True
    if kind is JvpCall:
        return False
    if len(wrt) > 1 or "intermediate" in call.saved(wrt):
        return True
    return call.op.layout != "preserve" and not metas[wrt[0]].shape


def is_one_node(call: Any) -> bool:
    """Whether this is a derivative of which PyTorch's one node gives all parts.

    Where no gradient flows, none has a history.
    """
    if not isinstance(call, VjpCall):
        return False
    while isinstance(call, VjpCall | JvpCall):
        call = call.inner
    return isinstance(call, Call) and call.op.one_node


def sources_of(call: Any, metas: Sequence[Meta]) -> tuple[frozenset[int], ...] | None:
    """For each result the operands that it depends on, where that is telling."""
    if any(m.batch or m.levels for m in metas) or not is_telling(call, metas):
        return None
    return dependence(call, tuple((m.shape, m.dtype) for m in metas))


def _replaces_part(call: Call) -> bool:
    part = call.op.part
    if callable(part):
        part = part(*call.arguments([None] * call.n_arrays, call.placeholders()))
    return bool(part)


@functools.lru_cache(maxsize=1024)
def dependence(call: Any, avals: Avals) -> tuple[frozenset[int], ...]:
    """For each result of a call the operands that it depends on."""
    jaxpr = trace_of(call, avals).jaxpr
    # Nothing is said of runtime scalars, which are the last.
    given = [frozenset([i] if i < len(avals) else []) for i in range(len(jaxpr.invars))]
    return tuple(reached(jaxpr, given))


def reached(jaxpr: Any, given: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """What the outputs of a jaxpr are computed from, as its inputs are."""
    known: dict[Any, frozenset[int]] = dict(zip(jaxpr.invars, given, strict=True))

    def of(variable: Any) -> frozenset[int]:
        # Literals and constants are not among what is known.
        return (
            known.get(variable, frozenset()) if _is_variable(variable) else frozenset()
        )

    for equation in jaxpr.eqns:
        parts = [of(v) for v in equation.invars]
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        inner = getattr(inner, "jaxpr", inner)
        if equation.primitive.name == "scan":
            outs = _reached_by_loop(*parts_of_scan(equation), inner, parts)
        elif inner is not None and len(inner.invars) == len(parts):
            outs = reached(inner, parts)
        else:
            outs = [frozenset[int]().union(*parts)] * len(equation.outvars)
        known.update(zip(equation.outvars, outs, strict=False))
    return [of(v) for v in jaxpr.outvars]


def _reached_by_loop(
    fixed: int, handed: int, body: Any, parts: list[frozenset[int]]
) -> list[frozenset[int]]:
    """As `reached`, of a loop: what an iteration hands on, the next takes."""
    first, last = fixed, fixed + handed
    while True:
        outs = reached(body, parts)
        carried = [a | b for a, b in zip(parts[first:last], outs, strict=False)]
        if carried == parts[first:last]:
            return carried + outs[len(carried) :]
        parts = [*parts[:first], *carried, *parts[last:]]


def _is_variable(atom: Any) -> bool:
    return not hasattr(atom, "val")
