"""What NumPy computes in place of events.

A kind of events is a call and the shapes of its operands. Of those that differ in sizes
alone, the second one is traced for many sizes (`polymorphic`), too. That is believed
once it has given, to the bit, what the traces for two of the sizes give.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from torchshim._core import checks, interpret
from torchshim._core.avals import Avals, abstract, known_results, trace_of
from torchshim._core.call import Call, VjpCall
from torchshim._core.dtypes import from_array_dtype
from torchshim._core.lower import filled, has_checks
from torchshim._core.polymorphic import (
    Derive,
    Polymorphic,
    Shape,
    least_of,
    sizes_in,
    symbols_between,
    told,
    with_products,
)
from torchshim._core.state import State

# For how many sizes a trace for many must give the same; how many of a form may fail.
_PROOFS, _FAILURES = 2, 2
# Bounds: on what is remembered of calls that differ in sizes; on such calls.
_SHAPES, _TRACES, _FORMS = 8, 8, 2048


def function_of(
    event: State, call: Any, sites: list[checks.Check]
) -> Callable[..., tuple[Sequence[Any], Any]]:
    """A call of operands and runtime scalars; its checks are put into `sites`."""
    count, checked = len(event.operands), has_checks(event)

    def run(*given: Any) -> tuple[Sequence[Any], Any]:
        arrays, values = given[:count], given[count:]
        outs = call.apply(arrays, values)
        found = call.check(arrays, values) if checked else []
        sites[:] = [dataclasses.replace(c, bad=None, value=0) for c in found]
        return outs, checks.pack(found) if found else None

    return run


# Name of an operator -> the same of NumPy's arrays, where that is one of its functions
# and its equations are many. It is believed once it has given the same as these, to the
# bit, as often as a trace for many sizes.
DIRECT: dict[str, Callable[..., Any]] = {}


def direct(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares what computes an operator without checks and promotion directly."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        DIRECT[name] = function
        return function

    return declare


class Direct:
    """Such a function with a call's static arguments."""

    __slots__ = ("_call", "_count")

    # Operators and dtypes -> for how many calls one gave the same.
    proofs: ClassVar[dict[Any, int]] = {}

    def __init__(self, call: Call) -> None:
        self._call = call
        self._count = call.n_arrays

    def __call__(self, *given: Any) -> Any:
        call, count = self._call, self._count
        return DIRECT[call.op.name](*call.arguments(given[:count], given[count:]))

    @classmethod
    def of(cls, call: Any, plan: interpret.Plan, given: Sequence[Any]) -> Any:
        """What computes a call directly; None if nothing does."""
        if type(call) is not Call or call.write or call.op.name not in DIRECT:
            return None
        key = call.op, tuple([aval.dtype for aval in given])
        made, proofs = cls(call), cls.proofs.get(key, 0)
        if proofs < _PROOFS:
            if not _give_the_same(plan, lambda *xs: [made(*xs)], given):
                return None
            cls.proofs[key] = proofs + 1
        return made


class HostKernel:
    """One call, computed by NumPy."""

    __slots__ = ("direct", "found", "plan", "seconds", "traced")

    def __init__(
        self,
        plan: interpret.Plan,
        found: list[checks.Check],
        traced: bool,
        direct: Direct | None = None,
    ) -> None:
        self.direct = direct
        self.plan = plan
        # (Kernels are kept by the thousand, and each list is one more for Python's
        # collector.)
        self.found: Sequence[checks.Check] = found or ()
        # What a run takes, estimated.
        self.seconds = plan.seconds
        # Whether it was traced for these sizes alone.
        self.traced = traced

    def __call__(self, *given: Any) -> tuple[Sequence[Any], Any]:
        if self.direct is not None:
            return (np.asarray(self.direct(*given)),), None
        made = self.plan(*given)
        return (made[:-1], made[-1]) if self.found else (made, None)


class Trace:
    """A call traced for many sizes, and for how many it was proved to be right."""

    __slots__ = ("found", "function", "n_results", "proofs")

    def __init__(
        self, event: State, call: Any, sizes: Any, dtypes: Any, least: Any
    ) -> None:
        self.n_results = len(event.metas)
        self.found: list[checks.Check] = []

        def make(numbers: tuple[Any, ...]) -> Callable[..., Any]:
            return function_of(event, with_numbers(call, numbers), self.found)

        derive, derived = None, ()
        if type(call) is VjpCall:
            derive, derived = _results_of(call), range(len(call.kept), call.n_arrays)
        self.function = Polymorphic(make, sizes, dtypes, least, derive, derived)
        self.proofs = 0


