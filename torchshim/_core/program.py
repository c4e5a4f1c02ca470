"""Compiled programs: one XLA executable for a recording, its outputs and donations."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Sequence, Set
from typing import Any

import jax
import numpy as np

try:
    from jax._src.interpreters import partial_eval
except ImportError:  # pragma: no cover
    partial_eval = None

from torchshim._core import dtypes, host_memory
from torchshim._core.extent import lack_of_memory
from torchshim._core.lower import Lowered
from torchshim._core.placement import computing_on, platform, put_default
from torchshim._core.state import IDENTITY, INPUT, MARK, State
from torchshim._errors import OutOfMemoryError


@dataclasses.dataclass(slots=True)
class Compiled:
    """What `explain()` says of one program."""

    line: tuple[str, int] | None
    events: int
    outputs: int
    reason: str
    seconds: float = 0.0

    def __str__(self) -> str:
        where = f"{self.line[0]}:{self.line[1]}" if self.line else "?"
        return (
            f"{where}: {self.events} events, {self.outputs} outputs, "
            f"{self.seconds:.2f} s; {self.reason}"
        )


LOG: deque[Compiled] = deque(maxlen=10_000)
_counter = [0]


def count() -> int:
    """How many programs were compiled so far."""
    return _counter[0]


def compiled_since(start: int) -> list[Compiled]:
    """The programs compiled after the first `start` of them (as far as kept)."""
    new = max(count() - start, 0)
    return list(LOG)[-new:] if new else []


def note(entry: Compiled) -> None:
    """Counts a program that is about to be compiled."""
    LOG.append(entry)
    _counter[0] += 1


# The profiler's: called with a program that ran, when it began, and what it gave.
watchers: list[Callable[[Any, int, Any], None]] = []


# Programs are compiled in two tiers: fast at first where that is not noticed, and fully
# optimized once they have run often; `docs/compilation.md`.

# Programs of at most so many operators (those of an outline count once) are optimized
# at once: that takes XLA a tenth of a second.
SMALL = 12
# Code that was compiled fast takes some 3 ns more for each element that an operator
# reads or writes. Full optimization takes 10 ms more for each operator, and 100 ms for
# the program. So a quarter of that time is lost after this many runs, times operators
# (and ten), divided by elements.
QUARTER = 800_000
# A program is light if it runs at least so often until then: nobody notices how it was
# compiled.
LIGHT_RUNS = 100
# Others are compiled fast only if they update nothing. They are optimized when all of
# that time is lost, after so many runs at the earliest;
FAST_RUNS = 2
# or, where they are one of many variants, after so many.
RARE_RUNS = 20
# What was freed in its first runs, or before them, is given back to the system: it may
# fit nothing that the next runs need. Of programs whose results have so many bytes;
# looking for what is free takes milliseconds in a large process.
_SETTLING, _ROOM = 3, 1 << 24
# An output of so many bytes may be more than there is memory for. Then the process
# aborts or hangs if the results are read without having waited for the program.
LARGE = 1 << 30
# Options that save most of XLA's work: no LLVM passes, the older of its two code
# generators, no threads. The code takes two to eight times as long to run.
_FAST = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
# The kernels that XLA takes from YNNPACK for products and sums write outside of their
# memory where operands have seven dimensions, some of them of size 1 (jaxlib 0.10.2).
MANY_DIMENSIONS = 7
_WITHOUT_YNNPACK = {"xla_cpu_experimental_ynn_fusion_type": ""}
# Its convolutions use one thread, and without AVX-512 gradients of weights take five
# times as long; those of XLA have no fast kernel for float64.
_OWN_CONVOLUTIONS = {
    "xla_cpu_experimental_ynn_fusion_type": (
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
    )
}
_DOUBLE = {dtypes.float64, dtypes.complex128}


def fast_options() -> dict[str, Any]:
    """XLA's options for a fast compilation, as far as this XLA knows them."""
    return known(tuple(_FAST.items()))


