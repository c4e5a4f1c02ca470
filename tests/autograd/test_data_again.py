"""Writes through `.data` before a gradient is differentiated again.

PyTorch's formula of a gradient holds some operands as they are, which are new then, and
values that were computed of them, which are old.
"""

from __future__ import annotations

import random

import pytest

from tests.oracle import case


def matrix(torch):
    values = [[1.25, 0.25, 0.125], [0.25, 1.5, 0.5], [0.125, 0.25, 1.0]]
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


PRODUCTS = {
    "mul": lambda torch, x: x * x * x,
    "mm": lambda torch, x: x @ x,
    "bmm": lambda torch, x: x[None].bmm(x[None]),
    "mv": lambda torch, x: x.mv(x[0]),
    "outer": lambda torch, x: torch.outer(x[0], x[1]),
    "addmm": lambda torch, x: torch.addmm(x, x, x, alpha=2),
    "linear": lambda torch, x: torch.nn.functional.linear(x, x, x[0]),
    "conv": lambda torch, x: torch.nn.functional.conv1d(x[None], x[:, :, None]),
    "bilinear": lambda torch, x: torch.nn.functional.bilinear(x, x, x[None]),
    "cross": lambda torch, x: torch.linalg.cross(x, x.flip(0)),
}
BY_RESULT = {
    "exp": lambda torch, x: x.exp(),
    "tanh": lambda torch, x: x.tanh(),
    "sigmoid": lambda torch, x: x.sigmoid(),
    "softmax": lambda torch, x: x.softmax(1),
    "sqrt": lambda torch, x: x.sqrt(),
    "inverse": lambda torch, x: x.inverse(),
}
WRITES = (((2,), True), ((2, 3), False))
# The formula takes an operand and what was computed of it.
MIXED = {
    "prod": lambda torch, x: x.prod(),
    "sin": lambda torch, x: x.sin(),
    "pow": lambda torch, x: x**3,
    "div": lambda torch, x: x / (x * x),
    "logsumexp": lambda torch, x: x.logsumexp(1),
    "norm": lambda torch, x: x.norm(),
    "addcmul": lambda torch, x: torch.addcmul(x, x, x, value=2),
    "lerp": lambda torch, x: torch.lerp(x, x * 2, x),
    "cumprod": lambda torch, x: x.cumprod(0),
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, (3,)),
}
# The first gradient already.
MIXED_AT_ONCE = {
    "layer_norm": MIXED["layer_norm"],
    "group_norm": lambda torch, x: torch.nn.functional.group_norm(x[None], 3),
    "rms_norm": lambda torch, x: torch.nn.functional.rms_norm(x, (3,)),
    "batch_norm": lambda torch, x: torch.nn.functional.batch_norm(
        x, None, None, training=True
    ),
    "local_response_norm": lambda torch, x: torch.nn.functional.local_response_norm(
        x[None], 2
    ),
    "logsigmoid": lambda torch, x: torch.nn.functional.logsigmoid(x),
    "det": lambda torch, x: x.det(),
    "logdet": lambda torch, x: x.logdet(),
    "pinv": lambda torch, x: torch.linalg.pinv(x),
    "matrix_exp": lambda torch, x: x.matrix_exp(),
    "matrix_power": lambda torch, x: x.matrix_power(3),
    "cosine_similarity": lambda torch, x: torch.nn.functional.cosine_similarity(
        x, x.flip(0) * 2
    ),
    "einsum": lambda torch, x: torch.einsum("ij,jk,kl->il", x, x, x),
}


def derivatives(torch, function, writes, read):
    """Three derivatives; before each of `writes` the leaf's memory is written to."""
    x = matrix(torch)
    y = function(torch, x)
    value = (y * y).sum()
    for order in (1, 2, 3):
        if read:
            value.tolist()
        if order in writes:
            x.data -= 0.125
        (grad,) = torch.autograd.grad(value, x, create_graph=True)
        yield grad.detach()
        value = (grad * grad.detach().sign()).sum()


@case.over(*[(n, w, r) for n in [*PRODUCTS, *BY_RESULT] for w, r in WRITES])
def of_a_leaf(torch, name, writes, read):
    function = PRODUCTS.get(name) or BY_RESULT[name]
    yield from derivatives(torch, function, writes, read)


@case.over(read=[False, True], how=["same", "other", "no_grad"])
def what_is_no_write_to_it(torch, read, how):
    x = matrix(torch)
    y = x.prod() + (x.sin() / x).sum()
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    if read:
        grad.tolist()
    if how == "same":
        x.data.add_(0)
    elif how == "other":
        grad.data.add_(0)
        y.data.add_(0)
    else:
        x.detach().requires_grad_().data.mul_(1)
    yield torch.autograd.grad(grad.sum(), x)


@case.over(read=[False, True])
def of_what_does_not_take_it(torch, read):
    """Second derivatives of what is linear take nothing but what arrives."""
    x, w = matrix(torch), matrix(torch)
    y = (x * w.detach()).sum() + x.mean() + x.var()
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    if read:
        grad.tolist()
    x.data.add_(1)
    yield torch.autograd.grad(grad[0, 0], x)


@pytest.mark.parametrize("name", MIXED)
def test_what_pytorch_mixes_is_refused(name):
    import torchshim as torch

    found = derivatives(torch, MIXED[name], (2,), name in ("prod", "sin"))
    next(found)
    with pytest.raises(NotImplementedError, match=r"overwritten through \.data"):
        next(found).tolist()


@pytest.mark.parametrize("name", MIXED_AT_ONCE)
def test_what_pytorch_mixes_in_the_first_gradient_is_refused(name):
    import torchshim as torch

    with pytest.raises(NotImplementedError, match=r"overwritten through \.data"):
        next(derivatives(torch, MIXED_AT_ONCE[name], (1,), False)).tolist()


@case
def views_written_to_again_after_an_untracked_write(torch):
    """Their node is made anew from the base, whatever recording the last was in."""
    for seed in (2, 8, 13, 21, 34):
        rng, arrays = random.Random(seed), []
        w = torch.tensor([1.0, 1.25, 1.5], requires_grad=True)
        factor, rows = w * 1, torch.arange(6.0).reshape(2, 3)
        view = torch.arange(6.0).reshape(2, 3)

        def read(values=(rows, factor, view), rng=rng, arrays=arrays):
            for each in values:
                if rng.random() < 0.3:
                    array = each.detach().numpy()
                    if rng.random() < 0.4:
                        arrays.append(array)

        for _ in range(3):
            read()
            view.sub_(factor)
            read()
            with torch.no_grad():
                torch.mul(rows, -1.5, out=view)
            read()
            (rows * factor).sum()
            read()
        yield view, torch.autograd.grad(view.sum(), w)