def _results_of(call: VjpCall) -> Derive:
    """What gives the shapes of a gradient's cotangents: those of the call's results."""

    def shapes(numbers: tuple[Any, ...], arrays: Sequence[Any]) -> list[Any]:
        own = with_numbers(call, numbers)
        given = iter(arrays)
        operands = [
            next(given) if a is None else jax.ShapeDtypeStruct(a[0], a[1].np)
            for a in own.absent
        ]
        outs = jax.eval_shape(own.inner.apply, operands, list(arrays[call.n_arrays :]))
        return [out.shape for out, there in zip(outs, call.cts, strict=True) if there]

    return shapes


class Form:
    """Calls that differ in sizes alone: of their operands, or among their arguments."""

    __slots__ = ("failures", "seen", "traces")

    def __init__(self) -> None:
        self.seen: deque[tuple[Shape, ...]] = deque(maxlen=_SHAPES)
        self.traces: deque[Trace] = deque(maxlen=_TRACES)
        self.failures = 0

    def of(self, sizes: tuple[Shape, ...]) -> tuple[Trace, HostKernel] | None:
        """What was traced for sizes like these, and the kernel for them."""
        for trace in [*self.traces]:
            found = trace.function.sizes_in(sizes)
            if found is not None:
                try:
                    plan = trace.function.plan(found)
                except interpret.NoRule:
                    self.drop(trace)
                else:
                    texts = [told(check.text, found) for check in trace.found]
                    pairs = zip(trace.found, texts, strict=True)
                    sites = [dataclasses.replace(c, text=t) for c, t in pairs]
                    return trace, HostKernel(plan, sites, False)
        return None

    def results(self, sizes: tuple[Shape, ...]) -> list[tuple[Shape, Any]] | None:
        """Shapes and dtypes of results, by what was proved for sizes like these."""
        for trace in [*self.traces]:
            if trace.proofs >= _PROOFS:
                found = trace.function.sizes_in(sizes)
                if found is not None:
                    # (Behind the results there may be what checks found.)
                    return trace.function.results(found)[: trace.n_results]
        return None

    def drop(self, trace: Trace) -> None:
        self.traces.remove(trace)
        self.failures += 1

    def learn(self, event: State, call: Any, sizes: Any, dtypes: Any) -> None:
        """Traces the call for many sizes if it was seen with others before."""
        if sizes in self.seen:
            return
        between = {o: symbols_between(sizes, o) for o in self.seen}
        self.seen.append(sizes)
        found = {
            others: symbols
            for others, symbols in between.items()
            if symbols is not None and sizes_in(symbols, sizes) is not None
        }
        if self.failures >= _FAILURES or not found:
            return
        # Two that have a size in common by chance would do for few others.
        others = max(found, key=lambda o: _symbols(found[o]))
        symbols = found[others]
        for shapes, least in (
            (symbols, {}),
            (with_products(sizes, others, symbols), {}),
            (symbols, least_of(symbols, sizes, others)),
        ):
            if shapes is not None:
                try:
                    self.traces.append(Trace(event, call, shapes, dtypes, least))
                    return
                except interpret.NoRule:
                    pass
        self.failures += 1


def _symbols(shapes: Sequence[Sequence[int | str]]) -> tuple[int, int]:
    """How many symbols there are, and in how many places."""
    names = [size for shape in shapes for size in shape if isinstance(size, str)]
    return len({*names}), len(names)


FORMS: OrderedDict[Any, Form] = OrderedDict()


def _form_of(
    call: Any, shapes: Sequence[Shape], dtypes: Sequence[Any]
) -> tuple[Any, tuple[Shape, ...]]:
    """The key of a call's form, and its sizes: those of its operands and its own."""
    rest, numbers = without_numbers(call)
    return (rest, tuple(map(len, shapes)), tuple(dtypes)), (*shapes, numbers)


def _told(call: Any, given: Avals) -> Avals | None:
    """Shapes and dtypes of a call's results, where they need no trace of their own."""
    if not FORMS:
        return None
    arrays, scalars = abstract(call, given)
    avals = arrays + scalars
    key, sizes = _form_of(call, [a.shape for a in avals], [a.dtype for a in avals])
    form = FORMS.get(key)
    found = None if form is None else form.results(sizes)
    if found is None:
        return None
    return tuple([(shape, from_array_dtype(dtype)) for shape, dtype in found])


known_results.append(_told)


