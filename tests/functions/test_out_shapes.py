"""`out=` of other shapes, orders and dtypes, and `out=` that requires grad."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


# `g` requires grad, `t` is in column order, `s` has gaps.
@case.lines("""
torch.rand(3, out=g)
torch.rand(2, out=g)
torch.randn(3, out=g)
torch.randint(5, (3,), out=g)
torch.randperm(3, out=g)
torch.zeros(3, out=g)
torch.ones(2, out=g)
torch.empty(3, out=g)
torch.full((3,), 2.0, out=g)
torch.arange(3.0, out=g)
torch.range(0, 2, out=g)
torch.linspace(0, 1, 3, out=g)
torch.logspace(0, 1, 3, out=g)
torch.eye(3, out=g)
torch.normal(0.0, 1.0, (3,), out=g)
torch.normal(torch.zeros(3), 1.0, out=g)
torch.normal(torch.zeros(3, requires_grad=True), 1.0, out=o)
torch.normal(0.0, torch.ones(3), out=g)
torch.normal(torch.zeros(3), torch.ones(3), out=g)
torch.bernoulli(torch.ones(3), out=g)
torch.bernoulli(g, out=o)
torch.multinomial(torch.ones(3), 2, out=g)
torch.poisson(torch.ones(3), out=g)
torch.binomial(torch.ones(3), torch.ones(3), out=g)
torch.poisson(torch.ones(3), out=o)
torch.rand(4, 5, out=t)
torch.randn(4, 5, out=t)
torch.randn(2, 3, out=t)
torch.randn(4, 4, out=s)
torch.rand(4, 4, out=s)
torch.randn(20, out=o.double())
torch.randint(9, (4, 5), out=t)
torch.randperm(5, out=s[0])
torch.normal(2.0, 3.0, (4, 5), out=t)
torch.normal(torch.arange(5.0), 2.0, out=t)
torch.normal(torch.arange(4.0)[:, None], 2.0, out=t)
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(3))
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(1))
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(0))
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(2, 5))
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(5, 1))
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=torch.zeros(2))
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=torch.zeros(0))
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=t)
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=t.half())
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=t.double())
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=t.long())
torch.normal(torch.arange(5.0), torch.ones(4, 1), out=t.cfloat())
torch.normal(torch.arange(5.0).double(), torch.ones(4, 1), out=t.bfloat16())
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(5, dtype=torch.complex64))
torch.normal(torch.arange(5.0), 2.0, out=torch.zeros(5, dtype=torch.int32))
torch.normal(1.0, torch.arange(5.0), out=torch.zeros(3))
torch.normal(1.0, torch.arange(5.0), out=torch.zeros(0))
torch.normal(1.0, torch.arange(5.0), out=torch.zeros(4, 5))
torch.normal(1.0, torch.arange(5.0), out=torch.zeros(5).double())
torch.normal(1.0, -torch.arange(5.0), out=torch.zeros(5).double())
torch.normal(torch.arange(5.0), -1.0, out=torch.zeros(5))
torch.normal(torch.arange(5), 1.0, out=torch.zeros(5))
torch.normal(torch.arange(5), 1.0)
torch.normal(torch.arange(20.0), 2.0, out=o)
torch.normal(torch.arange(20.0).requires_grad_(), 2.0).requires_grad
torch.normal(torch.arange(5.0).requires_grad_(), 2.0, out=torch.zeros(5))
torch.normal(0.0, 1.0, (3,), out=torch.zeros(2, 2))
torch.bernoulli(torch.full((4, 5), 0.5), out=t)
torch.bernoulli(torch.full((4, 5), 0.5), out=torch.zeros(3))
torch.bernoulli(torch.full((4, 5), 0.5), out=t.long())
torch.bernoulli(torch.full((4, 5), 0.5), out=t.cfloat())
torch.bernoulli(torch.full((4, 5), 0.5), out=t.bool())
torch.bernoulli(torch.full((4, 5), 0.5).T, out=t.T)
torch.bernoulli(torch.full((4, 5), 1.5), out=t)
torch.bernoulli(torch.full((4, 5), 0.5).half(), out=t)
torch.bernoulli(torch.full((4, 5), 1), out=t)
torch.poisson(torch.full((4, 5), 5.), out=t)
torch.poisson(torch.full((4, 5), 5.), out=t.double())
torch.poisson(torch.full((4, 5), 5.), out=t.long())
torch.poisson(torch.full((4, 5), 5.), out=torch.zeros(3))
torch.binomial(torch.full((4, 5), 5.), torch.full((5,), 0.5), out=t)
torch.binomial(torch.full((4, 5), 5.), torch.full((5,), 0.5), out=t.long())
torch.arange(3, out=torch.zeros(5))
torch.arange(3, out=torch.zeros(3, 1))
torch.arange(3, out=torch.zeros(0))
torch.arange(4, out=torch.zeros(2, 2))
torch.arange(0, out=torch.zeros(2, 2))
torch.range(0, 3, out=torch.zeros(2, 2))
torch.range(0, 3, out=torch.zeros(3))
torch.linspace(0, 1, 0, out=torch.zeros(2, 0))
torch.linspace(0, 1, 2, out=torch.zeros(2, 1))
torch.linspace(0, 1, 4, out=torch.zeros(2, 2))
torch.linspace(0, 1, 0, out=torch.zeros(2, 2))
torch.logspace(0, 1, 0, out=torch.zeros(2, 0))
torch.logspace(0, 1, 2, out=torch.zeros(2, 1))
torch.eye(2, out=torch.zeros(4))
""")
def made(torch, line):
    g, o = torch.zeros(3, requires_grad=True), torch.zeros(20)
    t, s = torch.zeros(5, 4).T, torch.zeros(4, 8)[:, ::2]
    torch.manual_seed(3)
    made = evaluate(torch, line, g=g, o=o, t=t, s=s)
    return (made, made.stride()) if isinstance(made, torch.Tensor) else made


SHAPES = ((5,), (2, 3), (3, 4), (1,), (0,), (), (2, 2, 2, 2))


def _shapes(function, *args, **kwargs):
    result = attempt(function, *args, **kwargs)
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [getattr(each, "shape", each) for each in results]


# With what is said of each size.
@case.over("kthvalue", "mode", "median")
def without_a_dimension(torch, name):
    function = getattr(torch, name)
    for x in torch.arange(24.0).view(2, 3, 4), torch.ones(()):
        for dim in range(-x.ndim or -1, x.ndim or 1):
            args = (x, 1, dim) if name == "kthvalue" else (x, dim)
            for shape in SHAPES:
                out = torch.zeros(shape), torch.zeros(shape, dtype=torch.int64)
                yield _shapes(function, *args, out=out)
                yield _shapes(function, *args, True, out=out)


@case.lines("""
torch.narrow_copy(x, 1, 0, 2, out=o)
torch.unbind_copy(x, 0, out=(o, o.clone()))
torch.split_copy(x, 1, 0, out=(o, o.clone()))
torch.split_copy(x, 1, 0, out=(x[0].double()[None], x[:1].int()))
torch.split_with_sizes_copy(x, [1, 1], 0, out=(o, o.clone()))
torch.addbmm(torch.ones(3, 3), x, x.mT, out=o)
torch.masked_select(x, x > 5, out=o)
torch.chain_matmul(x[0], x[1].T, out=o)
torch.diff(x, out=o)
torch.gather(x, 0, torch.zeros(1, 1, 1, dtype=torch.int64), out=o)
torch.hstack([x, x], out=o)
torch.renorm(x, 1, 0, 1.0, out=o)
torch.aminmax(x, out=(o, o.clone()))
""")
def sizes(torch, line):
    for shape in (5,), (), (2, 3, 4), (0,):
        x, o = torch.arange(24.0).view(2, 3, 4), torch.zeros(shape)
        yield _shapes(evaluate, torch, line, x=x, o=o)
        yield o.shape
