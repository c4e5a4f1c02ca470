"""Programs of a forked worker, run by a process of their own.

JAX's runtime has threads, which a fork does not copy: a forked process that uses it
hangs or dies. A worker therefore only records and traces, which need no runtime. What
it recorded is computed by NumPy; what NumPy cannot, or has computed for longer than it
takes to start an interpreter, goes to a companion: a fresh one, started when it is
first needed.
"""

from __future__ import annotations

import io
import multiprocessing.connection
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

import torchshim
from torchshim._bind import in_place
from torchshim._core import call as calls
from torchshim._core import interpret
from torchshim._core.lower import Lowered
from torchshim._core.op import REGISTRY, Op, origin
from torchshim._core.program import Compiled, note
from torchshim._core.state import CALL, State
from torchshim._core.stepwise import Hosted, host_kernels, kind_of

_FIELDS = (
    *("call", "depth", "given", "gradient_of", "kind", "line", "metas", "n_inputs"),
    *("n_slots", "operands", "scalar", "slot"),
)


class _Event:
    """A step of a recording, without the trie around it."""

    call: Any
    kind: Any

    def __init__(self, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)


class _Recording:
    """What `Lowered` asks of a `State`."""

    device = None  # JAX's default one: a companion has the CPU alone

    def __init__(self, events: list[_Event]) -> None:
        self.events = events

    def path(self) -> list[_Event]:
        return self.events


def _slots(call: Any) -> list[str]:
    names = [n for kind in type(call).__mro__ for n in getattr(kind, "__slots__", ())]
    return [n for n in names if n != "_inferred" and hasattr(call, n)]


def _call_of(kind: type, fields: dict[str, Any]) -> Any:
    made = object.__new__(kind)
    made._inferred = {}
    for name, value in fields.items():
        setattr(made, name, value)
    return made


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj: Any) -> tuple[str, str] | None:
        """Where a constant such as `HOLE` stands, which is known by its identity."""
        module = type(obj).__module__
        if not module.startswith("torchshim."):
            return None
        for name, value in vars(sys.modules[module]).items():
            if value is obj:
                return module, name
        return None

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, calls.AnyCall):
            return _call_of, (type(obj), {n: getattr(obj, n) for n in _slots(obj)})
        if isinstance(obj, Op):
            return _op_of, _origin(obj)
        return NotImplemented


def _origin(op: Op) -> tuple[str, Callable[[Op], Op] | None]:
    """The declared operator that one is a form of, and what makes that form."""
    if op.writes:
        return op.name.removesuffix("_"), in_place
    return origin(op)


def _op_of(name: str, form: Callable[[Op], Op] | None) -> Op:
    return REGISTRY[name] if form is None else form(REGISTRY[name])


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: tuple[str, str]) -> Any:
        return getattr(sys.modules[place[0]], place[1])

    def find_class(self, module: str, name: str) -> Any:
        """A class by its name; in scripts torchshim's say that they are torch's."""
        head, dot, rest = module.partition(".")
        if head == "torch":
            module = f"torchshim{dot}{rest}"
        return super().find_class(module, name)


def packed(state: State, outputs: Sequence[int]) -> bytes:
    """A recording up to a state, as bytes."""
    events = [_Event({n: getattr(s, n) for n in _FIELDS}) for s in state.path()]
    for event in events:
        if event.kind != CALL:
            event.call = None
    data = io.BytesIO()
    _Pickler(data, protocol=5).dump((events, tuple(outputs)))
    return data.getvalue()


# Seconds of computing by NumPy after which a companion is worth its start.
_LONG = 2.0


def _none() -> Any:
    """Never asked for: no number of runs makes a program of it here."""


class _ByNumPy(Hosted):
    """What NumPy computes; arrays are NumPy's before and after."""

    __slots__ = ()

    def __init__(self, lowered: Lowered) -> None:
        kinds = [kind_of(event) for event in lowered.calls]
        kernel_of = host_kernels(lowered, kinds)
        super().__init__(lowered, kinds, kernel_of, 0.0, sys.maxsize, _none)

    def _fetched(self, array: Any) -> np.ndarray:
        return _on_host(array)

    def _own(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)


def _by_numpy(lowered: Lowered) -> _ByNumPy | None:
    try:
        return _ByNumPy(lowered)
    except interpret.NoRule:
        return None


