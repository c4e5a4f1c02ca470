"""Hooks that write to tensors while a backward runs, and what it then computes with."""

from __future__ import annotations

import functools

from tests.oracle import attempt, case


def untracked(torch, write):
    with torch.no_grad():
        write()


# What a hook does with the leaves x and w, the results y = x * w and z = exp(y) * y.
WRITES = {
    "leaf's data": lambda torch, x, w, y, z: x.data.add_(1),
    "piece of data": lambda torch, x, w, y, z: x.data[:1].fill_(5),
    "leaf": lambda torch, x, w, y, z: untracked(torch, lambda: x.add_(1)),
    "piece": lambda torch, x, w, y, z: untracked(torch, lambda: w[1:].mul_(2)),
    "result": lambda torch, x, w, y, z: untracked(torch, lambda: y.add_(1)),
    "detached": lambda torch, x, w, y, z: y.detach().zero_(),
    "last": lambda torch, x, w, y, z: untracked(torch, lambda: z.zero_()),
    "other data": lambda torch, x, w, y, z: setattr(x, "data", torch.ones(2)),
    "with history": lambda torch, x, w, y, z: y.mul_(x),
    "grad": lambda torch, x, w, y, z: None if w.grad is None else w.grad.add_(1),
    "nothing": lambda torch, x, w, y, z: None,
}
WHERE = ["x", "y", "z", "after", "node", "node before", "function"]


class Hooked:
    """A graph with a hook at one place."""

    def __init__(self, torch, where, write):
        self.torch, self.write, self.left = torch, write, 1
        self.x = torch.tensor([1.0, 2.0], requires_grad=True)
        self.w = torch.tensor([0.5, 0.25], requires_grad=True)
        self.y = self.x * self.w
        v = self.y
        if where == "function":
            v = self.function().apply(v)
        self.z = v.exp() * v
        if where in ("x", "y", "z"):
            getattr(self, where).register_hook(self.hook)
        elif where == "after":
            self.x.register_post_accumulate_grad_hook(self.hook)
        elif where == "node":
            self.y.grad_fn.register_hook(lambda ins, outs: self.hook(None))
        elif where == "node before":
            self.y.grad_fn.register_prehook(lambda outs: self.hook(None))

    def function(self):
        body = {
            "forward": staticmethod(lambda ctx, v: v * 2),
            "backward": staticmethod(lambda ctx, g: (self.hook(None), g * 2)[1]),
        }
        return type("F", (self.torch.autograd.Function,), body)

    def hook(self, grad):
        if self.left:
            self.left -= 1
            self.write(self.torch, self.x, self.w, self.y, self.z)

    def state(self):
        values = [t.detach().tolist() for t in (self.x, self.w, self.y)]
        grads = [None if t.grad is None else t.grad.tolist() for t in (self.x, self.w)]
        return values, grads


@case.over(write=list(WRITES), where=WHERE)
def writing(torch, write, where):
    ones = torch.ones(2)
    for _ in range(2):
        for read in (False, True):
            for retain in (False, True):
                made = Hooked(torch, where, WRITES[write])
                if read:
                    print(made.z.tolist())
                yield attempt(made.z.backward, ones, retain_graph=retain)
                yield made.state()
                made.left = 1
                yield attempt(made.z.backward, ones), made.state()


@case.over(first=WHERE, then=WHERE)
def at_another_place(torch, first, then):
    """What was remembered of a walk with a hook at another place."""
    seen = []

    def look(torch, x, w, y, z):
        grads = [None if t.grad is None else t.grad.tolist() for t in (x, w)]
        seen.append((grads, [t.tolist() for t in (x, w)]))

    for where in (first, first, then, first, then):
        for read in (False, True):
            made = Hooked(torch, where, look)
            if read:
                print(made.z.tolist())
            for _ in range(2):
                made.left = 9
                made.z.backward(torch.ones(2), retain_graph=True)
                yield where, list(seen), made.state()
                seen.clear()


TWICE = {
    "data": lambda torch, x, n: (x.data.mul_(0.5), x.data.add_(0.25)),
    "leaf": lambda torch, x, n: untracked(torch, lambda: x.mul_(0.5).add_(0.25)),
    "both": lambda torch, x, n: untracked(torch, lambda: x.data.mul_(0.5) + x.add_(1)),
    "piece": lambda torch, x, n: (x.data[:1].mul_(3), x.data[1:].add_(1)),
    "read": lambda torch, x, n: print(x.data.mul_(0.5).tolist(), x.data.add_(1)),
    "array": lambda torch, x, n: (x.data.mul_(0.5), n.__iadd__(1), x.data.add_(1)),
    "array only": lambda torch, x, n: n.__imul__(0.5),
}


def add_hook(where, x, y, write):
    def hook(*given):
        write()

    if where == "x":
        x.register_hook(hook)
    elif where == "y":
        y.register_hook(hook)
    elif where == "after":
        x.register_post_accumulate_grad_hook(hook)
    else:
        y.grad_fn.register_hook(hook)


@case.over(write=list(TWICE), where=["x", "y", "after", "node"])
def memory_of_numpy(torch, write, where):
    for _ in range(2):
        x = torch.tensor([-1.0, -0.75], requires_grad=True)
        n = x.detach().numpy()
        y = x * 2
        add_hook(where, x, y, functools.partial(TWICE[write], torch, x, n))
        for _ in range(2):
            (y * 3).sum().backward(retain_graph=True)
            yield x.detach(), n.tolist(), x.grad, x._version


@case
def gradients_in_memory_of_numpy(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.zeros(2)
    n = x.grad.numpy()
    seen = []
    x.register_post_accumulate_grad_hook(
        lambda p: seen.append((p.grad.tolist(), n.tolist()))
    )
    for _ in range(3):
        (x * x).sum().backward()
        yield x.grad, n.tolist(), seen
        with torch.no_grad():
            x.grad.mul_(0.5)
        yield n.tolist()


@case.over(leaf=[False, True], read=[False, True])
def views_with_hooks_after_writes(torch, leaf, read):
    """A counted write gives a view another node, without hooks; a hidden one not."""
    for writes in ("", "h", "c", "hc", "ch", "hh", "cc"):
        x = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
        base = x if leaf else x * 1
        view = base[None].transpose(0, 1)
        view.register_hook(lambda grad: grad + 1)
        for write in writes:
            if write == "h":
                view.data.mul_(0.5)
            else:
                with torch.no_grad():
                    base.mul_(2)
        if read:
            yield view.tolist()
        (view * 3).sum().backward()
        yield writes, x.grad, view._version
