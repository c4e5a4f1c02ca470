"""The recorder: one for each thread, and the only way into a recording.

A hit costs one dictionary look-up, made by the functions that `_bind` generates. The
classes that `Recorder` inherits from are the way around it: `Trie` adds what is new at
a place, `Entering` brings tensors in, `Viewing` and `Writing` keep track of shared
memory, `Transforming` of `vmap` and `grad`. This module decides when a recording ends,
and hands out what its program computed.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from jax.errors import JaxRuntimeError

from torchshim._core import dtypes
from torchshim._core.determinism import determinism
from torchshim._core.flush import Alive, find_alive, flush
from torchshim._core.levels import FORWARD, Level, Transforming
from torchshim._core.loops import ScriptLoops
from torchshim._core.meta import Meta
from torchshim._core.precision import precision
from torchshim._core.program import raise_lack_of_memory
from torchshim._core.signals import from_signal
from torchshim._core.state import INPUT, ROOT, Recording, State
from torchshim._core.storage import (
    SLOT_BITS,
    Storage,
    TensorBase,
    hidden_writes,
    next_sequence,
    value_lock,
)
from torchshim._core.threads import by_node, keep
from torchshim._core.trie import recorders
from torchshim._core.undo import Undo
from torchshim._core.varying import Sequences
from torchshim._core.versions import versions_of
from torchshim._core.waiting import Waiter

# A recording that grows past this many events is flushed where an iteration of the
# script's loop begins,
LENGTH_BOUND = 2000
# or when it has grown by so many more.
SEARCH_BOUND = 1000
# During a backward more are allowed, as everything that the rest of it needs has to be
# kept where it is cut.
WALK_BOUND = 8000

# Called after each operator in anomaly mode, with the recorder and the depth before.
watchers: list[Any] = []

_making = threading.Lock()
_idle: list[Recorder] = []


class ForwardInputs:
    """The inputs of a custom function while its forward runs, which may write to them.

    `slots`, `metas`: those that the tensors had at its start; `outer`: the inputs of
    the function whose forward called it, if one did.
    """

    __slots__ = ("kept", "metas", "outer", "slots", "tensors")

    def __init__(
        self,
        tensors: Sequence[TensorBase],
        slots: Sequence[int],
        metas: Sequence[Meta],
        outer: ForwardInputs | None,
    ) -> None:
        self.tensors = tensors
        self.slots = slots
        self.metas = metas
        self.outer = outer
        # Tensors on these slots, if the recording has ended since.
        self.kept: Sequence[TensorBase] = ()

    def keep(self, rec: Recorder) -> None:
        """Call this before the recording ends that the slots belong to."""
        if not self.kept:
            given = zip(self.tensors, self.slots, self.metas, strict=True)
            self.kept = [
                rec.tensor_on(slot, meta, TensorBase)
                if meta.requires_grad and not meta.leaf
                else tensor
                for tensor, slot, meta in given
            ]
        if self.outer is not None:
            self.outer.keep(rec)


class Recorder(Transforming):
    """Records what one thread does."""

    def __init__(self, number: int) -> None:
        self.id = number
        self.first_slot = number << SLOT_BITS
        # Held during a flush, and while another thread looks at the recording.
        self.lock = threading.RLock()

        # -- The trie.
        self.root = State(None, ROOT, None, first_slot=self.first_slot)
        self.state = self.root  # where the running recording stands
        self.states = 0  # how many there are
        self.flushes = 0  # how many there were

        # -- Modes: everything that decides what an operator means (`set_mode`).
        self.grad = True
        self.inference = False
        # Which levels differentiate, see `Meta.levels`; bit 0 is autograd itself.
        self.tracking = 1
        # What casts operands before an operator is recorded (`_autocast`), if anything.
        self.autocast: Any = None
        # Whether a mode is to see the operators called (`_overrides`).
        self.intercepted = False
        # All of these in one integer, as it is in keys. Hot paths look up with `mode`,
        # which is None where every operator has to take the slow path.
        self.bits = 0
        self.mode: Any = 0
        # Whether tangents are followed (forward mode).
        self.forward = True
        # Whether a new `.grad` takes its leaf's memory order, whatever its own is.
        self.lays_out_grads = True

        # -- Levels of function transforms: see `Transforming`.
        self.levels: list[Level] = []
        self.last_level = self.level_base = self.held_levels = 0
        self.without_levels = ([], 0)
        self.into_out = False
        self.level_graphs = weakref.WeakKeyDictionary()
        self.base_tangents = weakref.WeakKeyDictionary()
        self.crossed = []

        # -- The running recording.
        self.recording = Recording(next_sequence())
        # Its runtime scalars and its inputs' arrays; `State` tells which are whose.
        self.scalars: list[Any] = []
        self.inputs: list[Any] = []
        # Tensors that may be pending in it, each of them at least once.
        self.live: list[weakref.ref[TensorBase]] = []
        # Storages whose base value has a slot, by their ids.
        self.storages: dict[int, Storage] = {}
        # Of the custom functions whose forward is running, the innermost.
        self.forward_inputs: ForwardInputs | None = None
        # Tensors written without history, see `set_value`.
        self.raws: list[TensorBase] = []
        # Tensors whose data was replaced, with their history in this recording.
        self.stale: list[weakref.ref[TensorBase]] = []
        # Tensors on memory that numpy shares: they keep no slot from call to call.
        self.volatile: list[TensorBase] = []
        # Tensors on such memory that a backward in progress wrote to (it adds to a
        # `.grad`), with what it wrote; and whether it is doing so.
        self.unstored: list[tuple[TensorBase, TensorBase]] = []
        self.delivering = False
        # Values taken over from other threads' recordings: (number of the recording,
        # slot there) -> a tensor on it here.
        self.foreign: dict[tuple[int, ...], TensorBase] = {}
        # The same, for base values without history: their slots here.
        self.foreign_raws: dict[tuple[int, ...], int] = {}

        # -- What recordings have in common.
        self.loops = ScriptLoops()
        # Where an earlier recording stands that this one runs parallel to.
        self.shadow: State | None = None
        # The first event that was new where others were known: the state before it,
        # and its own.
        self.diverged: tuple[State, Any] | None = None
        self.sequences = Sequences()  # those that were new, see `comes_in_sizes`
        # Which numbers in a line of the script vary: see `Learning`.
        self.varied: dict[Any, tuple[bool, ...]] = {}
        self.last: dict[Any, tuple[int, tuple[Any, ...]]] = {}

        # -- Reading values.
        # What the checks of programs found, not looked at yet: `note_report`.
        self.reports: list[tuple[Any, list[Any]]] = []
        self.waiter = Waiter()

        # -- Backward.
        # While Python code of a node runs: what that changed of its thread, as it was
        # (for each of `by_node`); None: nothing yet. Outside of any: False.
        self.thread_before: list[Any] | bool | None = False
        # Entries of a backward walk in progress, for its jump edge.
        self.trace: list[Any] | None = None
        self.set_mode()

    def set_mode(self) -> None:
        """Folds everything that decides what an operator means into one key part."""
        self.bits = (
            self.grad
            | self.inference << 1
            | dtypes.get_default_dtype().index << 2
            | precision.key << 8
            | determinism.key << 11
        )
        if self.autocast is not None:
            self.bits |= self.autocast.key << 13
        if self.tracking != 1:
            self.bits |= self.tracking << 32
        self.mode = self.bits
        if self.intercepted or watchers:
            self.mode = None
        elif self.levels and any(level.kind in FORWARD for level in self.levels):
            self.mode = None

    def set_grad(self, on: bool) -> None:
        """Switches whether operators get a history; `bits` has it as its lowest bit."""
        if self.grad is not on:
            self.grad = on
            self.bits ^= 1
            if self.mode is not None:
                self.mode = self.bits

    def enter_node(self) -> tuple[int, list[Any] | bool | None]:
        """Gives the modes that a node's Python code starts in, for `leave_node`."""
        found = self.bits, self.thread_before
        self.thread_before = None
        return found

    def about_to_change(self) -> None:
        """Call this before any setting of `by_node` changes in this thread."""
        if self.thread_before is None:
            self.thread_before = [read() for read, _ in by_node]

    def restore_thread(self, bits: int) -> None:
        """Undoes what a node's Python code changed in its thread."""
        before, self.thread_before = self.thread_before, None
        if isinstance(before, list):
            for (_, put), value in zip(by_node, before, strict=True):
                put(value)
        self.grad, self.inference = bool(bits & 1), bool(bits & 2)
        self.set_mode()

    def leave_node(self, modes: tuple[int, list[Any] | bool | None]) -> None:
        """Undoes what a node's Python code changed in its thread, if anything."""
        bits, before = modes
        if self.bits != bits or self.thread_before is not None:
            self.restore_thread(bits)
        self.thread_before = before

    def make_room(self, meta: Meta | None = None) -> None:
        """Flushes a recording that is long, or on another device than `meta`.

        Only to be called between events of users. `meta`: a value that comes next.
        """
        if self._is_long() or (meta is not None and self._is_elsewhere(meta)):
            self.flush()

    def _is_elsewhere(self, meta: Meta) -> bool:
        """Whether a value is on another device than what was recorded.

        Numbers on the CPU may be computed anywhere.
        """
        running, where = self.state.device, meta.device
        if where is running or running is None or where.type == "meta":
            return False
        return bool(meta.shape) or where.type != "cpu"

    def cut(self, operands: Sequence[Any]) -> None:
        """Flushes before a new event if a program should end there.

        The places are listed in `docs/compilation.md`.
        """
        if self._is_long() or any(map(self._is_elsewhere, _metas_of(operands))):
            self.flush()
        elif self.trace is None and not self.levels:
            if (
                self._ends_step(operands)
                or self._enters_loop()
                or self._is_prepared(operands)
            ):
                self.flush()

    def _ends_step(self, operands: Sequence[Any]) -> bool:
        """Whether parameters were updated by hand after a backward, and this ends it.

        It is where one of them is used, or where the next iteration begins.
        """
        if not self.recording.freed:
            return False
        if self.loops.was_cut(self.state):
            return True
        if self.grad and any(map(self._is_updated, operands)):
            return True
        if not self.loops.repeats(self.flushes):
            return False
        updated = any(map(self._is_updated, self.recording.entered.values()))
        if updated:
            self.loops.cut_at(self.state)
        return updated

    def _is_prepared(self, operands: Sequence[Any]) -> bool:
        """Whether gradients begin here, after a preparation that varies."""
        state = self.state
        if state.tracks or not self.grad or state.depth == state.n_inputs:
            return False
        for value in operands:
            if isinstance(value, TensorBase) and value._tmeta.requires_grad:
                return self.loops.varies_before(state)
        return False

    def _enters_loop(self) -> bool:
        """Whether the script's outermost loop begins with the next event.

        Looked for where the recording is new, or at its start while no loop was seen.
        """
        loops, state = self.loops, self.state
        if state.next and (loops.in_loop or state is not self.root):
            return False
        return loops.enters_loop(self.flushes)

    def _is_long(self) -> bool:
        depth = self.state.depth
        if self.trace is not None:
            return depth >= WALK_BOUND
        last = depth >= LENGTH_BOUND + SEARCH_BOUND
        return depth >= LENGTH_BOUND and self.loops.is_cut(
            self.state, self.flushes, last
        )

    def _is_updated(self, value: Any) -> bool:
        """Whether this is a leaf whose value was replaced in this recording."""
        if not isinstance(value, TensorBase) or value._slot >= 0:
            return False
        meta, storage = value._tmeta, value._storage
        slot = value._raw if storage is None else storage.slot
        return meta.requires_grad and meta.leaf and self.owns(slot)

    def flush(self) -> None:
        """Runs what was recorded; every live tensor gets its array."""
        with self.lock:
            if self.state is not self.root:
                recording = self.recording
                if self.forward_inputs is not None:
                    self.forward_inputs.keep(self)
                try:
                    flush(self)
                except Exception as error:
                    if self.recording is recording and not from_signal(error):
                        self.abandon(error)
                    raise

    def discard_unreachable(self) -> None:
        """Drops the recording of a thread that has ended, if nobody can ask for it."""
        with self.lock:
            if self.state is self.root:
                return
            alive, placed = find_alive(self)
            entered = self.recording.entered
            if (
                alive.tensors
                or alive.storages
                or alive.raws
                or any(slot not in entered for _, slot in alive.histories)
                or self.recording.nodes
            ):
                return  # other threads look into it
            with value_lock:
                self.commit(self.state, self.recording, alive, placed, (), {}, False)

    def commit(
        self,
        state: State,
        recording: Recording,
        alive: Alive,
        placed: Sequence[tuple[TensorBase, int]],
        values: Sequence[Any],
        savers: dict[int, frozenset[int]],
        history: bool,
    ) -> None:
        """Hands the arrays out and starts the next recording.

        `values`: arrays of the tensors, storages and raws alive, then of the slots in
        `savers`. `history`: whether anything alive has a history. If an interrupt
        breaks this off, it can be called again.
        """
        recording.ended = state
        if history:
            if recording.state is None:
                kept = values[len(values) - len(savers) :]
                saved = dict(zip(savers, kept, strict=True))
                self._close(recording, state, saved, savers)
            for tensor, slot in alive.histories:
                if tensor._hist is not None:
                    self.tell_maker(tensor, 0, slot)
                tensor._hist = recording, slot
                if tensor._view_of is not None and tensor._storage is not None:
                    tensor._hist_version = tensor._storage.version
        if self.levels:
            self.note_levels([*alive.tensors, *placed])
        # Another thread may have written to a shared tensor while the program ran.
        arrays = iter(values)
        for (tensor, slot), array in zip(alive.tensors, arrays, strict=False):
            if tensor._slot == slot:
                tensor._array = array
                tensor._slot = -1
        for (storage, slot), array in zip(alive.storages, arrays, strict=False):
            if storage.slot == slot:
                storage.array = array
        for (tensor, slot), array in zip(alive.raws, arrays, strict=False):
            if tensor._raw == slot:
                tensor._array = array
                tensor._raw = -1
        mine = self.id
        if recording.duals:
            self.keep_tangents([*alive.tensors, *alive.raws, *placed])
        if not self.levels and not self.held_levels:
            kept = history and not recording.freed
            self.restart_levels(recording if kept else None)
        for tensor, slot in placed:
            if tensor._slot == slot:
                tensor._slot = -1
        for tensor in recording.entered.values():
            if tensor._slot >> SLOT_BITS == mine:
                tensor._slot = -1
        for storage in self.storages.values():
            if storage.slot >> SLOT_BITS == mine:
                storage.slot = -1
                storage.tracked = False
                self.give_back(storage)
        state.top.touched = self.flushes
        self._start_anew()

    def abandon(self, error: Exception) -> None:
        """Undoes a recording whose program met an error."""
        with value_lock:
            Undo(self, error).run()
            self.unstored.clear()
            self._start_anew()

    def _start_anew(self) -> None:
        self.foreign = {}
        self.foreign_raws = {}
        self.state = self.root
        self.inputs = []
        self.live = []
        self.raws = []
        self.stale = []
        self.storages = {}
        self.recording = Recording(next_sequence())
        self.shadow = None
        self.diverged = None
        self.flushes += 1

    def _close(
        self,
        recording: Recording,
        state: State,
        saved: dict[int, Any],
        savers: dict[int, frozenset[int]],
    ) -> None:
        """Keeps what a later backward through this recording needs."""
        recording.scalars = self.scalars[: state.n_scalars]
        recording.savers = savers
        recording.saved = saved
        recording.versions = versions_of(self, state, recording, tuple(saved))
        # -1 matches no count: some of these have other memory already.
        recording.hidden = -1 if recording.moved else hidden_writes[0]
        recording.bases.clear()
        recording.counted.clear()
        if (twin := recording.twin) is not None:
            # From now on it stands for what other threads saw of it.
            recording.add_saved(twin.saved, twin.savers, twin.versions)
        recording.state = state

    def why(self) -> str:
        """The first event that differed from what was recorded before, if any."""
        if self.diverged is None:
            return ""
        parent, made = self.diverged
        return describe_divergence(parent, made)

    def note_report(self, sites: list[Any], report: Any) -> None:
        """Keeps what a program's checks found until the next read."""
        self.reports.append((sites, report))
        # In a loop that never reads, failures are kept and successes dropped.
        if len(self.reports) > 64 and not np.asarray(self.reports[0][1])[:, 0].any():
            del self.reports[0]

    def host(self, array: Any) -> np.ndarray:
        """The values of an array; raises what its program raised."""
        if len(recorders) - len(_idle) == 1:  # no other thread donates it
            self.waiter.wait(array)
        try:
            return np.asarray(array)
        except JaxRuntimeError as error:
            raise_lack_of_memory(error)
            raise

    def raise_failed_checks(self) -> None:
        """Raises the first data-dependent error of the programs run so far."""
        while self.reports:
            sites, report = self.reports[0]
            found = self.host(report).tolist()
            del self.reports[0]  # not before: Ctrl-C may come while it is waited for
            for site, (bad, value) in zip(sites, found, strict=True):
                if bad:
                    self.reports.clear()
                    raise site.exception(value)


