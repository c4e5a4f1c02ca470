"""Sums that begin with a number, ``total = 0`` and then ``total += value``."""

from __future__ import annotations

from typing import Any

from tests.oracle import attempt, case

KINDS = "bool uint8 int32 int64 float16 bfloat16 float32 float64 complex64".split()


@case
def of_every_dtype(torch):
    for kind in KINDS:
        value = torch.tensor(1).to(getattr(torch, kind))
        for number in (0, 0.0, -0.0, False, 2, 0.5):
            total: Any = number
            for turn in range(3):
                total += value
                if turn == 0:
                    yield kind, total.clone(), total._version, total.is_leaf
            yield total, total._version, value, value._version
    for number in (0, 0.0, -0.0):
        total = number
        total += torch.tensor(-0.0)
        yield 1 / total


@case
def results_are_tensors_of_their_own(torch):
    value = torch.tensor(3.0)
    total = 0
    total += value
    total += value
    other = 0
    other += total
    other.mul_(2)
    yield total, other, value, total is not other
    for value in (torch.ones(2), torch.ones(1), torch.empty(0)):
        total = 0
        total += value
        yield total, total.data_ptr() != value.data_ptr() or not value.numel()
    torch.set_default_dtype(torch.float64)
    total = 0.0
    total += torch.tensor(2)
    torch.set_default_dtype(torch.float32)
    yield total


@case
def with_graphs(torch):
    value = torch.tensor(3.0, requires_grad=True)
    total = 0
    total += value
    total += value * 2
    yield total, total.grad_fn.next_functions[0][0].name()
    total.backward()
    yield value.grad
    with torch.no_grad():
        total = 0
        total += value
        yield total, total.requires_grad, total.is_leaf
        total += value
    yield total.requires_grad_()
    parameter = torch.nn.Parameter(torch.tensor(1.0))
    with torch.no_grad():
        total = 0
        total += parameter
    yield type(total).__name__, total
    with torch.inference_mode():
        total: Any = 0
        total += torch.tensor(1.0)
        yield total.is_inference(), attempt(lambda: total._version)
    total = 0
    total += torch.tensor(1.0, device="meta")
    yield total.device, total.shape


@case
def within_transforms(torch):
    def mean(rows):
        total = 0.0
        for row in rows:
            total += row.sum()
        return total / len(rows)

    x = torch.arange(6.0).view(2, 3)
    yield mean(x), torch.func.grad(mean)(x)
    yield torch.vmap(mean)(torch.stack([x, x * 2]))
    yield torch.autograd.functional.hessian(mean, x).shape

    class Squares(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            total = 0
            for row in x:
                total += row.square().sum()
            return total

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * grad * x

    x.requires_grad_()
    result = Squares.apply(x)
    result.backward()
    yield result, x.grad


@case
def overridden(torch):
    class Named(torch.Tensor):
        pass

    calls = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return func(*args, **(kwargs or {}))

    total = 0
    total += torch.tensor(1.0).as_subclass(Named)
    yield type(total).__name__, total.item()
    one = torch.tensor(1.0)
    with Mode():
        total = 0
        total += one
        total += one
    yield calls, total
