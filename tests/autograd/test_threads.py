"""Tensors that one thread uses and another overwrites between forward and backward."""

from __future__ import annotations

import threading
from itertools import product

from tests.oracle import attempt, case


def by_thread(work):
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def at_once(work):
    return work()


# Of a constant and a leaf: the product, and the tensor that is overwritten then.
USES = {
    "constant": lambda t, x: (t * x, t),
    "divided": lambda t, x: (t / x, t),
    "result": lambda t, x: ((t * 1) * (x * 1), t),
    "view": lambda t, x: (t[:2] * x[:2], t),
    "view of all": lambda t, x: (t.view(3) * x.view(3), t),
    "turned": lambda t, x: (t.flip(0) * x, t),
}
# How it is overwritten: only the last are counted.
WRITES = {
    "data": lambda t, other: t.data.mul_(0.5),
    "piece of data": lambda t, other: t.data[:1].fill_(3),
    "assigned": lambda t, other: setattr(t, "data", other),
    "detached": lambda t, other: t.detach().mul_(2),
    "itself": lambda t, other: t.mul_(2),
}


@case.over(use=list(USES), write=list(WRITES))
def writes_between(torch, use, write):
    for user, writer in ((by_thread, at_once), (at_once, by_thread)):
        for read in (False, True):
            t = torch.tensor([0.5, 0.75, 1.0])
            x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
            other = torch.tensor([7.0, 8.0, 9.0]).mul_(1).mul_(1)

            def work(t=t, x=x):
                return USES[use](t, x)

            y, target = user(work)
            if read:
                yield y
            writer(lambda target=target, other=other: WRITES[write](target, other))
            yield attempt(lambda y=y: y.sum().backward())
            yield x.grad


@case
def results_that_another_thread_writes_to(torch):
    for write in ("data", "piece of data", "detached", "itself"):
        for user, writer in ((by_thread, at_once), (at_once, by_thread)):
            x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
            y, target = user(lambda x=x: ((y := x * 1) * y, y))
            writer(lambda target=target, write=write: WRITES[write](target, None))
            yield attempt(lambda y=y: y.sum().backward())
            yield x.grad


@case
def results_of_another_thread_that_numpy_shares(torch):
    for read in ("alias", "value"):
        for counted in (True, False):
            x = torch.tensor([-1.0, -0.75, -0.5], requires_grad=True)
            y = by_thread(lambda x=x: x.logsumexp(0))
            held = (y.detach() if read == "alias" else y.data).numpy()
            with torch.no_grad():
                (y.detach() if counted else y.data).add_(2)
            yield held
            yield attempt(lambda y=y: by_thread(lambda: attempt(y.backward)))
            yield x.grad


@case
def views_that_enter_another_thread(torch):
    for write in ("data", "detached", "itself"):
        for of_whole in (False, True):
            t = torch.tensor([0.5, 0.75, 1.0])
            x = torch.tensor([1.0, 1.25], requires_grad=True)
            v = t[1:]
            y = by_thread(lambda v=v, x=x: v * x)
            WRITES[write](t if of_whole else v, None)
            yield attempt(lambda y=y: y.sum().backward())
            yield x.grad


@case
def steps_that_are_remembered(torch):
    t = torch.tensor([0.5, 0.75, 1.0])
    x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
    for user, writer in ((by_thread, at_once), (at_once, by_thread)):
        for step in range(5):
            y = user(lambda: t * x)
            if step % 2:
                writer(lambda: t.data.mul_(0.5))
            x.grad = None
            y.sum().backward()
            yield x.grad


@case
def data_assigned_after_a_read(torch):
    for writes in range(3):
        t = torch.tensor([0.5, 0.75, 1.0])
        x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
        y = t * x
        yield y
        other = torch.ones(3)
        for _ in range(writes):
            other.mul_(2)
        t.data = other
        y.sum().backward()
        yield x.grad, t._version


def written_through(torch, view):
    with torch.no_grad():
        view.zero_()


@case
def bases_that_enter_another_thread(torch):
    """What is written through a view of them is part of them, in each thread."""
    views = {
        "whole": lambda t: t.view(3),
        "part": lambda t: t[1:],
        "nothing": lambda t: None,
    }
    for viewer, writer in product((by_thread, at_once), repeat=2):
        for name, read, whole in product(views, (False, True), (False, True)):
            x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
            base = x / x
            if read:
                yield base.tolist()
            other = viewer(lambda base=base, name=name: views[name](base))
            view = base[1:]
            if read:
                yield view.tolist()
            writer(lambda view=view, whole=whole: (view if whole else view[:1]).exp_())
            y = view if other is None else other
            # A hook that overwrites what the gradient after it needs.
            base.register_hook(lambda grad, view=view: written_through(torch, view[:1]))
            yield attempt(lambda y=y: (y * 3).sum().backward())
            yield x.grad, base._version


@case
def both_threads_write_to_a_view(torch):
    for writers in product((by_thread, at_once), repeat=2):
        for write in ("relu_", "exp_", "sigmoid_", "neg_"):
            x = torch.tensor([-1.0, -0.75, -0.5], requires_grad=True)
            base = x * 2
            view = base.narrow(0, 1, 1)
            for writer in writers:
                writer(lambda view=view, write=write: getattr(view, write)())
            yield attempt(lambda base=base: base.sum().backward(retain_graph=True))
            yield x.grad, base._version


@case
def objects_kept_by_thread(torch):
    kept = torch._C
    yield kept._is_key_in_tls("kept"), attempt(kept._get_obj_in_tls, "kept")
    yield attempt(kept._stash_obj_in_tls, 1, 2), attempt(kept._is_key_in_tls, 1)
    found = {}
    kept._stash_obj_in_tls("kept", found)
    x = torch.ones(2, requires_grad=True)

    def hook(grad):
        kept._get_obj_in_tls("kept")["seen"] = True

    x.register_hook(hook)
    (x * 2).sum().backward()
    yield kept._is_key_in_tls("kept"), found
    yield by_thread(lambda: kept._is_key_in_tls("kept"))
