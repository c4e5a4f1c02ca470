"""Operations counted as PyTorch counts them, forward and backward."""

from __future__ import annotations

import functools
import importlib
import warnings

import pytest

from tests.oracle import attempt, case


def _counter(torch, **options):
    module = importlib.import_module(f"{torch.__name__}.utils.flop_counter")
    return module.FlopCounterMode(display=False, **options)


def _counts(counter):
    return {
        module: {str(k): v for k, v in found.items()}
        for module, found in sorted(counter.get_flop_counts().items())
    }


def _ones(torch, needs, *shape):
    return torch.ones(shape, requires_grad=needs)


def _both(torch, f, *args, **kwargs):
    """What a function and its backward count."""
    with _counter(torch) as counter:
        out = f(*args, **kwargs)
        if out.requires_grad:
            out.sum().backward()
    return _counts(counter), counter.get_total_flops()


@case
def training_steps(torch):
    nn = torch.nn
    x = torch.linspace(-1, 1, 24).reshape(4, 6)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3, bias=False))
    optimizer = torch.optim.Adam(model.parameters())
    counter = _counter(torch)
    for _ in range(3):  # the same when it is met again
        with counter:
            nn.functional.cross_entropy(model(x), torch.arange(4) % 3).backward()
            optimizer.step()
        yield _counts(counter), counter.get_total_flops()
    with counter, torch.no_grad():
        model(x)
    yield _counts(counter)
    with counter:
        loss = model(x).sum()
        loss.item()  # the rest is another program
        loss.backward()
        model(x)
    yield _counts(counter)


@case
def residual_networks(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, n, m):
            super().__init__()
            self.conv1 = nn.Conv2d(n, m, 3, 2, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(m)
            self.conv2 = nn.Conv2d(m, m, 3, 1, 1, groups=2)
            self.shortcut = nn.Conv2d(n, m, 1, 2)

        def forward(self, x):
            out = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.conv2(out) + self.shortcut(x))

    pool, flat = nn.AdaptiveAvgPool2d(1), nn.Flatten()
    model = nn.Sequential(nn.Conv2d(3, 4, 3), Block(4, 8), pool, flat, nn.Linear(8, 5))
    x = torch.linspace(-1, 1, 2 * 3 * 100).reshape(2, 3, 10, 10)
    yield _both(torch, model, x)
    model.eval()
    yield _both(torch, model, x.clone().requires_grad_())
    F = nn.functional
    for name, x, w, options in (
        ("conv1d", (2, 3, 8), (6, 3, 3), {}),
        ("conv2d", (3, 8, 8), (6, 3, 3, 3), {"padding": "same"}),
        ("conv3d", (1, 2, 4, 4, 4), (3, 2, 2, 2, 2), {"dilation": 2}),
        ("conv_transpose1d", (2, 3, 8), (3, 5, 3), {"stride": 2}),
        ("conv_transpose2d", (2, 4, 8, 8), (4, 3, 3, 3), {"groups": 2}),
    ):
        for input_needs, weight_needs in ((True, True), (False, True), (True, False)):
            x_, w_ = torch.ones(x), torch.ones(w)
            x_.requires_grad_(input_needs), w_.requires_grad_(weight_needs)
            yield name, _both(torch, getattr(F, name), x_, w_, **options)


@case
def products_of_matrices(torch):
    F = torch.nn.functional
    shapes = ((4,), (3, 4), (2, 3, 4), (5, 2, 3, 4), (2, 0, 4))
    for needs in (True, False):
        tensor = functools.partial(_ones, torch, needs)
        for shape in shapes:
            for bias in (tensor(5), None):
                yield _both(torch, F.linear, tensor(*shape), tensor(5, 4), bias)
                swapped = tensor(3, 2, 2, 4).transpose(0, 1)
                yield _both(torch, F.linear, swapped, tensor(5, 4), bias)
        for left, right in (
            *((shape, (4,)) for shape in shapes),
            *((shape, (4, 5)) for shape in shapes),
            ((4,), (2, 4, 5)),
            ((3, 4), (2, 4, 5)),
            ((2, 3, 4), (2, 4, 5)),
            ((6, 1, 3, 4), (2, 4, 5)),
        ):
            yield left, right, _both(torch, torch.matmul, tensor(*left), tensor(*right))
        yield _both(torch, torch.addmm, tensor(5), tensor(3, 4), tensor(4, 5))
        a, b = (2, 3, 4), (2, 4, 5)
        yield _both(torch, torch.baddbmm, tensor(5), tensor(*a), tensor(*b))
        yield _both(torch, torch.addbmm, tensor(5), tensor(*a), tensor(*b))
        yield _both(torch, torch.bmm, tensor(*a), tensor(*b))
        yield _both(torch, torch.tensordot, tensor(*a), tensor(*b), ([2], [1]))
        yield _both(torch, torch.inner, tensor(3, 4), tensor(2, 4))
        yield _both(torch, F.bilinear, tensor(2, 4), tensor(2, 3), tensor(5, 4, 3))
        yield _both(torch, torch.mv, tensor(3, 4), tensor(4))
        yield _both(torch, lambda x: torch.nn.LSTMCell(4, 5)(x)[0], tensor(3, 4))
        for equation, *operands in (
            ("bij,kj->bik", (2, 3, 4), (5, 4)),
            ("bhid,bhjd->bhij", (2, 2, 3, 4), (2, 2, 5, 4)),
            ("ij->ji", (2, 3)),
            ("i,j->ij", (2,), (3,)),
            ("i,i->", (2,), (2,)),
            ("ij,j->i", (2, 3), (3,)),
            ("ij,ij->ij", (2, 3), (2, 3)),
            ("ij,jk->k", (2, 3), (1, 4)),
        ):
            given = [tensor(*shape) for shape in operands]
            yield equation, _both(torch, torch.einsum, equation, *given)


