"""A program that cannot be made or run takes its recording back, and no more."""

from __future__ import annotations

import signal
import sys

import jax
import pytest

import torchshim as torch
from tests.fuzz_interrupts import may_interrupt
from torchshim._core import flush, program
from torchshim._core.lower import Lowered
from torchshim._core.record import local


class Broken(Exception):
    """What no program raises by itself."""


@pytest.fixture(params=["lowered", "run"])
def broken(request, monkeypatch):
    """Runs a function while no program can be lowered, or none can be run."""

    def fail(*args):
        raise Broken("it broke")

    def run(work):
        local.rec.flush()
        made = None
        with monkeypatch.context() as patch:
            if request.param == "lowered":
                patch.setattr(flush.CACHE, "get", lambda key: None)
                patch.setattr(Lowered, "__init__", fail)
            else:
                patch.setattr(program.Program, "__call__", fail)
            with pytest.raises(Broken, match="it broke"):
                made = work()
                local.rec.flush()
        assert local.rec.state is local.rec.root
        return made

    return run


def is_lost(read):
    with pytest.raises(RuntimeError, match=r"lost: the program .* Broken: it broke"):
        read()


def test_what_was_computed_is_lost_and_nothing_else(broken):
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    y, z = broken(lambda: (x + 1.0, (x * 2.0).view(2, 1)))
    for read in (y.tolist, z.tolist, lambda: y + 1.0, lambda: z.t(), lambda: y.add_(1)):
        is_lost(read)
    is_lost(lambda: x.add_(y))
    assert (x + 1.0).tolist() == [2.0, 3.0]
    y.data = x * 3.0
    assert y.tolist() == [3.0, 6.0]
    assert (x * x).sum().item() == 5.0


def test_what_was_written_in_place_is_as_before(broken):
    plain = torch.tensor([1.0, 2.0])
    base = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    row, flat = base[1], base.view(4)
    shared = torch.tensor([5.0])
    memory = shared.numpy()

    def work():
        plain.mul_(2.0)
        row.add_(plain)
        flat[0] = 9.0
        plain.view(2, 1).sub_(1.0)

    for _ in range(2):
        broken(work)
        assert plain.tolist() == [1.0, 2.0]
        assert base.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert row.tolist() == [3.0, 4.0]
        assert flat.tolist() == [1.0, 2.0, 3.0, 4.0]
    row.zero_()
    assert flat.tolist() == [1.0, 2.0, 0.0, 0.0]
    broken(lambda: shared.mul_(2.0))
    assert memory.tolist() == shared.tolist() == [5.0]


@pytest.mark.parametrize("first", [True, False])
def test_a_training_step_can_be_done_again(broken, first):
    def train(fails):
        model = torch.nn.Linear(2, 1)
        with torch.no_grad():
            model.weight.fill_(0.5)
            model.bias.fill_(0.25)
        local.rec.flush()
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        x = torch.tensor([[1.0, 2.0]])
        view = model.weight.detach()

        def step():
            optimizer.zero_grad()
            model(x).pow(2).sum().backward()
            optimizer.step()

        for i in range(3):
            if fails and i == (0 if first else 1):
                before = model.weight.tolist()
                broken(step)
                assert model.weight.tolist() == view.tolist() == before
                assert model.weight.grad is None
            step()
        return model.weight.tolist(), model.weight.grad.tolist()

    assert train(True) == train(False)


def test_histories_from_before_go_on(broken):
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    y = w * w
    y.tolist()
    z = w * 3.0
    z.tolist()

    def work():
        y.mul_(w)
        with torch.no_grad():
            z.mul_(2.0)

    broken(work)
    assert y.tolist() == [1.0, 4.0] and z.tolist() == [3.0, 6.0]
    (y + z).sum().backward()
    assert w.grad.tolist() == [5.0, 7.0]


def test_a_backward_whose_hook_reads_a_value(broken):
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    def work():
        y = w * 2.0
        y.register_hook(lambda g: g * g.sum().item())
        y.sum().backward()

    broken(work)
    assert w.grad is None
    work()
    assert w.grad.tolist() == [4.0, 4.0]


