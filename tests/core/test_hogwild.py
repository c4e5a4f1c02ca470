"""Threads that train one model without a lock: updates may be lost, values may not."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import torchshim as torch
from torchshim._core import follow
from torchshim._core.record import local
from torchshim._core.storage import Storage
from torchshim.nn import Linear


def by_grad(model, loss, optimizer):
    params = list(model.parameters())
    grads = torch.autograd.grad(loss(), params)
    with torch.no_grad():
        for p, g in zip(params, grads, strict=True):
            p.sub_(0.05 * g)


def by_optimizer(model, loss, optimizer):
    optimizer.zero_grad()
    loss().backward()
    optimizer.step()


def by_data(model, loss, optimizer):
    params = list(model.parameters())
    grads = torch.autograd.grad(loss(), params)
    for p, g in zip(params, grads, strict=True):
        p.data.sub_(0.05 * g)


STEPS = {
    "grad": by_grad,
    "optimizer": by_optimizer,
    "data": by_data,
}


def together(*works):
    """Runs functions in threads of their own; what they raised."""
    failed = []

    def run(work):
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


@pytest.fixture
def often():
    """Threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("read", [False, True])
def test_training(often, kind, read):
    torch.manual_seed(0)
    model = Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)

    def train():
        for _ in range(40):
            x = torch.ones(2, 4)
            STEPS[kind](model, lambda x=x: ((model(x) - 1) ** 2).mean(), optimizer)

    def look():
        for _ in range(30):
            state = model.state_dict()
            assert len(state["weight"].tolist()[0]) == 4

    assert together(train, train, *((train, look, look) if read else (train,))) == []
    assert abs(model(torch.ones(4)).item() - 1) < 0.1


def test_a_tensor_that_another_thread_takes_while_it_enters():
    """What it wrote is there when the recording that the tensor nearly entered ends."""
    x = torch.ones(3)
    for _ in range(3):  # from the second time on by an entrance
        local.rec.flush()
        (x * 7.0).tolist()
    made = []

    class Taken(list):
        def append(self, array):
            super().append(array)
            if not made:
                made.append(together(lambda: x.add_(1.0)))

    local.rec.flush()
    local.rec.inputs = Taken()
    y = x * 7.0
    assert made == [[]]
    assert y.tolist() in ([7.0] * 3, [14.0] * 3)
    assert x.tolist() == [2.0] * 3


def test_a_storage_that_gives_its_value_back_while_a_tensor_joins_it(monkeypatch):
    """The tensor's memory is that of the one that it was made from, nevertheless."""
    x = torch.ones(3)
    other = x.detach()
    local.rec.flush()
    del other  # x is alone on its storage, which has the value
    others = []

    def add(storage, tensor, before=Storage.add):
        if not others:
            thread = threading.Thread(target=lambda: (x + 1).tolist())
            others.append(thread)
            thread.start()
            thread.join(0.5)
        before(storage, tensor)

    assert x._storage.slot < 0
    monkeypatch.setattr(Storage, "add", add)
    alias = x.data
    others[0].join()
    assert x._storage is alias._storage
    alias.sub_(1)
    assert x.tolist() == alias.tolist() == [0.0] * 3


def test_a_gradient_that_another_thread_drops_while_it_is_added_to(monkeypatch):
    """As in PyTorch: what it was added to has the sum, `.grad` stays None."""
    # A shape of its own: other tests' walks are not tried first.
    w = torch.ones(2, 37, requires_grad=True)
    dropped = []

    def status(rec, grad, found=follow.grad_status):
        result = found(rec, grad)
        if dropped:
            w.grad = None
        return result

    monkeypatch.setattr(follow, "grad_status", status)
    kept = None
    for step in range(6):
        w.grad = kept = torch.ones(2, 37)
        kept.tolist()
        dropped[:] = [True] * (step == 5)
        (w * 2).sum().backward()
        assert kept.tolist() == [[3.0] * 37] * 2
        assert (w.grad is kept) is (step < 5)
    assert w.grad is None


def test_a_slot_is_of_no_recording_that_began_since_it_was_read():
    """Slots are counted anew: another tensor may have it in the next recording."""
    p = torch.zeros(2)
    alias = p.detach()
    rec = local.rec
    with ThreadPoolExecutor(1) as other:
        other.submit(p.add_, 1).result()
        storage = alias._storage
        slot = storage.slot
        place = rec._place(slot, storage)
        assert place
        assert (p * 2).tolist() == [2.0, 2.0]
        assert rec._place(slot, storage) == place
        other.submit(p.tolist).result()
        assert rec._place(slot, storage) == ()
        assert rec.raw_slot_here(slot, storage) == -1
        other.submit(p.add_, 1).result()
        assert rec._place(storage.slot, storage) != place
