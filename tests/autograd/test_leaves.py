"""Leaves that are none any more when a gradient of their old graph arrives."""

from __future__ import annotations

from itertools import product

from tests.oracle import attempt, case


def by_piece(torch, x, y):
    x[:1] = y[:1] * 2


def detached(torch, x, y):
    x.mul_(y)
    x.detach_().requires_grad_()


def with_other_data(torch, x, y):
    x.data = torch.tensor([5.0, 6.0])


# What is done to a leaf that does not require grad any more. (`mark_dirty` is not
# among it: PyTorch crashes in the backward then.)
MOVES = {
    "nothing": lambda torch, x, y: None,
    "product": lambda torch, x, y: x.mul_(y),
    "copy": lambda torch, x, y: x.copy_(y.clone()),
    "constant": lambda torch, x, y: x.mul_(2),
    "view": lambda torch, x, y: x.view(-1).mul_(y),
    "no grad": lambda torch, x, y: torch.no_grad()(x.mul_)(y),
    "required again": lambda torch, x, y: x.requires_grad_(),
    "piece": by_piece,
    "detached": detached,
    "data": with_other_data,
}


def graph(torch, order):
    """Leaves, one of which is to be moved, and what was computed of them."""
    x, y, z, w = (torch.tensor([i, i + 1.0], requires_grad=True) for i in range(4))
    a, b = (x, z) if order == "first" else (z, x)
    u = w * 2
    first, second = (a + a if order == "often" else a * 3), b * 2
    return (x, y, z, w), ((first + u) * w.detach() + second).sum()


def grads(leaves):
    return [leaf.grad for leaf in leaves if leaf.is_leaf]


def to_result(loss, x):
    (loss + x.sum()).backward(inputs=[x], retain_graph=True)


@case.over(move=list(MOVES), order=["first", "last", "often"])
def moved(torch, move, order):
    for read in (False, True):
        leaves, loss = graph(torch, order)
        x, y, z, w = leaves
        if read:
            print(loss.item())
        x.requires_grad_(False)
        MOVES[move](torch, x, y)
        if read:
            print(x.tolist())
        yield x.requires_grad, x.is_leaf, type(x.grad_fn).__name__
        yield attempt(loss.backward, retain_graph=True), grads(leaves)
        yield attempt(loss.backward, inputs=[z, w], retain_graph=True), grads(leaves)
        yield attempt(torch.autograd.grad, loss, [z, w], retain_graph=True)
        yield attempt(to_result, loss, x)
        yield grads(leaves), attempt(loss.backward), attempt(loss.backward)
        yield grads(leaves)


def add_hook(torch, x, z, kind, seen):
    if kind == "tensor":
        x.register_hook(lambda g: seen.append(g.tolist()))
    elif kind == "after":
        x.register_post_accumulate_grad_hook(lambda p: seen.append(None))
    elif kind == "node":
        node = torch.autograd.graph.get_gradient_edge(x).node
        node.register_prehook(lambda g: seen.append(g[0].tolist()))
    else:
        z.register_hook(lambda g: seen.append(g.tolist()))


@case.over(move=["nothing", "product", "copy", "required again"])
def with_hooks(torch, move):
    kinds = ["tensor", "after", "other"]
    if move in ("nothing", "required again"):
        kinds.append("node")
    for kind in kinds:
        for when in ("before", "after"):
            leaves, loss = graph(torch, "first")
            x, y, z, _ = leaves
            seen = []
            if when == "before":
                add_hook(torch, x, z, kind, seen)
            x.requires_grad_(False)
            MOVES[move](torch, x, y)
            if when == "after":
                yield type(attempt(add_hook, torch, x, z, kind, seen)).__name__
            yield attempt(loss.backward, retain_graph=True), grads(leaves), len(seen)
            yield attempt(loss.backward), grads(leaves), seen


@case
def in_a_loop(torch):
    """What was remembered of a walk is not taken for another."""
    for turn in range(8):
        leaves, loss = graph(torch, "first")
        x, y, *_ = leaves
        if turn % 2:
            print(loss.item())
        if turn > 3:
            x.requires_grad_(False)
            x.mul_(y)
        yield attempt(loss.backward), grads(leaves)
    x = torch.ones(2, requires_grad=True)
    y = torch.tensor([2.0, 3.0], requires_grad=True)
    for turn in range(6):
        loss = (x * 3).sum()
        print(loss.item())
        if turn == 4:
            x.requires_grad_(False)
            x.mul_(y)
            print(x.tolist())
        yield attempt(loss.backward), grads([x, y])


@case.over(tracked=[False, True])
def that_require_grad_as_their_bases_do(torch, tracked):
    """PyTorch has no node for them: no gradient reaches them."""
    for _ in range(2):
        x = torch.ones(2, 2, requires_grad=True)
        base = x * 2 if tracked else x
        with torch.no_grad():
            view, other = base[:1], base[1:]
        y = (view * x[:1] + other).sum()
        grad = torch.autograd.grad
        yield grad(y, view, allow_unused=True, retain_graph=True)
        yield attempt(grad, y, view, retain_graph=True)
        yield grad(y, [other, x, view], allow_unused=True, retain_graph=True)
        y.backward(inputs=[view, x], retain_graph=True)
        yield view.grad, x.grad
        y.backward(inputs=[view])
        yield view.grad, x.grad
        y.backward()
        yield view.grad, x.grad


