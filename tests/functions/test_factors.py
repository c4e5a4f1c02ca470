"""The factors of sums with products: of kinds that the elements cannot take."""

import itertools

from tests.oracle import attempt, case

FACTORS = (2.0, True, 2, 2j, 3 + 0j, 0)


@case
def of_other_kinds(torch):
    for name in ("int64", "int8", "bool", "float16", "float32", "complex64"):
        m = torch.ones(2, 2, dtype=getattr(torch, name))
        a = torch.ones(2, dtype=getattr(torch, name))
        for beta, alpha in itertools.product(FACTORS, repeat=2):
            given = {"beta": beta, "alpha": alpha}
            yield attempt(torch.addr, m, a, a, **given)
            yield attempt(m.clone().addr_, a, a, **given)
            yield attempt(torch.addmm, m, m, m, **given)
            yield attempt(torch.addbmm, m, m[None], m[None], **given)
            yield attempt(torch.baddbmm, m[None], m[None], m[None], **given)
            if name != "float16":
                yield attempt(torch.addmv, a, m, a, **given)


@case
def batches_of_bools(torch):
    for n in (1, 2, 8):
        b = torch.ones(2, n, n, dtype=torch.bool)
        yield attempt(torch.baddbmm, b, b, b), attempt(torch.bmm, b, b)
        yield attempt(torch.baddbmm, b, b, b, beta=0), attempt(torch.matmul, b, b)
        yield attempt(torch.addbmm, b[0], b, b), attempt(b.clone().baddbmm_, b, b)


@case
def of_element_wise_operators(torch):
    nn = torch.nn.functional
    at = torch.tensor([0])
    for name in ("int64", "float32"):
        x = torch.tensor([1, 2, 3]).to(getattr(torch, name))
        for c in (2 + 0j, 2j):
            yield attempt(torch.addcmul, x, x, x, value=c)
            yield attempt(torch.addcdiv, x, x, x, value=c)
            yield attempt(torch.constant_pad_nd, x, (1, 1), c)
            yield attempt(x.clone().fill_, c), attempt(x.index_fill, 0, at, c)
            yield attempt(torch.full_like, x, c), attempt(x.masked_fill, x > 1, c)
            yield attempt(torch.add, x, x, alpha=c), attempt(x.clone().mul_, c)
            if x.is_floating_point():
                yield attempt(nn.leaky_relu, x, c), attempt(nn.elu, x, c)
                yield attempt(nn.hardshrink, x, c), attempt(nn.softplus, x, c)
            if c.imag:
                yield attempt(torch.lerp, x, x + 1, c)


LARGE = (-1, -1.5, -0.5, 65519, 65520, 1e39, 3.4028235e38, -256, 255.5, 1e39j)
FILLED = ("uint8", "int8", "int32", "float16", "bfloat16", "float32", "complex64")


@case
def filled_with_what_is_too_large(torch):
    for name, v in itertools.product(FILLED, LARGE):
        x = torch.ones(2, dtype=getattr(torch, name))
        yield attempt(x.clone().fill_, v), attempt(torch.full_like, x, v)
        yield attempt(torch.full, (2,), v, dtype=x.dtype), attempt(x.new_full, (1,), v)
        yield attempt(torch.tensor, [v], dtype=x.dtype)
        yield attempt(torch.scalar_tensor, v, dtype=x.dtype)
        yield attempt(torch.as_tensor, v, dtype=x.dtype)
        for at in (0, [0], slice(1), x != 0):
            y = x.clone()
            yield attempt(y.__setitem__, at, v), y


@case
def pivots_that_are_none(torch):
    LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    for wrong in (pivots + 5, pivots * 0, pivots - 9):
        yield attempt(torch.linalg.lu_solve, LU, wrong, torch.ones(2, 1))
        yield attempt(torch.lu_unpack, LU, wrong)
        yield attempt(torch.lu_unpack, LU, wrong, unpack_pivots=False)


@case
def nothing_without_pivoting(torch):
    linalg = torch.linalg
    for function in (linalg.lu, linalg.lu_factor, linalg.lu_factor_ex):
        for shape in ((0, 3), (3, 0), (0, 2, 2), (2, 2)):
            yield attempt(function, torch.ones(shape), pivot=False)
        yield attempt(function, torch.ones(0, 2).int(), pivot=False)
