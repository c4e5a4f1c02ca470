"""`Tensor.grad_dtype`: the dtype that the gradient of a leaf has."""

from __future__ import annotations

import copy

from tests.oracle import attempt, case

DTYPES = ["float64", "float16", "complex64", "None"]


def leaf(torch, dtype, of="float32"):
    x = torch.tensor([1.0, 2.5], dtype=getattr(torch, of), requires_grad=True)
    x.grad_dtype = getattr(torch, dtype, None)
    return x


def wider(torch):
    """A function whose backward gives another dtype than its operand has."""

    class Wider(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.double() * 2

    return Wider.apply


@case.over(dtype=DTYPES)
def accumulated(torch, dtype):
    x = leaf(torch, dtype)
    yield x.grad_dtype
    for _ in range(3):
        yield attempt((x * x).sum().backward), x.grad
    x.grad = None
    yield attempt((x * 3).sum().backward), x.grad
    yield attempt((x * x).sum().backward, create_graph=True), x.grad
    yield attempt(torch.autograd.grad, (x * x).sum(), x)


@case.over(dtype=DTYPES)
def of_a_custom_function(torch, dtype):
    x, function = leaf(torch, dtype), wider(torch)
    for _ in range(2):
        yield attempt(function(x).sum().backward), x.grad
    x.grad = None
    yield attempt((function(x) + x).sum().backward), x.grad
    yield attempt(torch.autograd.grad, function(x).sum(), x)


@case
def what_hooks_see(torch):
    x, seen = leaf(torch, "float64"), []
    x.register_hook(lambda grad: seen.append(grad.dtype))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.dtype))
    (x * x).sum().backward()
    yield seen, x.grad
    x.register_hook(lambda grad: grad.float())
    yield attempt((x * x).sum().backward), x.grad


@case
def changed_between_steps(torch):
    x = leaf(torch, "float32")
    for dtype in (torch.float32, torch.float64, torch.float32, None, torch.float16):
        x.grad = None
        x.grad_dtype = dtype
        for _ in range(3):
            (x * x).sum().backward()
            yield x.grad
    y = x * x
    x.grad = None
    x.grad_dtype = torch.float64
    yield attempt(y.sum().backward), x.grad


@case
def set_to_what_is_refused(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    yield attempt(lambda: y.grad_dtype), attempt(setattr, y, "grad_dtype", None)
    yield attempt(setattr, y, "grad_dtype", torch.float32)
    for value in ("float64", 1, torch.ones(1), torch.int64, torch.bool):
        yield attempt(setattr, x, "grad_dtype", value), x.grad_dtype
        x.grad_dtype = torch.float32
    x.grad = torch.ones(2)
    yield attempt(setattr, x, "grad_dtype", torch.float64), x.grad_dtype
    yield attempt(setattr, x, "grad_dtype", torch.float32)
    yield attempt(setattr, x, "grad_dtype", None)


@case
def assigned_gradients(torch):
    x = leaf(torch, "float64")
    yield attempt(setattr, x, "grad", torch.ones(2)), x.grad
    yield attempt(setattr, x, "grad", torch.ones(2, dtype=torch.float64)), x.grad
    x.grad = None
    x.grad_dtype = None
    for dtype in (torch.int64, torch.float16, torch.complex64, torch.bool):
        yield attempt(setattr, x, "grad", torch.ones(2, dtype=dtype)), x.grad


@case
def of_what_is_made_of_it(torch):
    x = leaf(torch, "float64")
    yield x.detach().grad_dtype, x.data.grad_dtype, copy.deepcopy(x).grad_dtype
    yield x.detach().requires_grad_().grad_dtype
    plain = torch.ones(2)
    plain.grad_dtype = torch.float64
    yield plain.grad_dtype, plain[:1].grad_dtype, (plain * 2).grad_dtype
    plain.requires_grad_()
    (plain * 2).sum().backward()
    yield plain.grad, plain.grad_dtype
    net = torch.nn.Linear(2, 1)
    for p in net.parameters():
        p.grad_dtype = torch.float64
    net(torch.ones(1, 2)).sum().backward()
    yield [p.grad.dtype for p in net.parameters()]
    yield [p.grad_dtype for p in net.double().parameters()]
    yield [p.grad_dtype for p in torch.nn.Linear(2, 1).half().parameters()]
    z = leaf(torch, "float64")
    y = z.detach_()
    yield y.grad_dtype
    w = leaf(torch, "float64")
    with torch.no_grad():
        w.mul_(2)
    w.data = torch.zeros(2)
    yield w.grad_dtype
    (w * w).sum().backward()
    yield w.grad


@case.over(where=["leaf", "another leaf", "in between"])
def after_steps_with_hooks(torch, where):
    """A step as others before, whose hooks are called on the way to the leaf."""

    def step(dtype):
        x, y = (torch.tensor([1.0, 2.5], requires_grad=True) for _ in range(2))
        if dtype is not None:
            x.grad_dtype = dtype
        z = y * 2
        if where != "in between":
            (x if where == "leaf" else y).register_hook(lambda grad: seen.append(grad))
        else:
            z.register_hook(lambda grad: seen.append(grad))
        (x * 3 + x + z).sum().backward()
        return x.grad

    seen = []
    for dtype in (None, torch.float64, None, torch.float16):
        yield step(dtype), step(dtype), seen.copy()
        seen.clear()


@case.over(post=[False, True], read=[False, True])
def set_by_a_hook_of_another_leaf(torch, post, read):
    """A gradient is cast as it arrives; what a leaf's hooks set comes after that."""
    for inner in (False, True):
        for _ in range(2):
            x, y = (torch.tensor([1.0, 2.5], requires_grad=True) for _ in range(2))

            def hook(given, y=y):
                y.grad_dtype = torch.float64

            if post:
                x.register_post_accumulate_grad_hook(hook)
            else:
                x.register_hook(hook)
            out = x * (y.exp() if inner else y)
            if read:
                out.tolist()
            out.sum().backward()
            yield x.grad, y.grad, y.grad_dtype
