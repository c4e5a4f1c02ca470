"""Timing statements (``torch.utils.benchmark.Timer``).

What PyTorch times is done when a statement ends; what torchshim records runs when its
values are read. So a `Timer` runs what a statement recorded before the next run of it
begins, and waits: what is timed is recording and running one program, with the value
of the statement as its result. Without that, results that nobody uses would not be
computed at all, and equal runs would be one run.
"""

from __future__ import annotations

import ast
import enum
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

import jax

import torchshim
from torchshim import accelerator
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._errors import unsupported
from torchshim._pytree import tree_leaves
from torchshim.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    set_torch_threads,
)

__all__ = ["Language", "Timer", "timer"]

_NO_CALLGRIND = "Callgrind counts instructions of PyTorch's compiled core"
CallgrindStats = unsupported("utils.benchmark.CallgrindStats", _NO_CALLGRIND)
CopyIfCallgrind = unsupported("utils.benchmark.CopyIfCallgrind", _NO_CALLGRIND)
FunctionCount = unsupported("utils.benchmark.FunctionCount", _NO_CALLGRIND)
FunctionCounts = unsupported("utils.benchmark.FunctionCounts", _NO_CALLGRIND)

_MOST_RUNS = 2**31 - 1
_VALUE, _RUN = "_torchshim_value", "_torchshim_run"


def timer() -> float:
    """The seconds of a clock, when the work given to an accelerator is done."""
    if accelerator.is_available():
        accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """What statements are written in; C++ is refused."""

    PYTHON = 0
    CPP = 1


def _run(value: Any = None) -> None:
    """Runs what is recorded, and waits for a statement's value."""
    local.rec.flush()
    found = (t._array for t in tree_leaves(value) if isinstance(t, TensorBase))
    jax.block_until_ready([array for array in found if array is not None])


def _each_run(stmt: str) -> str:
    """A statement that runs what it recorded, with its last expression as a result."""
    body = ast.parse(stmt).body
    last = body[-1] if body else None
    given: list[ast.expr] = []
    if isinstance(last, ast.Expr):
        given.append(ast.Name(_VALUE, ast.Load()))
        body[-1] = ast.Assign([ast.Name(_VALUE, ast.Store())], last.value)
    body.append(ast.Expr(ast.Call(ast.Name(_RUN, ast.Load()), given, [])))
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))


def _block(text: str) -> str:
    """A statement as it is written in a triple-quoted string, without its margins."""
    return textwrap.dedent(text).removeprefix("\n").rstrip()


class Timer:
    """Times a statement, as `timeit.Timer` does: warm, and one run after the other.

    `globals` are the names that the statement sees, besides `torch` and what `setup`
    defines; the other arguments are what tables and `Measurement` show. Raises
    ValueError for a statement that is no text, and NotImplementedError for C++ and
    `collect_callgrind`. See this module for what is timed.
    https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Timer

    >>> found = Timer("x + y", "y = 2", globals={"x": torchshim.ones(3)}).timeit(10)
    >>> found.number_per_run, found.mean > 0
    (10, True)
    """

    _timer_cls: Any = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError(
                "Timer: statements in C++ need PyTorch's own libraries"
            )
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most "
                "likely this code can simply be moved to `setup`."
            )
        stmt, setup = _block(stmt), _block(setup)
        self._globals = {"torch": torchshim, **(globals or {})}
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )
        # Wrong code is reported by timeit, which takes it as it is.
        self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=globals)
        self._timer = self._timer_cls(
            stmt=_each_run(stmt),
            setup=setup,
            timer=timer,
            globals={**self._globals, _RUN: _run},
        )

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """`number` runs, after a hundredth as many to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), 2))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not there, in PyTorch either."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[..., Any] | None = None) -> None:
        """Not there, in PyTorch either."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _runs_at_once(self, min_run_time: float) -> int:
        """So many that reading the clock does not count."""
        with set_torch_threads(self._task_spec.num_threads):
            # The median of five, as PyTorch takes it.
            overhead = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while True:
                taken = self._timeit(number)
                long_enough = taken >= min_run_time / 1000
                if overhead / taken <= 1e-4 and long_enough:
                    break
                if taken > min_run_time or number * 10 > _MOST_RUNS:
                    break
                number *= 10
        return number

    def _measure(
        self,
        number: int,
        enough: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float | None = None,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        times: list[float] = []
        total, done = 0.0, False
        with set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or not done:
                times.append(self._timeit(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                done = enough(times)
                if max_run_time and total > max_run_time:
                    break
        return self._measured(number, times)

    def blocked_autorange(
        self,
        callback: Callable[[int, float], Any] | None = None,
        min_run_time: float = 0.2,
    ) -> Measurement:
        """Blocks of runs until `min_run_time` seconds have passed.

        The blocks are so long that reading the clock does not count. `callback` is
        called with the runs and the seconds of each.
        """
        number = self._runs_at_once(min_run_time)
        return self._measure(
            number, lambda times: True, min_run_time, callback=callback
        )

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Blocks of runs until their interquartile range is small, as part of the
        median, or `max_run_time` seconds have passed."""
        number = self._runs_at_once(min_run_time=0.05)

        def enough(times: list[float]) -> bool:
            measured = self._measured(number, times)
            return len(times) > 3 and measured.meets_confidence(threshold)

        return self._measure(number, enough, min_run_time, max_run_time, callback)

    def collect_callgrind(
        self,
        number: int = 100,
        *,
        repeats: int | None = None,
        collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:
        """Counting instructions: not supported."""
        raise NotImplementedError(f"Timer.collect_callgrind: {_NO_CALLGRIND}")
