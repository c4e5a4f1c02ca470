"""Numbers where functions take tensors, as in `torch.sub(1, x)`."""

from __future__ import annotations

import math

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.sub(1, x), torch.add(1, x, alpha=2), torch.mul(2, x), torch.div(1, x)
torch.div(1, x, rounding_mode="floor"), torch.multiply(2, x, out=torch.zeros(0))
torch.add(2.5, 1.5), torch.sub(3, 2), torch.mul(True, False), torch.div(3, 2)
torch.mul(2.5, x.half()), torch.mul(2.5, x.half()[0]), torch.mul(2.5, torch.tensor(3))
torch.mul(1j, x), torch.mul(1j, x.double()), torch.add(300, x.to(torch.uint8))
torch.sub(input=1, other=x), torch.subtract(2, x), torch.true_divide(1, x)
torch.sub(True, x > 1)
torch.sub("a", x)
torch.sub(None, x)
torch.exp(2)
torch.Tensor.mul(2, x)
(x * -1).abs_(), (x * -1).absolute_(), torch.abs_(x * -1)
torch.tensor([3 + 4j]).abs_()
torch.tensor([3 + 4j]).absolute_()
""")
def numbers(torch, line):
    return evaluate(torch, line, x=torch.tensor([1.5, 2.0]))


@case
def gradients(torch):
    x = torch.tensor([1.5, 2.0], requires_grad=True)
    for function in (torch.sub, torch.div, torch.mul):
        made = function(3, x)
        yield made.grad_fn.name(), torch.autograd.grad(made.sum(), x)
    return attempt(torch.igamma, torch.ones(2).int(), x)


@case
def refused_types(torch):
    i = torch.tensor([1, 2])
    yield attempt(torch.lerp, i, i, 0.5)
    yield attempt(torch.lerp, i, i, i)
    yield attempt(torch.rot90, torch.ones(2, 2), 1, [0, 2])
    yield attempt(torch.rot90, torch.ones(2, 2), 1, [0, -2])
    c = torch.ones(2, dtype=torch.complex64)
    for reduce in ("amax", "amin"):
        yield attempt(c.scatter_reduce, 0, torch.tensor([0, 0]), c, reduce)


_LIMITS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0]
_LARGE = [1e10, 1e6, 1e7, 7777.0, 1.1, 0.9, 2.0]
_DEGREES = [math.nan, math.inf, -math.inf, 0.0, 1.0, -1.0, 2.9, 7.0, 8.0, -3.0]
_POLYNOMIALS = [
    f"{kind}_{name}"
    for kind, names in (
        ("chebyshev_polynomial", "tuvw"),
        ("shifted_chebyshev_polynomial", "tuvw"),
        ("hermite_polynomial", ("h", "he")),
        ("laguerre_polynomial", "l"),
        ("legendre_polynomial", "p"),
    )
    for name in names
]


@case.over(dtype=["float32", "float64"])
def special_functions_at_their_limits(torch, dtype):
    dtype = getattr(torch, dtype)
    x, y = torch.meshgrid([torch.tensor(_LIMITS, dtype=dtype)] * 2, indexing="ij")
    for name in "gammainc", "gammaincc", "zeta", "xlogy", "xlog1py":
        yield getattr(torch.special, name)(x, y)
    x, y = torch.meshgrid([torch.tensor(_LARGE, dtype=dtype)] * 2, indexing="ij")
    for name in "gammainc", "gammaincc", "zeta":
        yield getattr(torch.special, name)(x, y)
    # (Of NaN PyTorch gives what was in memory, where there is no recurrence.)
    x, n = torch.tensor(_LIMITS[1:], dtype=dtype), torch.tensor(_DEGREES, dtype=dtype)
    for name in _POLYNOMIALS:
        yield getattr(torch.special, name)(x[:, None], n)


@case
def waves_of_airy(torch):
    """In float32 of as many digits as far from zero the phase has."""
    return torch.special.airy_ai(torch.arange(-100, 1, 3))


@case.over("atan", "atanh")
def ends_of_the_plane(torch, name):
    ends = torch.tensor([-float("inf"), -2.0, 0.0, 3.0, float("inf"), float("nan")])
    grid = torch.complex(*torch.meshgrid(ends, ends, indexing="ij"))
    return getattr(torch, name)(grid), getattr(torch, name)(grid.to(torch.cdouble))


@case.lines("""
y.conj_physical_()
y.polygamma_(1)
y.round_()
y.round_(decimals=0)
torch.round(y), torch.round(y, decimals=0), torch.special.round(y)
F.threshold(y, 0.5, 1), F.threshold(y, 0.5, 1, True)
F.threshold_(y, 0.5, 1)
F.rrelu(y, training=True), F.rrelu(y), F.rrelu(y, training=True, inplace=True)
torch.rrelu_(y, training=True)
""")
def nodes_of_forms(torch, line):
    x = torch.tensor([-0.75, 1.5], requires_grad=True)
    found = evaluate(torch, line, y=x.clone())
    for each in found if isinstance(found, tuple) else (found,):
        yield each.grad_fn.name()
