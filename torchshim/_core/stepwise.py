"""Recordings run event by event, where a script's structure follows its data.

Where each iteration has another tree, or a sentence of another length, each recording
is new, but its events are not. Instead of a program for each recording there is a
*kernel* for each kind of event (a call and the shapes of its operands), which all
recordings share: compiled, or computed by NumPy where compiling would take longer
(`Hosted`).
"""

from __future__ import annotations

import dataclasses
import functools
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from torchshim._core import checks, integers, interpret, program
from torchshim._core.batching import seen_by
from torchshim._core.call import PythonCall, VjpCall
from torchshim._core.convolutions import in_windows
from torchshim._core.exact import Exact, can_be_exact, is_exact, own
from torchshim._core.host_kernels import HostKernel, function_of, host_kernel
from torchshim._core.interim import Interim
from torchshim._core.lower import (
    HostScalar,
    Lowered,
    called,
    convolved_by,
    elements_of,
    filled,
    read,
)
from torchshim._core.placement import computing_on, platform, put_default
from torchshim._core.program import Compiled, Program
from torchshim._core.state import State

# What `choose` chooses by; `docs/compilation.md` has the choice as tables. Times
# are seconds, as measured.

# Shorter recordings are compiled soon enough, except where they are known to vary.
_LEAST_EVENTS = 64
# The next recording at a line is expected to run seldom if at least `_LEAST` of the
# last `_LAST` that ended there are known, and ran `_FEW_RUNS` times or less on average.
_LEAST, _LAST, _FEW_RUNS = 3, 16, 10

# Kernels: how much longer a run takes for each event that is run alone, and for each
# element (an optimized program would keep it in a register).
_EVENT, _ELEMENT = 10e-6, 1e-9
# NumPy computes an event that may not come again if that takes less.
_ON_HOST = 1e-3
# The time to make a kernel, before any was made; it counts as much as `_AS_MANY`
# others.
_KERNEL, _AS_MANY = 0.035, 8
# Recordings that donate more bytes are always programs: kernels would need two copies.
_COPIED = 64 * 2**20
# Kernels for at most so many elements are compiled fast: the code is as good.
_SMALL = 4096

# NumPy: the time to trace a kind of events, and one that was traced for many sizes.
_TRACE, _SIZED = 3e-3, 0.3e-3
# That of an event besides its equations, and at least for each of its elements.
_HOST_EVENT, _HOST_ELEMENT = 10e-6, 1e-9
# What XLA takes to compile an operator fast, and for a program besides its operators.
_COMPILE, _PROGRAM = 8e-3, 0.02
# NumPy computes a recording at first if compiling it would take at least so long: where
# recordings are known to vary; where those at the line run seldom, and this one has no
# part in a gradient (is *plain*); and otherwise.
_LEAST_VARYING, _LEAST_PLAIN, _LEAST_COMPILE = 0.025, 0.05, 2.0
# Compiling also has to take `_TIMES` times as long as the first run by NumPy.
_TIMES = 3
# It is compiled once its runs have taken one part in `_SHARE` of the time to compile
# it, and `_LEAST_RUNS` runs at the earliest; `_PLAIN_RUNS` if it is plain, as programs
# differ in last bits, and scripts compare what a model gives for the same input.
_SHARE, _LEAST_RUNS, _PLAIN_RUNS = 4, 3, 10
# How many events and elements a recording may have that NumPy computes to the bit.
_EXACT_EVENTS, _EXACT_ELEMENTS = 64, 1 << 20

# Bounds: on kernels, on NumPy's kernels, on kinds of events and lines remembered.
_KERNELS, _HOST_KERNELS, _KINDS, _LINES = 1024, 8192, 20_000, 1000