def _sent(state: State, outputs: Sequence[int]) -> bytes:
    try:
        return packed(state, outputs)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise RuntimeError(
            f"this operation is not supported in a DataLoader's worker process: {error}"
        ) from error


class RemoteProgram:
    """Stands in for `make_program` in a worker: NumPy, or the companion.

    What crosses over between processes cannot be donated, and is small.
    """

    def __init__(
        self,
        state: State,
        outputs: tuple[int, ...],
        donated: Mapping[int, int],
        rare: bool,
        saves: bool,
        entry: Compiled,
    ) -> None:
        self.lowered = Lowered.of(state, outputs)
        self.outputs = outputs
        self.entry = entry
        entry.events = self.lowered.n_events
        self._local = _by_numpy(self.lowered)
        self._spent = 0.0
        self._state: State | None = state
        self._number = 0

    def __call__(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        if self._local is None:
            self._ask(scalars, inputs, result)
            return
        began = time.perf_counter()
        self._local(scalars, inputs, result)
        self._spent += time.perf_counter() - began
        if self._spent > _LONG:
            self._local = None

    def _ask(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        if self._state is not None:
            note(self.entry)
            data = _sent(self._state, self.outputs)
            self._number = Companion.of_process().ask("program", data)
            self._state = None
        companion = Companion.of_process()
        used = [_on_host(inputs[p]) for p in self.lowered.inputs]
        arrays, report, sites = companion.ask("run", self._number, scalars, used)
        self.lowered.sites[:] = sites
        result.append((arrays, report))


def _on_host(array: Any) -> np.ndarray:
    if isinstance(array, jax.Array) and array.platform() != "cpu":
        raise RuntimeError(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
            "multiprocessing, you must use the 'spawn' start method"
        )
    return np.asarray(array)


class Companion:
    """The worker's end of the connection."""

    _started: Companion | None = None

    @classmethod
    def of_process(cls) -> Companion:
        """This process's companion, started now if there is none."""
        if cls._started is None:
            cls._started = Companion()
        return cls._started

    def __init__(self) -> None:
        mine, its = multiprocessing.connection.Pipe()
        # The same torchshim, wherever this process has it from.
        path = [str(Path(torchshim.__path__[0]).parent), *sys.path]
        code = (
            f"import sys; sys.path[:] = {path!r}\n"
            f"from {__name__} import serve; serve({its.fileno()})"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            pass_fds=(its.fileno(),),
            stdin=subprocess.DEVNULL,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        its.close()
        self.connection = mine

    def ask(self, *message: Any) -> Any:
        """The answer to a message; raises what went wrong over there."""
        try:
            self.connection.send(message)
            answer, error = self.connection.recv()
        except (EOFError, OSError):
            raise RuntimeError(
                "the process that computes for a DataLoader's worker exited "
                "unexpectedly"
            ) from None
        if error is not None:
            raise error
        return answer


def serve(descriptor: int) -> None:
    """Answers a worker until it is gone."""
    connection = multiprocessing.connection.Connection(descriptor)
    programs: list[tuple[Lowered, Any]] = []
    while True:
        try:
            kind, *rest = connection.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        answer, error = None, None
        try:
            answer = (
                _load(programs, *rest)
                if kind == "program"
                else _run(*programs[rest[0]], *rest[1:])
            )
        except Exception as problem:
            error = problem
        try:
            connection.send((answer, error))
        except (OSError, KeyboardInterrupt):
            return
        except Exception:
            connection.send((None, RuntimeError(f"{type(error).__name__}: {error}")))


def _load(programs: list[tuple[Lowered, Any]], data: bytes) -> int:
    events, outputs = _Unpickler(io.BytesIO(data)).load()
    lowered = Lowered.of(_Recording(events), outputs)  # type: ignore[arg-type]
    programs.append((lowered, jax.jit(lowered.fn)))
    return len(programs) - 1


def _run(lowered: Lowered, jitted: Any, scalars: Any, inputs: Any) -> Any:
    with jax.enable_x64(True):
        arrays, report = jitted(scalars, inputs)
        found = [np.array(array) for array in arrays]
    return found, None if report is None else np.asarray(report), list(lowered.sites)