def options(rank: int, convolved: Set[dtypes.dtype]) -> dict[str, Any]:
    """XLA's options for values of up to so many dimensions, convolutions of dtypes."""
    if rank >= MANY_DIMENSIONS:
        return known(tuple(_WITHOUT_YNNPACK.items()))
    if convolved and not convolved & _DOUBLE:
        return known(tuple(_OWN_CONVOLUTIONS.items()))
    return {}


def known(wanted: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """Options for the CPU, as far as this XLA knows them; none on other devices."""
    return _known(wanted) if platform() == "cpu" else {}


@functools.cache
def _known(wanted: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    try:
        jax.jit(lambda: 0, compiler_options=dict(wanted))()
    except jax.errors.JaxRuntimeError:
        if len(wanted) == 1:
            return {}
        return {k: v for each in wanted for k, v in _known((each,)).items()}
    return dict(wanted)


def raise_lack_of_memory(error: Exception) -> None:
    """Raises PyTorch's error if that is what JAX's says."""
    text = str(error)
    if text.startswith("RESOURCE_EXHAUSTED"):
        name = {"gpu": "CUDA"}.get(platform(), platform())
        wanted = re.search(r"allocating (\d+) bytes", text)
        if name == "cpu" and wanted is not None:
            raise lack_of_memory(int(wanted[1])) from error
        raise OutOfMemoryError(
            f"{name} out of memory. {text.partition(': ')[2]}"
        ) from error


def fast_runs(lowered: Lowered, updates: bool, rare: bool) -> int:
    """How often a program runs as compiled fast; 0: it is optimized at once.

    A program that `updates` nothing may well run only once, and so may a `rare` one.
    """
    if not fast_options():
        return 0
    runs = QUARTER * (lowered.size + 10) // max(lowered.elements, 1)
    if runs >= LIGHT_RUNS:
        return runs
    if lowered.size <= SMALL:
        return 0
    if rare:
        return RARE_RUNS
    return 0 if updates else max(FAST_RUNS, 4 * runs)


def _on_device(array: Any) -> Any:
    """An array that can be donated, though it may have been made on the host.

    So the first step of a loop runs the same program as the others.
    """
    return put_default(array.copy()) if type(array) is np.ndarray else array


# Bytes that a program's first run donates copies of.
_SPARED = 1 << 26


def _spared(gift: list[Any]) -> list[Any]:
    """Copies to donate in a first run: an exception at any moment loses nothing.

    A first run goes through Python code of JAX's. There an exception that another
    thread sets for this one may come after the program has run, but before its results
    are here.
    """
    if platform() != "cpu" or sum(array.nbytes for array in gift) > _SPARED:
        return gift
    return [x if x.committed else put_default(np.array(x)) for x in gift]


class Program:
    """An executable. Called with the host vector of scalars and all of a recording's
    inputs; puts the outputs and the checks' report (None without checks) in a list.

    `donated`: positions of inputs; `replaced`: those of inputs that outputs are the new
    values of, in the outputs' order. `rare`: whether it is taken for one that will not
    run often. `known`: what is told of it.
    """

    __slots__ = (
        "__weakref__",
        "_jit",
        "_jitted",
        "_optimized_at",
        "_settled_at",
        "entry",
        "inputs",
        "known",
        "large",
        "lowered",
        "runs",
    )

    def __init__(
        self,
        lowered: Lowered,
        donated: Iterable[int],
        replaced: Sequence[int],
        rare: bool,
        known: Compiled,
    ) -> None:
        # What `explain()` says; `entry` where the next run compiles, which fills in the
        # time.
        self.known = known
        self.entry: Compiled | None = known
        self.lowered = lowered
        fn = self.lowered.fn
        given = frozenset(donated)
        # Donated inputs are a separate argument list, so one flag covers them.
        inputs = self.lowered.inputs
        kept = [p for p in inputs if p not in given]
        gifts = [p for p in replaced if p in given and p in inputs]
        gifts += [p for p in inputs if p in given and p not in gifts]
        order = {p: i for i, p in enumerate(inputs)}

        def run(scalars: Any, gift: Sequence[Any], rest: Sequence[Any]) -> Any:
            inputs: list[Any] = [None] * len(order)
            for p, x in zip(gifts, gift, strict=True):
                inputs[order[p]] = x
            for p, x in zip(kept, rest, strict=True):
                inputs[order[p]] = x
            return fn(scalars, inputs)

        self.inputs = tuple(gifts), tuple(kept)
        chosen = options(self.lowered.rank, self.lowered.convolved)
        self._jit = functools.partial(
            jax.jit,
            run,
            donate_argnums=(1,) if gifts else (),
            compiler_options=chosen or None,
        )
        # Whether an output is `LARGE`; None before the first run.
        self.large: bool | None = None
        self._settled_at = 0
        self.runs = 0
        fast = fast_runs(self.lowered, bool(gifts), rare)
        # The run for which it is compiled again, fully optimized; 0: it is already.
        self._optimized_at = fast + 1 if fast else 0
        if fast:
            self._jitted = self._jit(compiler_options=chosen | fast_options())
        else:
            self._jitted = self._jit()

    def __call__(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        place = self.lowered.place
        if place is None:
            self._run(scalars, inputs, result)
        else:
            with computing_on(place):
                self._run(scalars, inputs, result)

    def _run(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        self.runs += 1
        entry = self.entry
        if self.runs == self._optimized_at:
            entry = self._optimize()
        gifts, kept = self.inputs
        gift = [inputs[p] for p in gifts]
        if np.ndarray in map(type, gift):
            gift = list(map(_on_device, gift))
        if entry is not None:
            gift = _spared(gift)
        args = scalars, gift, [inputs[p] for p in kept]
        # The call and the store of its result run in C, with no point between them
        # where Ctrl-C could lose the result after the inputs were donated.
        started = 0.0 if entry is None else time.perf_counter()
        began = time.perf_counter_ns() if watchers else 0
        try:
            with jax.enable_x64(True):
                result.extend(itertools.starmap(self._jitted, (args,)))
            if self.large is not False:
                self._wait(result)
        except jax.errors.JaxRuntimeError as error:
            raise_lack_of_memory(error)
            raise
        for watch in watchers:
            watch(self, began, result[0])
        if entry is not None:
            entry.seconds = time.perf_counter() - started
            self.entry = None
        if self.runs <= self._settled_at:
            host_memory.trim()
        if self.runs == self._optimized_at - 1:
            self.entry = self.known  # what holds Ctrl-C back looks at it

    def _wait(self, result: list[Any]) -> None:
        """Waits for a large program; without memory for it there is no result."""
        if self.large is None:
            sizes = [leaf.nbytes for leaf in jax.tree_util.tree_leaves(result)]
            self.large = max(sizes, default=0) >= LARGE
            self._settled_at = _SETTLING if sum(sizes) >= _ROOM else 0
        if self.large:
            try:
                jax.block_until_ready(result)
            except jax.errors.JaxRuntimeError:
                result.clear()
                raise

    def _optimize(self) -> Compiled:
        self._jitted = self._jit()
        reason = f"run {self.runs} times: compiled again, optimized"
        self.known = dataclasses.replace(self.known, reason=reason, seconds=0.0)
        note(self.known)
        return self.known


class Rearranged:
    """A program that is run with other arguments than a recording has."""

    __slots__ = ("program",)

    program: Any

    @property
    def entry(self) -> Compiled | None:
        return self.program.entry

    @property
    def lowered(self) -> Lowered:
        return self.program.lowered


class Copying(Rearranged):
    """A program, run with copies of some inputs that it donates but others hold."""

    __slots__ = ("copied",)

    def __init__(self, program: Program, copied: tuple[int, ...]) -> None:
        self.program = program
        self.copied = copied

    def __call__(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        given = list(inputs)
        with jax.enable_x64(True), computing_on(self.lowered.place):
            for position in self.copied:
                given[position] = given[position].copy()
        self.program(scalars, given, result)


class ProgramCache:
    """What runs the recordings, the least recently used dropped first.

    Threads share it: what one of them looks through, others change meanwhile.
    """

    def __init__(self, bound: int = 512) -> None:
        self.bound = bound
        # How many were added so far: recordings that had not been met (or not lately).
        self.added = 0
        self._programs: OrderedDict[Any, Any] = OrderedDict()
        # The rest of their keys by the first part, the state.
        self._variants: dict[State, dict[Any, None]] = {}

    def get(self, key: tuple[Any, ...]) -> Any:
        program = self._programs.get(key)
        if program is not None:
            try:
                self._programs.move_to_end(key)
            except KeyError:
                pass  # just dropped
        return program

    def add(self, key: tuple[Any, ...], program: Any) -> None:
        self._programs[key] = program
        self._variants.setdefault(key[0], {})[key[1:]] = None
        self.added += 1
        if len(self._programs) > self.bound:
            self._forget_variant(self._programs.popitem(last=False)[0])

    def _forget_variant(self, key: tuple[Any, ...]) -> None:
        variants = self._variants.get(key[0], {})
        variants.pop(key[1:], None)
        if not variants:
            self._variants.pop(key[0], None)

    def variants_of(
        self, state: State
    ) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """(outputs, donated inputs) of the programs known for a state."""
        known = list(self._variants.get(state, ()))
        return [variant for variant in known if (state, *variant) in self._programs]

    def __len__(self) -> int:
        return len(self._programs)

    def latest(self) -> list[tuple[Any, ...]]:
        """The keys of programs, the most recently used first."""
        return list(self._programs)[::-1]

    def forget(self, root: State, kept: Container[int]) -> None:
        """Drops the programs of states below `root` that left the trie."""
        for key in list(self._programs):
            if key[0].top.parent is root and id(key[0]) not in kept:
                self._programs.pop(key, None)
                self._forget_variant(key)


CACHE = ProgramCache()


def forget_traces() -> None:
    """Clears what JAX keeps of its functions' traces, one for each shape they met.

    JAX keeps them without a bound, some 20 KB for a small program. They are needed
    while a program is made, not when it runs. Does nothing if this JAX keeps them
    elsewhere.
    """
    trace = getattr(partial_eval, "trace_to_jaxpr", None)
    clear = getattr(trace, "cache_clear", None)
    if clear is not None:
        clear()


def matched_donations(
    candidates: Sequence[tuple[int, Any]], outputs: Sequence[Any]
) -> tuple[int, ...]:
    """Which inputs an output of the same shape and dtype can take the place of."""
    room: dict[Any, int] = {}
    for aval in outputs:
        room[aval] = room.get(aval, 0) + 1
    chosen: list[int] = []
    for position, aval in candidates:
        if room.get(aval, 0) > 0:
            room[aval] -= 1
            chosen.append(position)
    return tuple(chosen)


def ordered(state: State, outputs: Sequence[int]) -> tuple[int, ...]:
    """The outputs in the order that a program gives them in.

    JAX gives the memory of the k-th donated input to the k-th output of the same shape
    and dtype. XLA copies the input first, unless it is the old value of that very
    output. So the outputs that replace an input come first, in the order of the inputs.
    """
    successors = replaced_inputs(state, outputs)
    return *successors, *[slot for slot in outputs if slot not in successors]


def replaced_inputs(state: State, outputs: Sequence[int]) -> dict[int, int]:
    """Output slot -> position of the input that it is the new value of."""
    before: dict[int, int] = {}
    positions: dict[int, int] = {}
    for event in state.path():
        if event.kind == INPUT:
            positions[event.slot] = event.n_inputs - 1
        elif event.kind == IDENTITY:
            before[event.slot] = event.operands[0]
        elif event.kind == MARK and event.write is not None:
            old, new = event.operands
            before.setdefault(new, old)
        elif event.write is not None:
            before[event.slot] = event.write
        before.update((new, old) for old, new in event.mutated())
    found: dict[int, int] = {}
    for slot in outputs:
        first, seen = slot, {slot}
        while first in before and before[first] not in seen:
            first = before[first]
            seen.add(first)
        position = positions.get(first)
        if position is not None and position not in found.values():
            found[slot] = position
    return found