def host_kernel(event: State, call: Any) -> HostKernel:
    """What computes a kind of events; raises `NoRule` where NumPy cannot."""
    shapes: list[Shape] = [m.array_shape for m in event.given]
    dtypes: list[Any] = [m.dtype.np for m in event.given]
    for v in filled(event, call):
        integer = isinstance(v, int) or v.integer
        shapes.append(())
        dtypes.append(np.dtype(np.int64 if integer else np.float64))
    key, sizes = _form_of(call, shapes, dtypes)
    form = FORMS.get(key) or Form()
    FORMS[key] = form
    FORMS.move_to_end(key)
    if len(FORMS) > _FORMS:
        FORMS.popitem(last=False)
    known = form.of(sizes)
    given = [jax.ShapeDtypeStruct(s, d) for s, d in zip(shapes, dtypes, strict=True)]
    if known is not None and known[0].proofs >= _PROOFS:
        known[1].direct = Direct.of(call, known[1].plan, given)
        return known[1]
    found: list[checks.Check] = []
    if has_checks(event):
        plan = interpret.plan(function_of(event, call, found), given)
    else:
        closed = trace_of(call, tuple([(m.array_shape, m.dtype) for m in event.given]))
        plan = interpret.Plan(interpret.equations(closed))
    if known is None:
        form.learn(event, call, sizes, dtypes)
        known = form.of(sizes)
    if known is not None:
        trace, other = known
        # Texts of checks may have sizes in them that are computed of those of arrays.
        if [*other.found] == found and _give_the_same(plan, other.plan, given):
            trace.proofs += 1
        else:
            form.drop(trace)
    return HostKernel(plan, found, True, Direct.of(call, plan, given))


def _give_the_same(plan: Any, other: Any, given: Sequence[Any]) -> bool:
    """Whether two plans give the same, to the bit, of some arrays."""
    random = np.random.default_rng(0)
    arrays = [
        random.integers(0, 2, aval.shape).astype(aval.dtype)
        if aval.dtype.kind in "biu"
        else random.standard_normal(aval.shape).astype(aval.dtype)
        for aval in given
    ]
    with np.errstate(all="ignore"):
        made = plan(*arrays)
        try:
            return all(map(_alike, made, other(*arrays)))
        except Exception:
            return False  # what was made for symbols fails for these sizes


def _alike(x: Any, y: Any) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    return (x.shape, x.dtype) == (y.shape, y.dtype) and x.tobytes() == y.tobytes()


# -- numbers among a call's arguments -------------------------------------------------


def without_numbers(call: Any) -> tuple[Any, tuple[int, ...]]:
    """What a call is but for the integers among its static arguments, and these.

    Those of a gradient have the sizes of operands that it does not get the values of.
    """
    numbers: list[int] = []
    if type(call) is VjpCall:
        inner, of_inner = without_numbers(call.inner)
        absent = [a and (tuple(map(type, a[0])), a[1]) for a in call.absent]
        sizes = [n for a in call.absent if a is not None for n in a[0]]
        rest = VjpCall, inner, call.wrt, call.cts, tuple(absent), call.checked
        return rest, (*sizes, *of_inner)
    if type(call) is not Call:
        return call, ()
    rest = [
        tuple([_noted(n, numbers) for n in entry])
        if isinstance(entry, tuple)
        else _noted(entry, numbers)
        for entry in call.template
    ]
    return (call.op, tuple(rest), call.default_dtype, call.write), tuple(numbers)


def _noted(entry: Any, numbers: list[int]) -> Any:
    # Numbers of other types are told apart, as those of operands are.
    if type(entry) is int:
        numbers.append(entry)
        return int
    return entry if entry.__hash__ is None else (type(entry), entry)


def with_numbers(call: Any, numbers: tuple[Any, ...]) -> Any:
    """A call with others in place of the integers that `without_numbers` gives."""
    if not numbers:
        return call
    return _with(call, iter(numbers))


def _with(call: Any, numbers: Iterator[Any]) -> Any:
    if type(call) is VjpCall:
        absent = tuple(
            [
                a if a is None else (tuple([next(numbers) for _ in a[0]]), a[1])
                for a in call.absent
            ]
        )
        inner = _with(call.inner, numbers)
        return VjpCall(inner, call.wrt, call.cts, absent, call.checked)
    if type(call) is not Call:
        return call
    template = [
        tuple([next(numbers) if type(n) is int else n for n in entry])
        if isinstance(entry, tuple)
        else next(numbers)
        if type(entry) is int
        else entry
        for entry in call.template
    ]
    return Call(call.op, tuple(template), call.default_dtype, call.write)
