"""Gradients of jagged nested tensors, and what is kept of these in files."""

from __future__ import annotations

import copy
import io
import pickle

from tests.nested import seen
from tests.nested.test_jagged import jagged, parts
from tests.oracle import attempt, case


def weighted(torch, made):
    """A loss in which each value has another weight."""
    values = made.values() if made.is_nested else made
    weights = torch.arange(1.0, values.numel() + 1).view(values.shape)
    return (values * weights).sum()


@case.lines(r"""
x * 2
x.sin() + x.exp()
x + torch.ones(2, 1, 3)
x.to_padded_tensor(0.)
x.to_padded_tensor(0., (2, 5, 3))
x.amax(-1)
x.softmax(-1)
x.unsqueeze(-1)
x.view(2, -1, 1, 3)
x.chunk(3, -1)[1].clone()
x.chunk(2, 0)[1]
torch.cat([x, x * 2], -1)
torch.stack([x, x], -1)
x.unbind()[1]
x[0]
x @ torch.arange(6.).view(3, 2)
x @ torch.arange(12.).view(2, 3, 2)
F.linear(x, torch.arange(12.).view(4, 3))
F.layer_norm(x, (3,))
F.rms_norm(x, (3,))
torch.where(x > 0, x, 2 * x)
x.masked_fill(x > 0, 1.)
x.double()
x.clone()
""")
def to_leaves(torch, line):
    from tests.oracle import evaluate

    x = jagged(torch, requires_grad=True)
    weighted(torch, evaluate(torch, line, x=x)).backward()
    yield seen(x.grad), x.grad.size(1) == x.size(1)
    given = parts(torch, True)
    x = torch.nested.as_nested_tensor(given, layout=torch.jagged)
    weighted(torch, evaluate(torch, line, x=x)).backward()
    yield [part.grad for part in given]


@case
def to_values(torch):
    values = torch.arange(6.0).view(3, 2).requires_grad_()
    x = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 3]))
    (x * x).sum().backward()
    yield values.grad, x.is_leaf, x.grad_fn.name()
    dense = torch.arange(12.0).view(2, 3, 2).requires_grad_()
    torch.nested.as_nested_tensor(dense, layout=torch.jagged).exp().sum().backward()
    yield dense.grad
    row = torch.arange(8.0).view(2, 4).requires_grad_()
    start, length = torch.tensor([0, 2]), torch.tensor([3, 2])
    made = torch.nested.narrow(row, 1, start, length, layout=torch.jagged)
    torch.stack([(part * part).sum() for part in made.unbind()]).sum().backward()
    yield row.grad
    row.grad = None
    torch.nested.masked_select(row, row.detach() > 2).sum().backward()
    yield row.grad


@case(warnings=False)  # of the other kind of nested tensors
def through_attention(torch):
    made = [torch.randn(length, 2, 8) for length in (3, 1, 2)]
    leaf = torch.nested.nested_tensor(made, layout=torch.jagged, requires_grad=True)
    q = leaf.transpose(1, 2)
    out = torch.nn.functional.scaled_dot_product_attention(q, q, q)
    out.transpose(1, 2).values().square().sum().backward()
    return seen(leaf.grad)


@case
def functions_of_autograd(torch):
    x = jagged(torch, requires_grad=True)
    (found,) = torch.autograd.grad((x * x).sum(), x)
    yield seen(found)
    y = x * 3
    y.backward(torch.ones_like(y))
    yield seen(x.grad)
    yield attempt(lambda: (x * 2).backward())
    x.grad = None
    yield x.grad
    y = x * 3
    torch.autograd.backward([y.sum(), (x * x).sum()])
    yield seen(x.grad)
    (found,) = torch.autograd.grad(x * 3, x, torch.ones_like(x) * 2)
    yield seen(found)


@case
def hooks_and_retained(torch):
    x = jagged(torch, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda grad: print(grad.is_nested, grad.values()))
    (y * y).sum().backward()
    return seen(y.grad), seen(x.grad)


@case
def requires_grad(torch):
    x = jagged(torch)
    yield x.requires_grad, (x * 2).requires_grad
    yield seen(x.requires_grad_())
    yield seen(x * 2), (x * 2).grad_fn.name(), seen((x * 2).detach())
    with torch.no_grad():
        yield seen(x * 2)
    yield seen(x.requires_grad_(False))
    x.requires_grad = True
    yield seen(x)
    x.requires_grad = False
    yield attempt(lambda: jagged(torch).long().requires_grad_())
    yield x.grad_fn, (x.requires_grad_() + 1).grad_fn.name(), x.values().grad_fn.name()


@case
def copies(torch):
    x = jagged(torch, requires_grad=True)
    made = copy.deepcopy(x)
    yield seen(made), made.size(1) == x.size(1)
    yield type(attempt(copy.deepcopy, x * 2)).__name__
    made = pickle.loads(pickle.dumps(x))
    yield seen(made), made.size(1) == x.size(1), made._maybe_max_seqlen


@case.over(weights_only=[True, False])
def files(torch, weights_only):
    x, file = jagged(torch, requires_grad=True), io.BytesIO()
    torch.save({"x": x, "y": [x.detach() * 2]}, file)
    file.seek(0)
    found = torch.load(file, weights_only=weights_only)
    return seen(found["x"]), seen(found["y"])


@case
def custom_functions(torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            print("forward", x.is_nested)
            ctx.save_for_backward(x, factor)
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            x, factor = ctx.saved_tensors
            print("backward", grad.is_nested, x.is_nested, factor)
            return grad * factor, (grad * x).sum()

    x, factor = jagged(torch, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    made = Doubled.apply(x, factor)
    weighted(torch, made * made).backward()
    return seen(made.detach()), seen(x.grad), factor.grad


@case.over(use_reentrant=[False, True])
def checkpointed(torch, use_reentrant):
    checkpoint = torch.utils.checkpoint.checkpoint
    layer = torch.nn.Linear(3, 3)
    x = jagged(torch, requires_grad=True)

    def block(a, b):
        return layer(a).tanh() * b

    made = checkpoint(block, x, x, use_reentrant=use_reentrant)
    weighted(torch, made).backward()
    return seen(x.grad), layer.weight.grad