@case.over(create=[False, True])
def dense_gradients_beside_a_sparse_one(torch, create):
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for _ in range(3):
        # Unasked, PyTorch warns until somebody in the process has said: order of tests.
        sparse = torch.sparse_coo_tensor(
            torch.tensor([[0, 2]]),
            torch.tensor([1.0, 1.0]),
            (3,),
            check_invariants=False,
        )
        leaf.grad = sparse
        for _ in range(2):
            (leaf * 2).sum().backward(create_graph=create)
            yield leaf.grad, leaf.grad is sparse, leaf.grad.requires_grad
        yield sparse.to_dense(), sparse._version


@case.over(
    ("leaf", False),
    ("leaf", True),
    ("result", False),
    ("result", True),
    ("detached", False),
    ("view", True),
)
def shapes_changed_unseen(torch, kind, read):
    """Under `no_grad` a tensor that changes its shape keeps its place in the graph."""
    changes = {
        "squeeze_": (0,),
        "unsqueeze_": (0,),
        "t_": (),
        "transpose_": (0, 1),
    }
    for mode, (name, args) in product(("no_grad", "inference_mode"), changes.items()):
        x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
        y = x if kind == "leaf" else x * 2
        alias = y.detach() if kind == "detached" else None
        if kind == "view":
            y = y[:, :]
        if read:
            y.tolist()
        with getattr(torch, mode)():
            yield getattr(y, name)(*args) is y
        yield y.detach(), y.requires_grad, y.is_leaf, y._version
        yield None if y.grad_fn is None else y.grad_fn.name()
        z = y * torch.arange(3.0).reshape(y.shape)
        yield attempt(z.sum().backward, retain_graph=True), x.grad
        yield attempt(z.sum().backward), x.grad
        with torch.no_grad():
            y.mul_(2)
        yield y.detach(), alias


@case
def gradients_of_several_dtypes(torch):
    """What comes later is added in place, and so takes the dtype of the first."""
    for first, second in product((torch.float32, torch.float64), repeat=2):
        x = torch.ones(2, requires_grad=True)
        x.data = x.data.to(first)
        (x * 2).sum().backward()
        x.data = x.data.to(second)
        (x * 3).sum().backward()
        yield x.grad, x.grad.dtype


# What a leaf may be that is used before it comes to require grad.
USED = {
    "data": lambda torch: torch.tensor([0.5, -1.0, 2.0]),
    "made": lambda torch: torch.full((3,), 2.0),
    "computed": lambda torch: torch.tensor([0.5, -1.0, 2.0]) * 2,
    "leaf": lambda torch: torch.tensor([0.5, -1.0, 2.0], requires_grad=True),
}


@case.over(kind=list(USED), of=["itself", "base"], read=[False, True])
def required_after_use(torch, kind, of, read):
    """What a gradient holds of a tensor is differentiated by what that is by now."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for how in ("kept", "dead", "often", "deep"):
        w = USED[kind](torch)
        before = w.view(3) if of == "base" else w
        y = (x * before).exp() if how == "deep" else x * before
        unused = x + before
        if read:
            yield (y + w).detach()
        w.requires_grad_(not w.requires_grad)
        if how == "often":
            y = y * before
            w.requires_grad_(not w.requires_grad)
        after = w * 3
        leaves = [x] if how == "dead" else [x, w, before]
        leaves = [leaf for leaf in leaves if leaf.requires_grad]
        if how == "dead":
            del w
        (g,) = torch.autograd.grad(y.sum(), [x], create_graph=True)
        yield g, g.requires_grad
        if g.requires_grad:
            weighted = (g.square() + after).sum()
            yield torch.autograd.grad(weighted, leaves, allow_unused=True)
        (g,) = torch.autograd.grad(unused.sum(), [x], create_graph=True)
        yield g.requires_grad


@case
def retaining_left_behind(torch):
    """What retained its gradient says so still when it has left its graph."""
    for hooked in (False, True):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        if hooked:
            y.register_hook(lambda grad: grad * 3)
        y.retain_grad()
        yield y.retains_grad
        y.detach_()
        yield y.retains_grad, y.is_leaf
        y.requires_grad_()
        (y * 5).sum().backward()
        yield y.grad, x.grad, y.retains_grad
        y.detach_()
        yield y.retains_grad, (x * 2).detach_().retains_grad


LAYOUTS = {
    "transposed": lambda torch: (torch.ones(2, 3), torch.ones(3, 2).t()),
    "of a transposed leaf": lambda torch: (torch.ones(3, 2).t(), torch.ones(2, 3)),
    "both transposed": lambda torch: (torch.ones(3, 2).t(), torch.ones(3, 2).t()),
    "of a leaf with gaps": lambda torch: (torch.ones(2, 6)[:, ::2], torch.ones(2, 3)),
    "with gaps": lambda torch: (torch.ones(2, 3), torch.ones(2, 6)[:, ::2]),
    "of size 1": lambda torch: (torch.ones(1, 3), torch.ones(3, 1).t()),
    "made by the backward": lambda torch: (torch.ones(2, 3), None),
}


@case.over(layout=list(LAYOUTS), create=[False, True])
def gradients_laid_out_otherwise(torch, layout, create):
    """PyTorch warns of them once, where something is added to them."""
    data, grad = LAYOUTS[layout](torch)
    x = data.requires_grad_()
    x.grad = grad
    for _ in range(3):
        (x * x).t().sum().backward(create_graph=create)
        yield x.grad.stride()
    x.grad = None
