"""Gradients that are sparse: of embeddings, of bags of them, and of `gather`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import attempt, case
from torchshim._core.program import LOG


def table(torch, rows=6):
    return torch.arange(2.0 * rows).reshape(rows, 2).requires_grad_()


def seen(grad):
    """What a gradient is made of."""
    if grad is None or not grad.is_sparse:
        return grad
    return (
        str(grad),
        (grad._nnz(), grad.is_coalesced(), grad.sparse_dim(), grad.layout),
        (grad._indices(), grad._values().detach(), grad.shape, grad.dtype),
        (grad.requires_grad, grad.is_leaf, type(grad.grad_fn).__name__),
    )


def scaled(torch, result):
    """A loss in which each element has another weight."""
    return (result * torch.arange(1.0, result.numel() + 1).view(result.shape)).sum()


INDICES = {
    "rows": [1, 3, 1, 0],
    "matrix": [[1, 3], [1, 0]],
    "one": 3,
    "one_of_many": [2],
    "none": [],
    "all_left_out": [4, 4],
}


@case.over(index=[*INDICES], padding=[None, 0, 4, -3])
def embeddings(torch, index, padding):
    w, i = table(torch), torch.tensor(INDICES[index], dtype=torch.int64)
    out = torch.nn.functional.embedding(i, w, padding, sparse=True)
    scaled(torch, out).backward()
    yield out, seen(w.grad)
    yield w.grad.coalesce().to_dense(), w.grad.to_dense()


BAGS = {
    "plain": {},
    "padding": {"padding_idx": 1},
    "last": {"include_last_offset": True},
    "short": {"include_last_offset": True, "padding_idx": 1, "last": 4},
    "weights": {"weights": True},
    "weights_and_padding": {"weights": True, "padding_idx": 3},
}


@case.over(mode=["sum", "mean"], options=[*BAGS])
def bags(torch, mode, options):
    options, w = dict(BAGS[options]), table(torch)
    offsets = torch.tensor([0, 2, 2, options.pop("last", 5)])
    i = torch.tensor([1, 3, 1, 0, 5])
    given = None
    if options.pop("weights", False) and mode == "sum":
        given = torch.arange(5.0).requires_grad_()
    out = torch.nn.functional.embedding_bag(
        i, w, offsets, mode=mode, sparse=True, per_sample_weights=given, **options
    )
    scaled(torch, out).backward()
    yield out.detach(), seen(w.grad), given if given is None else given.grad


@case
def layers(torch):
    i = torch.tensor([[1, 2], [2, 4]])
    for layer in (
        torch.nn.Embedding(5, 2, padding_idx=2, sparse=True),
        torch.nn.EmbeddingBag(5, 2, sparse=True),
        torch.nn.EmbeddingBag(5, 2, mode="sum", padding_idx=1, sparse=True),
        torch.nn.Embedding(5, 2, max_norm=0.5, sparse=True),
    ):
        scaled(torch, layer(i)).backward()
        yield layer, seen(layer.weight.grad)
        layer.zero_grad(set_to_none=False)
        yield seen(layer.weight.grad)
        layer.zero_grad()
        yield layer.weight.grad


@case
def what_is_refused(torch):
    fns, i = torch.nn.functional, torch.tensor([1, 3])
    w = table(torch)
    by_frequency = fns.embedding(i, w, scale_grad_by_freq=True, sparse=True)
    yield attempt(by_frequency.sum().backward)
    by_frequency = fns.embedding_bag(
        i[None], w, scale_grad_by_freq=True, mode="sum", sparse=True
    )
    yield attempt(by_frequency.sum().backward)
    yield attempt(fns.embedding_bag, i[None], w, mode="max", sparse=True)
    used = fns.embedding(i, w, sparse=True)
    used.sum().backward()
    yield attempt(used.sum().backward)
    changed = fns.embedding(i, w, sparse=True)
    i[0] = 2
    yield attempt(changed.sum().backward)


@case
def dtypes(torch):
    for kind in (torch.float16, torch.bfloat16, torch.float64):
        w = torch.ones(4, 2, dtype=kind, requires_grad=True)
        i = torch.tensor([1, 2, 1], dtype=torch.int32)
        (torch.nn.functional.embedding(i, w, sparse=True) * 2).sum().backward()
        yield seen(w.grad), seen(w.grad.coalesce())


def looked_up(torch, w, *index, **options):
    i = torch.tensor(index)
    return scaled(torch, torch.nn.functional.embedding(i, w, sparse=True, **options))


@case
def sums(torch):
    w = table(torch)
    (looked_up(torch, w, 3, 1) + looked_up(torch, w, 0, 3, 3)).backward()
    yield seen(w.grad)
    first = w.grad
    looked_up(torch, w, 1, 0, 1, 5, padding_idx=0).backward()
    yield first is w.grad, seen(w.grad)
    looked_up(torch, w, 2, padding_idx=2).backward()
    yield first is w.grad, seen(w.grad)
    (w * w).sum().backward()
    yield first is w.grad, w.grad
    second = w.grad
    looked_up(torch, w, 2, 2).backward()
    yield second is w.grad, w.grad


@case
def with_what_is_dense(torch):
    w = table(torch)
    (looked_up(torch, w, 3, 1) + (w * w).sum()).backward()
    yield w.grad
    w.grad = None
    ((w * w).sum() + looked_up(torch, w, 3, 1, 3)).backward()
    yield w.grad


@case(warnings=False)
def a_grad_that_was_assigned(torch):
    w = table(torch)
    given = torch.sparse_coo_tensor([[1, 4]], [[1.0, 2.0], [3.0, 4.0]], (6, 2))
    w.grad = given.coalesce()
    mine = w.grad
    looked_up(torch, w, 4, 2).backward()
    yield mine is w.grad, seen(w.grad)
    w.grad = torch.sparse_coo_tensor([[1, 3], [0, 1]], [1.0, 2.0], (6, 2))
    yield attempt(looked_up(torch, w, 4).backward)
    w = table(torch)
    looked_up(torch, w, 4, 2).backward()
    held = w.grad._values()
    looked_up(torch, w, 4, 2).backward()
    held.zero_()
    yield seen(w.grad)
    w.grad.zero_()
    yield w.grad._nnz()
    w.grad *= 2
    looked_up(torch, w, 4, 2).backward()
    w.grad.mul_(3)
    yield seen(w.grad)


@case
def grads_asked_for(torch):
    w = table(torch)
    loss = looked_up(torch, w, 3, 1) + looked_up(torch, w, 1)
    (grad,) = torch.autograd.grad(loss, w)
    yield seen(grad), w.grad
    v = table(torch)
    loss = looked_up(torch, w, 3, 1) * (v * v).sum()
    one, other = torch.autograd.grad(loss, (w, v))
    yield seen(one), other
    yield attempt(torch.autograd.grad, looked_up(torch, w, 3), (w, v))


@case(warnings=False)
def of_second_order(torch):
    w = table(torch)
    loss = (torch.nn.functional.embedding(torch.tensor([3, 1, 3]), w, sparse=True)) ** 3
    (grad,) = torch.autograd.grad(loss.sum(), w, create_graph=True)
    yield seen(grad)
    (second,) = torch.autograd.grad(grad.to_dense().pow(2).sum(), w)
    yield seen(second)
    for _ in range(2):
        loss = torch.nn.functional.embedding(torch.tensor([3, 1]), w, sparse=True) ** 2
        loss.sum().backward(create_graph=True)
        yield seen(w.grad)


@case
def hooks(torch):
    w = table(torch)
    w.register_hook(lambda grad: print("hook", grad))
    w.register_hook(lambda grad: grad * 2)
    w.register_post_accumulate_grad_hook(lambda p: print("after", p.grad))
    looked_up(torch, w, 3, 1).backward()
    yield seen(w.grad)
    looked_up(torch, w, 1, 4).backward()
    yield seen(w.grad)
    held, v = [], table(torch)
    v.register_hook(held.append)
    looked_up(torch, v, 3, 1).backward()
    v.grad *= 2
    v.grad._values().add_(1)
    yield held[0] is v.grad, seen(held[0]), seen(v.grad)
    v.register_hook(lambda grad: grad.to_dense())
    yield attempt(looked_up(torch, v, 3, 1).backward)


@case
def tables_that_are_computed(torch):
    w = table(torch)
    v = w + 0.0
    v.retain_grad()
    v.register_hook(lambda grad: print(grad))
    looked_up(torch, v, 3, 1).backward()
    yield seen(v.grad), seen(w.grad)
    v = w + 0.0
    v.retain_grad()
    loss = looked_up(torch, v, 3, 1)
    loss.backward(retain_graph=True)
    loss.backward()
    yield seen(v.grad)


@case.over(float=["2 * w", "-w", "w.exp()"])
def computed_tables_have_the_same_gradient(torch, float):
    w = table(torch)
    looked_up(torch, eval(float, {"w": w}), 3, 1, 3).backward()
    yield w.grad.to_dense()


@case(warnings=False)
def functions(torch):
    def loss(w):
        return looked_up(torch, w, 3, 1)

    yield seen(torch.func.grad(loss)(torch.ones(5, 2)))
    both = torch.func.jvp(loss, (torch.ones(5, 2),), (torch.ones(5, 2),))
    yield both


GATHERED = {
    "rows": ((2, 3), 1, [[0, 2], [1, 1]]),
    "columns": ((2, 3), 0, [[0, 1], [1, 1]]),
    "from_the_end": ((2, 3), -1, [[0, 2]]),
    "three": ((2, 2, 3), 1, [[[0, 1, 1]]]),
    "vector": ((5,), 0, [4, 1, 4]),
    "one": ((5,), 0, 3),
    "number": ((), 0, [0, 0]),
    "empty": ((2, 3), 1, [[], []]),
}


@case.over(GATHERED)
def gathered(torch, shape, dim, index):
    x = torch.arange(float(torch.Size(shape).numel())).view(shape).requires_grad_()
    i = torch.tensor(index, dtype=torch.int64)
    scaled(torch, x.gather(dim, i, sparse_grad=True)).backward()
    yield seen(x.grad)
    scaled(torch, torch.gather(x, dim, i, sparse_grad=True)).backward()
    yield seen(x.grad)
    if x.ndim and i.numel():
        loss = torch.gather(x, dim, i, sparse_grad=True).pow(3).sum()
        (grad,) = torch.autograd.grad(loss, x, create_graph=True)
        yield seen(grad), seen(torch.autograd.grad(grad.to_dense().sum(), x)[0])


@pytest.mark.parametrize("kind", ["SparseAdam", "SGD", "Adagrad"])
@pytest.mark.parametrize(("times", "none"), [(1, True), (1, False), (2, True)])
def test_a_steady_step_is_one_program(kind: str, times: int, none: bool) -> None:
    import torchshim as torch

    left = torch.nn.Embedding(9, 2, sparse=True)
    right = torch.nn.Embedding(9, 2, padding_idx=0, sparse=True)
    params = [*left.parameters(), *right.parameters()]
    optimizer = getattr(torch.optim, kind)(params, lr=0.1)

    def train(steps: int) -> int:
        before = len(LOG)
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=none)
            total = 0.0
            for _ in range(times):
                centre, others = torch.randint(0, 9, (2, 4)), torch.randint(0, 9, (8,))
                loss = (left(centre).sum(0) * right(centre)).sum()
                loss = loss + right(others).exp().sum()
                loss.backward()
                total = total + loss.detach()
            optimizer.step()
            float(total)
        return len(LOG) - before

    train(3)
    assert train(5) == 0
    assert right.weight.grad is not None and right.weight.grad.is_sparse


def test_no_mapping() -> None:
    import torchshim as torch

    w = table(torch)
    out = torch.nn.functional.embedding(torch.tensor([1]), w, sparse=True)
    with pytest.raises(NotImplementedError, match="sparse gradients"):
        torch.autograd.grad(out, w, torch.ones(3, 1, 2), is_grads_batched=True)


@case(warnings=False)
def used_as_gradients_are(torch):
    w = table(torch)
    looked_up(torch, w, 3, 1, 3).backward()
    with torch.no_grad():
        w.add_(w.grad, alpha=-0.1)
        yield w.detach().clone()
        w -= 0.1 * w.grad
        w.data.add_(-0.1, w.grad)
        yield w.detach().clone()
    torch._foreach_mul_([w.grad], 0.5)
    w.grad.div_(2).neg_()
    yield seen(w.grad), w.grad.norm(), w.grad.sum(), w.grad.pow(2)
    grad = w.grad
    grad.data = grad.coalesce()
    yield seen(w.grad), attempt(setattr, grad, "data", torch.ones(6, 2))
    yield attempt(setattr, grad, "data", 3)


@case
def layers_are_converted(torch):
    layer = torch.nn.Embedding(4, 2, sparse=True)
    torch.nn.init.ones_(layer.weight)
    looked_up(torch, layer.weight, 1, 2, 1).backward()
    grad = layer.weight.grad
    layer.double()
    yield seen(layer.weight.grad), layer.weight.grad is grad


@case(warnings=False)
def scaled_losses(torch):
    layer = torch.nn.Embedding(4, 2, padding_idx=1, sparse=True)
    torch.nn.init.ones_(layer.weight)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    for factor in (1.0, float("inf"), 2.0):
        optimizer.zero_grad()
        rows = layer(torch.tensor([2, 1, 2])) * torch.tensor(
            [[1.0], [factor], [factor]]
        )
        scaler.scale(rows.sum()).backward()
        scaler.unscale_(optimizer)
        yield seen(layer.weight.grad)
        scaler.step(optimizer)
        scaler.update()
        yield layer.weight.detach().clone(), scaler.get_scale()


@case(warnings=False)
def watched(torch):
    w = table(torch)
    with torch.autograd.detect_anomaly():
        looked_up(torch, w, 3, 1).backward()
    yield seen(w.grad)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: (kept.append(t), t)[1], lambda t: t
    ):
        loss = torch.nn.functional.embedding(torch.tensor([3, 1]), w, sparse=True)
    loss.backward(torch.ones(2, 2))
    yield kept, seen(w.grad)
    node = looked_up(torch, w, 1).grad_fn
    w.grad = None
    loss = torch.nn.functional.embedding(torch.tensor([3, 1]), w, sparse=True)
    loss.grad_fn.register_hook(lambda ins, outs: print(ins, outs))
    loss.grad_fn.next_functions[0][0].register_hook(lambda *g: print(g))
    loss.backward(torch.ones(2, 2))
    yield seen(w.grad), node.name()


@case
def checked(torch):
    w = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)

    def rows(w):
        return torch.nn.functional.embedding(torch.tensor([1, 3, 1]), w, sparse=True)

    return torch.autograd.gradcheck(rows, (w,))


@case(warnings=False)
def two_leaves(torch):
    w, v = table(torch), table(torch)
    looked_up(torch, w + v, 3, 1).backward()
    w.grad._values().mul_(2)
    yield seen(w.grad), seen(v.grad)


@case
def in_functions(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            print(grad)
            return grad * 2

    w = table(torch)
    looked_up(torch, Twice.apply(w), 3, 1).backward()
    yield seen(w.grad)


OPTIMIZERS = {
    "sgd": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9, "dampening": 0.5}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "maximize": ("SGD", {"maximize": True, "lr": 0.5}),
    "adagrad": ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.1}),
    "adagrad_fused": ("Adagrad", {"fused": True}),
    "lr": ("SGD", {"foreach": True}),
    "adam": ("Adam", {}),
    "adamw": ("AdamW", {"foreach": True}),
    "rprop": ("Rprop", {}),
    "asgd": ("ASGD", {}),
    "radam": ("RAdam", {}),
    "nadam": ("NAdam", {}),
    "adamax": ("Adamax", {}),
    "adadelta": ("Adadelta", {}),
    "adafactor": ("Adafactor", {}),
}


@case(warnings=False).over(OPTIMIZERS)
def steps_with_dense_ones(torch, name, options):
    w = torch.nn.Parameter(table(torch).detach())
    v = torch.nn.Parameter(torch.ones(3))
    optimizer = getattr(torch.optim, name)([w, v], **options)
    for k in range(3):
        optimizer.zero_grad()
        (looked_up(torch, w, k, 3, k, 1, padding_idx=1) + (v**2).sum()).backward()
        yield attempt(optimizer.step), w.detach().clone(), v.detach().clone()


@case(warnings=False)
def no_rows(torch):
    w = torch.nn.Parameter(table(torch).detach())
    for kind in ("SparseAdam", "SGD", "Adagrad"):
        optimizer = getattr(torch.optim, kind)([w], lr=0.1)
        nothing = torch.zeros(0, dtype=torch.int64)
        torch.nn.functional.embedding(nothing, w, sparse=True).sum().backward()
        optimizer.step()
        looked_up(torch, w, 2, 2, padding_idx=2).backward()
        optimizer.step()
        yield w.detach().clone(), seen(w.grad)
        w.grad = None


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}])
def test_sparse_parameters_are_refused(options: dict[str, Any]) -> None:
    import torchshim as torch

    p = torch.eye(2).to_sparse().requires_grad_()
    torch.sparse.sum(p).backward()
    with pytest.raises(NotImplementedError, match="sparse parameters"):
        torch.optim.SGD([p], lr=0.1, **options).step()