@case
def attention(torch):
    nn, F = torch.nn, torch.nn.functional

    tensor = functools.partial(_ones, torch, True)

    def attend(*shapes, **options):
        operands = [tensor(*shape) for shape in shapes]
        return _both(torch, F.scaled_dot_product_attention, *operands, **options)

    yield attend((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4))
    yield attend((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4), is_causal=True)
    yield attend((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4), attn_mask=tensor(5, 6))
    yield attend((2, 2, 5, 4), (2, 2, 6, 4), (2, 2, 6, 3))
    yield attend((2, 5, 4), (2, 6, 4), (2, 6, 4))
    yield attend((5, 4), (6, 4), (6, 4))
    yield attend((2, 4, 5, 4), (2, 2, 6, 4), (2, 2, 6, 4), enable_gqa=True)
    for first in (True, False):
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=first)
        model = nn.Sequential(nn.Embedding(7, 8), layer, nn.Linear(8, 7))
        tokens = torch.arange(10).reshape(2, 5) % 7
        yield _both(torch, model, tokens)
        model.eval()
        yield _both(torch, model, tokens)
    with torch.no_grad():
        yield _both(torch, model, tokens)
    whole = nn.Transformer(8, 2, 1, 1, 16)
    yield _both(torch, whole, tensor(5, 2, 8), tensor(3, 2, 8))


@case
def modules_and_formulas(torch):
    module = importlib.import_module(f"{torch.__name__}.utils.flop_counter")
    aten = torch.ops.aten
    x = torch.ones(2, 3, requires_grad=True)
    formula = {aten.mm: lambda a, b, out_shape=None: out_shape[0]}
    with _counter(torch, custom_mapping=formula) as counter:
        (x @ torch.ones(3, 4)).sum().backward()
    yield _counts(counter)
    yield attempt(lambda: module.register_flop_formula(aten.mm)(len))
    yield attempt(lambda: module.register_flop_formula("mm")(len))
    yield (
        module.mm_flop((2, 3), (3, 4)),
        module.conv_flop_count([1, 2, 3], [4, 2, 3], [1, 4, 1]),
    )
    yield attempt(lambda: module.mm_flop((2, 3), (4, 4)))
    yield attempt(lambda: module.bmm_flop((2, 3, 4), (1, 4, 4)))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        counter = _counter(torch, mods=torch.nn.Linear(2, 2))
    yield [str(w.message) for w in found]
    yield counter.get_total_flops(), counter.get_flop_counts()
    for number in (0, 12, 999, 12345, 10**6, 123456789, 10**13):
        suffix = module.get_suffix_str(number)
        yield suffix, module.convert_num_with_suffix(number, suffix)
    yield module.convert_to_percent_str(1, 3), module.convert_to_percent_str(0, 0)
    with _counter(torch) as outer:
        with _counter(torch) as inner:
            x @ torch.ones(3, 1)
        x @ torch.ones(3, 1)
    yield outer.get_total_flops(), inner.get_total_flops()


@case
def backwards_with_python_code(torch):
    nn = torch.nn
    checkpoint = importlib.import_module(
        f"{torch.__name__}.utils.checkpoint"
    ).checkpoint
    x = torch.ones(4, 6, requires_grad=True)
    model = nn.Sequential(nn.Linear(6, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 3)))
    for reentrant in (True, False):
        with _counter(torch) as counter:
            checkpoint(model, x, use_reentrant=reentrant).sum().backward()
        yield _counts(counter)

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b.T, a.T @ grad

    yield _both(torch, Product.apply, x, torch.ones(6, 5, requires_grad=True))
    with _counter(torch) as counter:
        loss = model(x).sum()
        loss.backward(retain_graph=True)
        loss.backward()
    yield _counts(counter)
    with _counter(torch) as counter:
        y = x * 1
        torch.autograd.grad(model[0](y).sum(), y)
        w = torch.ones(5, 5)
        w.addmm_(torch.ones(5, 2), torch.ones(2, 5))
        torch.mm(w, w, out=torch.empty(5, 5))
        with torch.autocast("cpu"):
            model(x).sum().backward()
    yield _counts(counter)


def test_what_cannot_be_counted_is_refused():
    import torchshim as torch

    x = torch.ones(3, 3, requires_grad=True)

    def second_derivative():
        (grad,) = torch.autograd.grad((x @ x).sum(), x, create_graph=True)
        grad.sum().backward()

    for compute in (
        second_derivative,
        lambda: torch.func.vmap(lambda a: a @ a)(torch.ones(2, 3, 3)),
        lambda: torch.linalg.multi_dot([x, x, x]),
        lambda: torch.nn.LSTM(3, 3)(x),
        lambda: torch.nn.MultiheadAttention(3, 1, batch_first=True).eval()(
            *[x[None]] * 3
        ),
    ):
        with pytest.raises(NotImplementedError), torch.no_grad():
            with _counter(torch), torch.set_grad_enabled(compute is second_derivative):
                compute()
    with _counter(torch) as counter:
        x @ x
    assert counter.get_total_flops() == 54