def test_a_device_without_memory_has_an_error_of_its_own(monkeypatch):
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)

    def exhausted(*args):
        raise jax.errors.JaxRuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 64 bytes."
        )

    local.rec.flush()
    with monkeypatch.context() as patch:
        patch.setattr(program.jax, "jit", lambda *args, **named: exhausted)
        y = torch.atan2(x, x * 1.25) * 7.0
        with pytest.raises(torch.OutOfMemoryError, match=r"out of memory. .* 64 bytes"):
            y.tolist()
    flush.CACHE._programs.popitem()
    assert isinstance(torch.cuda.OutOfMemoryError("x"), RuntimeError)
    assert x.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("where", ["start", "commit", "_start_anew"])
def test_an_interrupt_after_the_run_comes_when_all_is_handed_out(
    monkeypatch, error, where
):
    w = torch.ones(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([w], 0.5, momentum=0.5)
    memory = torch.zeros(4)
    view = memory[1:3]

    def step():
        view.add_(1.0)
        optimizer.zero_grad()
        (w * 2.0).sum().backward()
        optimizer.step()
        local.rec.flush()

    step()
    owner = flush.Run if where == "start" else type(local.rec)
    whole = getattr(owner, where)
    raised = []

    def interrupted(*args):
        if where != "_start_anew":
            whole(*args)
        if not raised:
            raised.append(1)
            raise error
        if where == "_start_anew":
            whole(*args)

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, interrupted)
        with pytest.raises(error):
            step()
    assert w.tolist() == [-1.5] * 3
    assert memory.tolist() == [0.0, 2.0, 2.0, 0.0]
    step()
    assert w.tolist() == [-3.25] * 3
    assert memory.tolist() == [0.0, 3.0, 3.0, 0.0]


def test_an_interrupt_of_a_flush_that_computes_nothing(monkeypatch):
    x = torch.ones(4, requires_grad=True)
    view = x[1:]
    view.tolist()
    for _ in range(2):
        (view.sum() * 2.0).tolist()
        first = view[...]
        second = first[1:]
        assert local.rec.state.n_slots > 0
        whole = type(local.rec).give_back
        raised = []

        def interrupted(storage, whole=whole, raised=raised):
            if not raised:
                raised.append(1)
                raise KeyboardInterrupt
            whole(storage)

        with monkeypatch.context() as patch:
            patch.setattr(type(local.rec), "give_back", staticmethod(interrupted))
            with pytest.raises(KeyboardInterrupt):
                local.rec.flush()
        assert local.rec.state.n_slots == 0
        (grad,) = torch.autograd.grad(second.sum() + view.sum(), [x])
        assert grad.tolist() == [0.0, 1.0, 2.0, 2.0]


def test_ctrl_c_waits_for_the_first_run_of_a_program(monkeypatch):
    w = torch.ones(3, dtype=torch.float64)
    call = program.Program.__call__

    def pressed(*args):
        signal.raise_signal(signal.SIGINT)
        call(*args)

    local.rec.flush()
    with monkeypatch.context() as patch:
        patch.setattr(program.Program, "__call__", pressed)
        y = (w * 3.0).exp().atan().cosh()
        with pytest.raises(KeyboardInterrupt):
            y.tolist()
    assert y._array is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("pending", [False, True])
def test_an_interrupt_while_a_tensor_gets_a_storage_loses_nothing(pending):
    def interrupted_at(line):
        left = line

        def trace(frame, event, _):
            nonlocal left
            name, file = frame.f_code.co_name, frame.f_code.co_filename
            inside = name in ("storage_of", "link", "__init__") and "_core" in file
            if event == "line" and inside and may_interrupt(frame):
                left -= 1
                if left == 0:
                    raise KeyboardInterrupt
            return trace

        x = torch.ones(3, requires_grad=True)
        y = x * 2
        if not pending:
            y.tolist()
        sys.settrace(trace)
        try:
            y.detach()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert not local.rec.lock._is_owned()
        assert y.tolist() == [2.0, 2.0, 2.0]
        y.add_(1).sum().backward()
        assert (y.tolist(), x.grad.tolist()) == ([3.0] * 3, [2.0] * 3)
        return left <= 0

    line = 1
    while interrupted_at(line):
        line += 1
    assert line > 15


def test_a_transform_whose_argument_was_lost_ends(broken):
    """The error is the program's, and the recorder is in the modes that it was in."""
    x, bits = torch.tensor([1.0, 2.0]), local.rec.bits

    def loss(a, b):
        b.mul_(a)
        b.tolist()
        return (a * b).sum()

    broken(lambda: torch.func.grad(loss)(x, x * 3.0))
    assert (local.rec.levels, local.rec.bits) == ([], bits)
    assert torch.func.grad(lambda a: (a * a).sum())(x).tolist() == [2.0, 4.0]