class Kernel:
    """One call, compiled alone."""

    __slots__ = ("_jitted", "entry", "found")

    def __init__(self, event: State, call: Any) -> None:
        # Its checks, as far as they are known when it has run.
        self.found: list[checks.Check] = []
        self.entry: Compiled | None = Compiled(
            line=event.line,
            events=1,
            outputs=len(event.metas),
            reason=f"{call!r} alone: recordings differ in their structure",
        )
        run = function_of(event, call, self.found)
        if call.convolves:
            run = in_windows(run)
        metas = event.given + event.metas
        rank = max((len(meta.array_shape) for meta in metas), default=0)
        chosen = program.options(rank, convolved_by([event], [call]))
        if elements_of(metas) <= _SMALL:
            chosen = chosen | program.fast_options()
        self._jitted = jax.jit(run, compiler_options=chosen or None)

    def __call__(self, *given: Any) -> tuple[Sequence[Any], Any]:
        entry = self.entry
        if entry is None:
            return self._jitted(*given)
        started = time.perf_counter()
        result = self._jitted(*given)
        if self.entry is not None:  # no other thread was quicker
            self.entry = None
            entry.seconds = time.perf_counter() - started
            _making.append(entry.seconds)
            program.note(entry)
        return result


class Fetched:
    """A call that is compiled, with results for NumPy."""

    __slots__ = ("_kernel", "found")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.found = kernel.found

    def __call__(self, *given: Any) -> tuple[Sequence[Any], Any]:
        outs, report = self._kernel(*given)
        return list(map(np.asarray, outs)), report


class OnHost:
    """A call that NumPy computes, among others that are compiled."""

    __slots__ = ("_kernel", "found")

    def __init__(self, kernel: HostKernel) -> None:
        self._kernel = kernel
        self.found = kernel.found

    def __call__(self, *given: Any) -> tuple[Sequence[Any], Any]:
        with np.errstate(all="ignore"):
            outs, report = self._kernel(*map(np.asarray, given))
        return list(map(own, outs)), None if report is None else put_default(report)


KERNELS: OrderedDict[Any, Kernel] = OrderedDict()
# What NumPy computes; None: what it cannot.
HOST_KERNELS: OrderedDict[Any, HostKernel | None] = OrderedDict()
# Operators, and the dtypes of operands, of which NumPy's results have other bits.
_INEXACT: OrderedDict[Any, bool] = OrderedDict()
# Hash of a kind of events -> how many recordings had some.
_known: OrderedDict[int, int] = OrderedDict()
# What making the last kernels took.
_making: deque[float] = deque(maxlen=256)
# Line -> what ran the last recordings that ended there.
_made: OrderedDict[Any, deque[Any]] = OrderedDict()
# Held while these are used. Threads share them; a finalizer may come in between.
lock = threading.RLock()


def _put(table: OrderedDict[Any, Any], key: Any, value: Any, bound: int) -> Any:
    """Keeps a value in a table, where what was put there longest ago makes room."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > bound:
        table.popitem(last=False)
    return value


_indexing = functools.lru_cache(_KINDS)(integers.indexing)


def kind_of(event: State) -> tuple[Any, ...]:
    """The call that a kernel is made of, and the operands that it is made for."""
    call = event.call
    mask = _indexing(call)
    if any(mask):
        # Any piece of a tensor is taken by the same kernel.
        given = tuple((seen_by(call, m), m.dtype) for m in event.given)
        results = tuple((m.array_shape, m.dtype) for m in event.metas)
        call = integers.generalized(call, mask, given, results) or call
    return call, tuple((m.array_shape, m.dtype) for m in event.given), platform()


def _kernel(kind: tuple[Any, ...], event: State) -> Any:
    if isinstance(kind[0], PythonCall):
        return _passing(kind[0])
    kernel = KERNELS.get(kind) or Kernel(event, kind[0])
    return _put(KERNELS, kind, kernel, _KERNELS)


def _passing(call: PythonCall) -> Callable[..., tuple[Sequence[Any], None]]:
    """Of a function whose backward is Python code: its results are there already."""
    return lambda *given: (given[call.n_inputs :], None)


@dataclasses.dataclass(slots=True)
class Step:
    """One event of a recording: what it takes, and what nobody needs after it."""

    kernel: Callable[..., tuple[Sequence[Any], Any]]
    operands: tuple[int, ...]
    scalars: tuple[HostScalar | int, ...]
    made: range
    dead: tuple[int, ...]


class Reports:
    """What several kernels' checks found, as the one array that a program gives."""

    __slots__ = ("arrays",)

    def __init__(self, arrays: list[Any]) -> None:
        self.arrays = arrays

    @property
    def device(self) -> Any:
        return self.arrays[0].device

    def is_deleted(self) -> bool:
        return False  # nothing of a recording that is run event by event is donated

    def is_ready(self) -> bool:
        return all(array.is_ready() for array in self.arrays)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.concatenate([np.asarray(array) for array in self.arrays], dtype=dtype)


