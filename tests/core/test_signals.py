"""Signals whose handlers raise, at points where a flush could lose values."""

from __future__ import annotations

import functools
import signal

import numpy as np
import pytest

import torchshim as torch
from torchshim._core import flush, program
from torchshim._core.record import local
from torchshim._core.signals import from_signal, held_back


class Late(Exception):
    """What a script's timeout raises."""


def late(*args):
    raise Late


class Handler:
    def __call__(self, *args):
        raise Late

    def method(self, *args):
        raise Late


HANDLERS = {
    "function": late,
    "partial": functools.partial(late, 1),
    "object": Handler(),
    "method": Handler().method,
    "lambda": lambda *args: late(),
}


@pytest.fixture
def alarm():
    """Has a handler called for SIGALRM."""
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.signal(signal.SIGALRM, before)


def test_signals_wait_for_the_end_of_a_block(alarm):
    came = []
    alarm(lambda *args: came.append("alarm"))
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGALRM)
        done.append(list(came))
    assert done == [[]]
    assert came == ["alarm"]
    signal.raise_signal(signal.SIGALRM)
    assert came == ["alarm", "alarm"]


@pytest.mark.parametrize("kind", HANDLERS)
def test_errors_of_handlers_are_known(alarm, kind):
    alarm(HANDLERS[kind])
    with pytest.raises(Late) as caught:
        signal.raise_signal(signal.SIGALRM)
    assert from_signal(caught.value)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert not from_signal(caught.value)


def step_of(n):
    """A step that donates the parameter, and its values after so and so many steps."""
    w = torch.ones(n, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.5)

    def step():
        optimizer.zero_grad()
        (w * 2.0).sum().backward()
        optimizer.step()
        local.rec.flush()

    return w, step


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
@pytest.mark.parametrize("run", ["first", "optimized"])
def test_a_signal_while_a_program_is_compiled(alarm, monkeypatch, number, run):
    """It comes after JAX's Python code has run the program."""
    alarm(late)
    w, step = step_of(19 if run == "first" else 23)
    monkeypatch.setattr(program, "fast_runs", lambda *args: 3)
    monkeypatch.setattr(flush, "make_program", plain_program)
    steps = 1 if run == "first" else 4
    for _ in range(steps - 1):
        step()
    whole = program.Program._wait

    def interrupted(self, result):
        signal.raise_signal(number)
        whole(self, result)

    def started(self, *args):
        # As if the signal came within JAX, where the result would be lost.
        signal.raise_signal(number)
        return run_program(self, *args)

    run_program = program.Program._run
    with monkeypatch.context() as patch:
        patch.setattr(program.Program, "_run", started)
        patch.setattr(program.Program, "_wait", interrupted)
        with pytest.raises((KeyboardInterrupt, Late)):
            step()
    assert w.tolist() == [1.0 - steps] * len(w)


def plain_program(state, outputs, usable, varying, saves, entry):
    lowered = program.Lowered.of(state, outputs)
    replaced = program.replaced_inputs(state, outputs)
    return program.Program(lowered, usable, [*replaced.values()], False, entry)


def test_a_timeout_before_a_program_runs_takes_nothing_back(alarm, monkeypatch):
    alarm(late)
    w, step = step_of(29)
    x = torch.ones(3) * 3.0

    def interrupted(*args):
        signal.raise_signal(signal.SIGALRM)

    with monkeypatch.context() as patch:
        patch.setattr(flush, "make_program", interrupted)
        with pytest.raises(Late):
            step()
        with pytest.raises(Late):
            x.tolist()
    assert x.tolist() == [3.0] * 3
    assert w.tolist() == [0.0] * 29


def test_an_error_set_by_another_thread_in_a_first_run(monkeypatch):
    """Copies were donated, so that the recording can be run again."""
    w, step = step_of(31)
    monkeypatch.setattr(flush, "make_program", plain_program)

    class Interrupted(list):
        def extend(self, made):
            list(made)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        start = flush.Run.start

        def lost(self):
            self.result = Interrupted()
            start(self)

        patch.setattr(flush.Run, "start", lost)
        with pytest.raises(KeyboardInterrupt):
            step()
    assert w.tolist() == [0.0] * 31


def test_a_failed_check_outlives_an_interrupt_of_the_read(monkeypatch):
    x, index = torch.ones(3), torch.tensor([6]) + 1
    picked = x[index]
    local.rec.flush()
    host = type(local.rec).host

    def interrupted(self, array):
        raise KeyboardInterrupt

    other = torch.ones(2) * 2.0
    with monkeypatch.context() as patch:
        patch.setattr(type(local.rec), "host", interrupted)
        with pytest.raises(KeyboardInterrupt):
            np.asarray(other)
    assert type(local.rec).host is host
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        other.tolist()
    assert picked.shape == (1,)
    assert other.tolist() == [2.0, 2.0]
