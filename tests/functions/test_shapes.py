"""What is said of operands whose shapes do not go together."""

from __future__ import annotations

from itertools import product
from operator import matmul

from tests.oracle import attempt, case

SHAPES = (
    (),
    (2,),
    (3,),
    (0,),
    (2, 3),
    (3, 2),
    (1, 3),
    (2, 3, 2),
    (1, 2, 3),
    (2, 1, 3, 2),
)


def _shape(function, *operands):
    """The shape of a result, or what is said instead."""
    return attempt(lambda: str(tuple(function(*operands).shape)))


def _said(function, *operands, **named):
    return attempt(lambda: function(*operands, **named))


def _pairs(torch, shapes=SHAPES):
    for a, b in product(shapes, repeat=2):
        yield torch.ones(a), torch.ones(b)


@case(warnings=False)
def in_place(torch):
    for x, y in _pairs(torch):
        for name in "masked_fill_", "masked_scatter_":
            mask, value = y > 0, x.clone() if name == "masked_scatter_" else 3
            yield _shape(getattr(x.clone(), name), mask, value)
        yield _shape(x.clone().bernoulli_, y)
        yield _shape(x.clone().add_, y)
        yield _shape(x.t_)


@case(warnings=False)
def bernoulli_keeps_the_shape(torch):
    for x, y in _pairs(torch):
        _said(x.bernoulli_, y)
        yield tuple(x.shape)


ADDING = {
    "addmm": ((2, 3), (3, 2)),
    "addmv": ((2, 3), (3,)),
    "addr": ((2,), (3,)),
    "addbmm": ((1, 2, 3), (1, 3, 2)),
    "baddbmm": ((1, 2, 3), (1, 3, 2)),
}


@case(warnings=False)
def products_added(torch):
    for (name, (a, b)), c in product(ADDING.items(), SHAPES):
        x, y, z = map(torch.ones, (a, b, c))
        yield _shape(getattr(z, name), x, y)
        if name != "addbmm":  # its tensor changes shape in PyTorch
            yield _shape(getattr(z.clone(), name + "_"), x, y)
        for form in name, name + "_":
            yield _shape(getattr(torch.ones(2, 2), form), z, y)
            yield _shape(getattr(torch.ones(2, 2), form), x, z)
    half = torch.ones(1, 2, 2, dtype=torch.bfloat16)
    yield _said(half.addr, half[0, 0], half[0, 0])


@case(warnings=False)
def products_of_two(torch):
    F = torch.nn.functional
    cross, cosine = torch.linalg.cross, torch.cosine_similarity
    for x, y in _pairs(torch):
        for f in torch.matmul, torch.mm, torch.mv, torch.bmm, torch.dot, torch.inner:
            yield _shape(f, x, y)
        for f in F.linear, cross, torch.linalg.vecdot, torch.dist, cosine:
            yield _shape(f, x, y)
        for dim in 0, 1, None:
            yield _shape(torch.cross, x, y, dim)
        yield _shape(matmul, x.clone().requires_grad_(), y)
        yield _shape(matmul, x, y.clone().requires_grad_())
        if x.ndim > 2:
            yield _shape(matmul, x.mT.contiguous().mT, y)
        yield _shape(matmul, x.double(), y)
        yield _shape(matmul, x > 0, y > 0) if x.numel() and y.numel() else None
        yield _shape(torch.einsum, "...i,...i", x, y)


@case(warnings=False)
def biases(torch):
    linear, ones = torch.nn.functional.linear, torch.ones
    inputs = ones(3), ones(2, 3), ones(2, 4, 3), ones(4, 2, 3).mT.contiguous().mT
    for x, shape in product(inputs, (*SHAPES, (1, 2), (1, 1, 2), (4, 2), (8, 2), (1,))):
        for bias in ones(shape), ones(shape).double():
            for weight in ones(2, 3), ones(3):
                yield _shape(linear, x, weight, bias)
    x = torch.arange(12.0).view(2, 2, 3)
    for bias in ones(1, 2), ones(2, 2), ones(2, 1), ones(2, 2).double(), ones(()):
        yield _said(linear, x, x[0], bias)
        yield _said(linear, x[0, 0], x[0], bias)
        yield type(
            linear(x, x[0].clone().requires_grad_(), ones(2, 2)).grad_fn
        ).__name__


@case(warnings=False)
def bilinear_weights(torch):
    bilinear, ones = torch.nn.functional.bilinear, torch.ones
    for shape in (*SHAPES, (2, 3, 3)):
        yield _shape(bilinear, ones(2, 3), ones(2, 3), ones(shape))
        yield _shape(bilinear, ones(2, 3), ones(shape), ones(2, 3, 3))
        operands = ones(2, 3), ones(2, 3), ones(2, 3, 3), ones(shape)
        yield _shape(bilinear, *operands)


@case(warnings=False)
def batches_of_equations(torch):
    A, B = torch.eye(2).expand(3, 2, 2), torch.ones(2, 2, 2)
    L, p = torch.linalg.lu_factor(A)
    LD, q = torch.linalg.ldl_factor(A)
    yield _said(torch.linalg.solve, A, B)
    yield _said(torch.linalg.lu_solve, L, p, B)
    yield _said(torch.linalg.ldl_solve, LD, q, B)
    yield _said(torch.linalg.solve_triangular, A, B, upper=True)
    yield _said(torch.cholesky_solve, B, A)
    for other in B, B[0], B[0, 0], B[None]:
        yield attempt(lambda b=other: torch.linalg.lstsq(A, b).solution)


@case(warnings=False)
def names_of_types(torch):
    names = "uint8 int8 int16 int32 int64 float16 float32 float64 bool bfloat16"
    for name in f"{names} complex64 uint16 uint32 uint64 float8_e4m3fn".split():
        x = torch.zeros(2, 3, dtype=getattr(torch, name))
        yield _said(x.expand, 2)
        yield _said(x.broadcast_to, (3,))
        yield _said(torch.empty(3).bernoulli_, x)
        if name != "int32" and name != "int64":
            yield _said(torch.nn.functional.embedding, x, torch.ones(2, 2))


@case(warnings=False)
def masks_put(torch):
    shapes = (2,), (3,), (2, 3), (3, 2), (2, 2, 2)
    for x, y in _pairs(torch, ((), *shapes)):
        if y.ndim:
            yield _shape(x.index_put_, (y > 0,), torch.ones(()))
            yield _shape(x.index_put, (y > 0, None), torch.ones(()))


@case(warnings=False)
def values_filled_in(torch):
    x = torch.ones(2, 3)
    for mask in torch.ones(2), torch.ones(2) > 0, torch.ones(2, 3), torch.ones(3) > 0:
        for value in torch.ones(()), torch.ones(2), torch.ones(1, 3):
            yield _shape(x.masked_fill, mask, value)
            yield _shape(x.clone().masked_fill_, mask, value)
            yield _shape(x.masked_scatter, mask, value)
            yield _shape(torch.fill, x, value)
            yield _shape(x.clone().fill_, value)
    for shape in SHAPES:
        tau = torch.zeros(shape)
        yield _shape(torch.linalg.householder_product, torch.ones(3, 2), tau)
