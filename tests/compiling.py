"""How programs of tests and of fuzzers are run: compiled, by NumPy, by operators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from torchshim._core import program, stepwise

# What decides of users' recordings whether NumPy computes them.
USUAL: dict[str, float] = {
    name: getattr(stepwise, name)
    for name in ("_LEAST_EVENTS", "_LEAST_PLAIN", "_COMPILE", "_EXACT_EVENTS")
}


def compile_fast() -> None:
    """Programs are compiled with less effort: most of them run once."""
    usual = program.options
    program.options = lambda *of: usual(*of) | program.fast_options()


def compile_plain() -> None:
    """No exception for lines where recordings run seldom, as tests' do, nor for short
    ones of which NumPy computes the very bits: tests are of programs."""
    stepwise._LEAST_PLAIN = stepwise._LEAST_COMPILE
    stepwise._EXACT_EVENTS = 0


def compile_nothing() -> None:
    """NumPy computes what it can."""
    stepwise._LEAST_EVENTS, stepwise._COMPILE = 0, 1e9


@contextlib.contextmanager
def compiling_nothing() -> Iterator[None]:
    """NumPy computes what it can, whatever `--compile` says."""
    before = stepwise._LEAST_EVENTS, stepwise._COMPILE
    compile_nothing()
    try:
        yield
    finally:
        stepwise._LEAST_EVENTS, stepwise._COMPILE = before


def run_operators() -> None:
    """JAX runs operation by operation: no XLA program for each recording.

    Donated inputs are deleted, as a compiled program would.
    """

    def call(self: Any, scalars: Any, inputs: Any, result: list[Any]) -> None:
        if self.entry is not None:
            self.known, self.entry = self.entry, None
        with jax.enable_x64(True):
            order = sorted(p for part in self.inputs for p in part)
            arrays = {p: jax.device_put(inputs[p]) for p in order}
            outs, report = self.lowered.fn(
                np.asarray(scalars), [arrays[p] for p in self.lowered.inputs]
            )
            held = {id(a) for a in (*arrays.values(), *inputs)}
            outs = [
                jax.numpy.array(o, copy=True)
                if id(o) in held or not isinstance(o, jax.Array)
                else o
                for o in outs
            ]
            for p in self.inputs[0]:
                if isinstance(inputs[p], jax.Array):
                    inputs[p].delete()
        result.append((outs, report))

    program.Program.__call__ = call  # type: ignore[method-assign]


@contextlib.contextmanager
def running_operators() -> Iterator[None]:
    """JAX runs operation by operation."""
    usual = program.Program.__call__
    run_operators()
    try:
        yield
    finally:
        program.Program.__call__ = usual  # type: ignore[method-assign]


#: What the fuzzers' `--by` chooses between.
WAYS = ("numpy", "operators", "xla")


def run_by(way: str) -> None:
    """How a fuzzer's programs are run.

    numpy: as users' that run once, and by far the fastest. operators: with donation,
    which NumPy does without. xla: compiled, each for seconds.
    """
    if way == "numpy":
        compile_nothing()
    elif way == "operators":
        run_operators()