class Stepwise(Interim):
    """A recording that is run event by event, until a program of its own would pay.

    An array is let go of as soon as nothing needs it.
    """

    __slots__ = ("__weakref__", "spared")

    def __init__(
        self,
        lowered: Lowered,
        kinds: Sequence[Any],
        kernel_of: Callable[[tuple[Any, ...], State], Any],
        spared: float,
        enough: int,
        make: Callable[[], Program],
    ) -> None:
        super().__init__(lowered, make)
        self.spared = spared  # seconds that compiling would take
        self._enough = enough
        self._steps = self._plan(kinds, kernel_of)

    def _plan(
        self,
        kinds: Sequence[Any],
        kernel_of: Callable[[tuple[Any, ...], State], Any],
    ) -> list[Step]:
        lowered = self.lowered
        steps: list[Step] = []
        needed = set(lowered.outputs)
        events = list(zip(lowered.calls, lowered.operands, kinds, strict=True))
        for event, operands, kind in reversed(events):
            made = range(event.slot, event.n_slots)
            dead = tuple({*made, *operands} - needed)
            needed.update(operands)
            steps.append(
                Step(
                    kernel=kernel_of(kind, event),
                    operands=operands,
                    scalars=tuple(filled(event, kind[0])),
                    made=made,
                    dead=dead,
                )
            )
        return steps[::-1]

    def _run(self, scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        with jax.enable_x64(True), computing_on(self.lowered.place):
            return self._computed(scalars, inputs)

    def _computed(self, scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        lowered = self.lowered
        given = [inputs[p] for p in lowered.inputs]
        env = dict(zip(lowered.slots, given, strict=True))
        reports: list[Any] = []
        for step in self._steps:
            outs, report = step.kernel(
                *[env[slot] for slot in step.operands], *read(step.scalars, scalars)
            )
            env.update(zip(step.made, outs, strict=True))
            for slot in step.dead:
                del env[slot]
            if report is not None:
                reports.append(report)
        if reports and not lowered.sites:
            lowered.sites[:] = [
                checks.CheckSite(c.error, c.text, called(event.call), event.line)
                for event, step in zip(lowered.calls, self._steps, strict=True)
                for c in getattr(step.kernel, "found", ())
            ]
        return [env[slot] for slot in lowered.outputs], (
            Reports(reports) if reports else None
        )


class Hosted(Stepwise):
    """A recording that NumPy computes event by event, until a program would pay."""

    __slots__ = ()

    def _computed(self, scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        used: list[Any] = [None] * len(inputs)
        for position in self.lowered.inputs:
            used[position] = self._fetched(inputs[position])
        with np.errstate(all="ignore"):
            outs, report = super()._computed(scalars, used)
        # Arrays of their own: these may be views of one another, and of inputs.
        made = list(map(self._own, outs))
        return made, None if report is None else np.asarray(report)

    def _fetched(self, array: Any) -> np.ndarray:
        # In one order, as NumPy sums differently in others.
        return np.asarray(array, order="C")

    def _own(self, array: np.ndarray) -> Any:
        return put_default(np.array(array, order="C"))


def compiled(
    lowered: Lowered,
    donated: Iterable[int],
    replaced: Sequence[int],
    rare: bool,
    entry: Compiled,
) -> Program:
    """A program; its parameters are those of `Program`."""
    entry.events = lowered.n_events
    with computing_on(lowered.place):
        made = Program(lowered, donated, replaced, rare, entry)
    program.note(entry)
    return made


def choose(
    lowered: Lowered,
    donated: Mapping[int, int],
    replaced: Sequence[int],
    rare: bool,
    saves: bool,
    entry: Compiled,
) -> Program | Interim:
    """What runs a recording: a program, or kernels for its events.

    `donated`: position -> bytes of the inputs that a program overwrites. `saves`:
    whether it keeps what a later backward needs.
    """
    entry.events = lowered.n_events

    def make() -> Program:
        return compiled(lowered, donated, replaced, rare, entry)

    if sum(donated.values()) > _COPIED:
        return make()
    with computing_on(lowered.place):
        return _chosen(lowered, rare, saves, bool(donated), entry.line, make)


def _chosen(
    lowered: Lowered,
    rare: bool,
    saves: bool,
    updates: bool,
    line: Any,
    make: Callable[[], Program],
) -> Program | Interim:
    """What runs a recording that overwrites nothing large."""
    short = len(lowered.calls) < _LEAST_EVENTS
    gradients = any(isinstance(event.call, VjpCall) for event in lowered.calls)
    if not (gradients or saves):
        with lock:
            exact = _exact(lowered, make)
        if exact is not None:
            return exact
    plain = not (gradients or saves or updates)
    known = plain or not short or rare
    with lock:
        made: Program | Stepwise | None = None
        if known:
            wasted = _wasted(line)[1] > 0
            varies = rare or (wasted and not short)
            made = _hosted(lowered, updates, varies, wasted and plain, make)
        if made is None and not short:
            made = _stepwise(lowered, line, make)
        if made is None:
            made = make()
        if known:
            last = _made.get(line) or deque[Any](maxlen=_LAST)
            _put(_made, line, last, _LINES).append(weakref.ref(made))
    return made


def _exact(lowered: Lowered, make: Callable[[], Program]) -> Exact | None:
    """What runs a recording by NumPy, if the results have the same bits."""
    events = lowered.calls
    if len(events) > _EXACT_EVENTS or lowered.elements > _EXACT_ELEMENTS:
        return None
    if not (program.fast_options() and can_be_exact(lowered)):
        return None
    # What is known not to be exact is not traced for each shape.
    forms = [_form(event) for event in events]
    if any(form in _INEXACT for form in forms):
        return None
    kinds = [kind_of(event) for event in events]
    kernels: list[HostKernel] = []
    # The last ones first: they are the sums.
    for event, kind, form in [*zip(events, kinds, forms, strict=True)][::-1]:
        if kind in HOST_KERNELS:
            kernel = HOST_KERNELS[kind]
        else:
            kernel = _traced(event, kind[0])
            _put(HOST_KERNELS, kind, kernel, _HOST_KERNELS)
        if kernel is None or not is_exact(kernel):
            _put(_INEXACT, form, True, _HOST_KERNELS)
            return None
        kernels.append(kernel)
    calls = [kind[0] for kind in kinds]
    return Exact(lowered, kernels[::-1], calls, (_COMPILE, _PROGRAM), make)


def _form(event: State) -> Any:
    return event.call.op, type(event.call), tuple([m.dtype for m in event.given])


def _making_time() -> float:
    """Seconds that making a kernel takes."""
    return (sum(_making) + _KERNEL * _AS_MANY) / (len(_making) + _AS_MANY)


def _hosted(
    lowered: Lowered,
    updates: bool,
    rare: bool,
    plain: bool,
    make: Callable[[], Program],
) -> Hosted | None:
    """What runs a recording by NumPy at first, if compiling it would take long.

    What updates something will run again: that is compiled, unless it is rare. `plain`:
    whether it has no part in a gradient, and others at its line ran seldom.
    """
    if (updates and not rare) or not program.fast_options():
        return None
    compiling = _COMPILE * lowered.size + _PROGRAM
    long = compiling >= _LEAST_COMPILE
    if not long and compiling < (
        _LEAST_VARYING if rare else _LEAST_PLAIN if plain else _LEAST_COMPILE
    ):
        return None
    least = _LEAST_RUNS if rare or long else _PLAIN_RUNS
    # Seconds that the first run may take, and each one.
    first = compiling / _TIMES
    each = first if rare or long else compiling / (_SHARE * least)
    running = _HOST_EVENT * len(lowered.calls)
    if running + _HOST_ELEMENT * lowered.elements > min(first, each):
        return None
    kinds = [kind_of(event) for event in lowered.calls]
    found: dict[Any, HostKernel | None] = {}
    for kind, event in zip(kinds, lowered.calls, strict=True):
        if running > min(first, each):
            return None
        if isinstance(kind[0], PythonCall):
            continue
        if kind not in found:
            if kind in HOST_KERNELS:
                kernel = HOST_KERNELS[kind]
            else:
                kernel = _traced(event, kind[0])
                first -= _TRACE if kernel is None or kernel.traced else _SIZED
            found[kind] = _put(HOST_KERNELS, kind, kernel, _HOST_KERNELS)
            if kernel is None and kind not in KERNELS:
                first -= _making_time()
        kernel = found[kind]
        running += _HOST_EVENT if kernel is None else kernel.seconds
    if running > min(first, each):
        return None

    def kernel_of(kind: tuple[Any, ...], event: State) -> Any:
        if isinstance(kind[0], PythonCall):
            return _passing(kind[0])
        return found[kind] or Fetched(_kernel(kind, event))

    enough = max(least, int(compiling / (_SHARE * running)))
    return Hosted(lowered, kinds, kernel_of, compiling, enough, make)


def host_kernels(
    lowered: Lowered, kinds: Sequence[tuple[Any, ...]]
) -> Callable[[tuple[Any, ...], State], Any]:
    """What gives the kernels by which NumPy computes the whole of a recording.

    Raises `interpret.NoRule` where it cannot.
    """
    with lock:
        for kind, event in zip(kinds, lowered.calls, strict=True):
            if kind not in HOST_KERNELS and not isinstance(kind[0], PythonCall):
                _put(HOST_KERNELS, kind, _traced(event, kind[0]), _HOST_KERNELS)

    def kernel_of(kind: tuple[Any, ...], event: State) -> Any:
        if isinstance(kind[0], PythonCall):
            return _passing(kind[0])
        kernel = HOST_KERNELS[kind]
        if kernel is None:
            raise interpret.NoRule
        return kernel

    return kernel_of


def _traced(event: State, call: Any) -> HostKernel | None:
    try:
        return host_kernel(event, call)
    except interpret.NoRule:
        return None


def _stepwise(
    lowered: Lowered, line: Any, make: Callable[[], Program]
) -> Stepwise | None:
    """What runs a recording event by event, if that takes less than compiling it."""
    kinds = [kind_of(event) for event in lowered.calls]
    wanted = {kind for kind in kinds if not isinstance(kind[0], PythonCall)}
    missing = [kind for kind in wanted if kind not in KERNELS]
    # A kernel that two recordings could have used will be of use to the next ones.
    rare = [kind for kind in missing if _known.get(hash(kind), 0) < 2]
    for kind in wanted:
        _put(_known, hash(kind), _known.get(hash(kind), 0) + 1, _KINDS)
    wasted, events = _wasted(line)
    if not events:
        return None
    making = _making_time()
    spared = wasted / events * len(kinds)
    lost = _EVENT * len(kinds) + _ELEMENT * lowered.elements
    # Those that may not come again are left to NumPy where that takes as little.
    tried = dict.fromkeys(rare) if program.fast_options() else {}
    small = {
        kind: event
        for kind, event in zip(kinds, lowered.calls, strict=True)
        if kind in tried and elements_of(event.given + event.metas) <= _SMALL
    }
    others = len(rare) - len(small)
    if others * making + len(small) * _TRACE > spared / 4:
        return None
    if (len(missing) - len(small)) * making + len(small) * _TRACE > wasted:
        return None
    hosted = {kind: _on_host(kind, event) for kind, event in small.items()}
    # Half of the time saved at first may be lost again.
    enough = max(1, int(spared / (2 * lost)))

    def kernel_of(kind: tuple[Any, ...], event: State) -> Any:
        return hosted.get(kind) or _kernel(kind, event)

    return Stepwise(lowered, kinds, kernel_of, spared, enough, make)


def _on_host(kind: tuple[Any, ...], event: State) -> OnHost | None:
    """What computes a kind of events by NumPy; None if that cannot, or takes long."""
    if kind not in HOST_KERNELS:
        _put(HOST_KERNELS, kind, _traced(event, kind[0]), _HOST_KERNELS)
    kernel = HOST_KERNELS[kind]
    return OnHost(kernel) if kernel and kernel.seconds < _ON_HOST else None


def _wasted(line: Any) -> tuple[float, int]:
    """Seconds spent on compiling the last recordings at a line, and their events.

    Zero if that was not wasted, since they ran again and again.
    """
    last = [made for known in _made.get(line, ()) if (made := known()) is not None]
    if len(last) < _LEAST or sum(made.runs for made in last) > _FEW_RUNS * len(last):
        return 0.0, 0
    return sum(map(_cost, last)), sum(len(made.lowered.calls) for made in last)


def _cost(made: Program | Stepwise) -> float:
    """Seconds that compiling a program took, or would have taken."""
    if isinstance(made, Stepwise):
        return made.spared
    return made.known.seconds