class _Lease:
    """Gives a thread's recorder back when the thread ends."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __del__(self) -> None:
        idle: Any = _idle  # None while Python shuts down
        if idle is not None:
            self.recorder.discard_unreachable()
            idle.append(self.recorder)


class Local(threading.local):
    """`local.rec`: the recorder of the running thread."""

    rec: Recorder

    def __init__(self) -> None:
        with _making:
            if _idle:
                rec = _idle.pop()
            else:
                rec = Recorder(len(recorders))
                recorders.append(rec)
        rec.grad, rec.inference, rec.autocast = True, False, None
        rec.intercepted, rec.lays_out_grads = False, True
        rec.set_mode()
        self.rec = rec
        self._lease = _Lease(rec)
        try:
            rec.flush()  # what a thread that ended left, which others may ask for
        except Exception:
            pass  # they are told, if they do


local = keep(Local())


def refresh_modes() -> None:
    """Call this when a global default has changed."""
    for recorder in recorders:
        recorder.set_mode()


class untracked:
    """What is recorded within gets no history, as under `no_grad`."""

    def __enter__(self) -> None:
        rec = local.rec
        self.before = rec.grad
        rec.set_grad(False)

    def __exit__(self, *error: object) -> None:
        local.rec.set_grad(self.before)


def _metas_of(operands: Sequence[Any]) -> Iterator[Meta]:
    """Of the tensors among an operator's arguments."""
    for value in operands:
        if isinstance(value, TensorBase):
            yield value._tmeta
        elif isinstance(value, (tuple, list)):
            yield from _metas_of(value)


# A new event is compared with the one used last of at most so many known ones.
_COMPARED = 64


def describe_divergence(parent: State, made: State) -> str:
    """The first event that differed, and what differed in it."""
    where = f"{made.line[0]}:{made.line[1]}" if made.line else "?"
    newest = islice(reversed(parent.next.values()), _COMPARED)
    others = [s for s in newest if s is not made]
    if not others:
        return f"{where}: first recording"
    other = max(others, key=lambda state: state.top.touched)
    if made.kind == INPUT and other.kind == INPUT:
        new, old = made.metas[0], other.metas[0]
        for what in ("shape", "dtype", "device", "requires_grad", "strides"):
            a, b = getattr(old, what), getattr(new, what)
            if a != b:
                if what == "shape":
                    a, b = tuple(a), tuple(b)
                return f"{where}: input's {what} {a} became {b}"
        return f"{where}: input with another history"
    if made.call is not None and other.call is not None:
        op = made.call.op
        if op is not None and op is other.call.op and made.operands != other.operands:
            return f"{where}: {op.public} has other operands"
        return f"{where}: {other.call!r} became {made.call!r}"
    return f"{where}: {other!r} became {made!r}"
