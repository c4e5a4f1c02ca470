"""Means of infinite elements, gradients of `logit`, exponentials of matrices."""

from __future__ import annotations

from tests.oracle import case

INF, NAN = float("inf"), float("nan")
ROWS = [[INF, 1.0], [1.0, INF], [INF, INF], [NAN, 1.0], [INF, -INF], [1.0, 2.0]]


@case.over("var_mean", "std_mean")
def means(torch, name):
    function = getattr(torch, name)
    for kind in (torch.float32, torch.float64):
        x = torch.tensor(ROWS, dtype=kind)
        yield function(x, 1), function(x[:2], 0), function(x[1]), function(x)
    z = torch.tensor([[complex(INF, 1), 1], [complex(1, INF), 1], [1, 2j]])
    yield function(z, 1)


@case.over(None, -1.0, 0.0, 0.1, 0.6, 1.5)
def logits(torch, eps):
    x = torch.tensor([-1.0, 0.0, 0.05, 0.5, 0.95, 1.0, 2.0, NAN])
    for kind in (torch.float32, torch.float64, torch.bfloat16):
        y = x.to(kind).requires_grad_()
        out = torch.logit(y, eps)
        out.sum().backward()
        yield out.detach(), y.grad


MATRICES = {
    "one": [[1.0, 2.0], [3.0, 4.0]],
    "three": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]],
    "small": [[0.1, 0.2], [0.3, 0.4]],
    "tiny": [[1e-4, 0.0], [0.0, 1e-3]],
    "triangular": [[10.0, 0.0], [1.0, 2.0]],
    "large": [[20.0, 1.0], [1.0, 20.0]],
    "negative": [[-3e3, 1.0], [0.0, -5e3]],
    "zero": [[0.0, 0.0], [0.0, 0.0]],
    "nan": [[NAN, 0.0], [0.0, 1.0]],
    "complex": [[1j, 2.0], [0.0, 1.0]],
}


@case.over(*MATRICES)
def exponentials(torch, name):
    x = torch.tensor(MATRICES[name])
    for kind in (x.dtype, torch.complex128 if x.is_complex() else torch.float64):
        y = x.to(kind).requires_grad_()
        out = torch.linalg.matrix_exp(y)
        if name not in ("large", "three", "complex"):
            out.sum().backward()
        yield out.detach(), y.grad


@case
def exponentials_of_a_batch(torch):
    x = torch.stack([torch.tensor(MATRICES[n]) for n in ("one", "small", "large")])
    x.requires_grad_()
    out = torch.linalg.matrix_exp(x)
    (out * torch.tensor([1.0, 1.0, 1e-8])[:, None, None]).sum().backward()
    yield out.detach(), x.grad
