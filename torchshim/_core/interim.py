"""Runs a recording without a program, until compiling one pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

from torchshim._core import program
from torchshim._core.extent import raise_lack
from torchshim._core.lower import Lowered
from torchshim._core.program import Compiled, Program


class Interim:
    """A recording that is run without being compiled, for a number of runs.

    It is called as a `Program` is. Nothing is donated.
    """

    __slots__ = ("_enough", "_make", "_program", "_steps", "lowered", "runs")

    # The run after which `make` gives a program.
    _enough: float
    _steps: list[Any]

    def __init__(self, lowered: Lowered, make: Callable[[], Program]) -> None:
        self.lowered = lowered
        self.runs = 0
        self._make = make
        self._program: Program | None = None

    @property
    def entry(self) -> Compiled | None:
        """What `explain()` says of the program that is about to be compiled."""
        return None if self._program is None else self._program.entry

    def __call__(self, scalars: Any, inputs: Sequence[Any], result: list[Any]) -> None:
        self.runs += 1
        if self._program is not None:
            self._program(scalars, inputs, result)
            return
        began = time.perf_counter_ns() if program.watchers else 0
        try:
            result.append(self._run(scalars, inputs))
        except jax.errors.JaxRuntimeError as error:  # also of what gives an input
            program.raise_lack_of_memory(error)
            raise
        except MemoryError as error:  # NumPy's
            raise_lack(error)
            raise
        for watch in program.watchers:
            watch(self, began, result[0])
        if self.runs >= self._enough:
            self._program = self._make()
            self._steps = []

    def _run(self, scalars: Any, inputs: Sequence[Any]) -> tuple[list[Any], Any]:
        """The outputs, and what the checks found, if there are any."""
        raise NotImplementedError
