"""Norms by their older names, orders that are no real numbers, least squares."""

import itertools

from tests.oracle import attempt, case

ORDERS = (1 + 2j, 2 + 0j, 0j)


@case
def complex_orders(torch):
    linalg = torch.linalg
    shapes = ((2, 2), (3,), (0,), (2, 2, 2))
    given = [torch.ones(shape) for shape in shapes] + [torch.ones(2, 2).int()]
    for order in ORDERS:
        for x in given:
            # (The condition of a nearly singular one is the machine's rounding.)
            regular = torch.arange(1, x.numel() + 1).reshape(x.shape) % 3
            regular = regular.to(x.dtype)
            for norm in (linalg.vector_norm, linalg.matrix_norm, linalg.norm):
                yield attempt(norm, x, order), attempt(norm, x, order, dim=(0, 1))
            yield attempt(torch.norm, x, order), attempt(x.norm, order, 0)
            yield attempt(torch.dist, x, x, order), attempt(linalg.cond, regular, order)
            yield attempt(torch.renorm, x, order, 0, 1.0)


@case
def real_orders_after_complex_ones(torch):
    norm = torch.linalg.vector_norm
    for order in (5, 6.0):
        x = torch.tensor([1.0, 2.0])
        yield attempt(norm, x, complex(order)), norm(x, order), norm(x, float(order))
        yield norm(torch.ones(3), order)


@case
def older_norms(torch):
    outs = ("float32", 0), ("float32", 9), ("float64", 0), ("int32", 0)
    for x in (torch.eye(3), torch.ones(2, 2, 2), torch.ones(2, 2).int(), torch.ones(3)):
        for norm in (torch.nuclear_norm, torch.frobenius_norm):
            for dims in ((), ((0, 1),), ((1, 0), True), ([0],), ((),), ((0, 1, 2),)):
                yield attempt(norm, x, *dims)
                for dtype, size in outs:
                    out = torch.empty(size, dtype=getattr(torch, dtype))
                    yield attempt(norm, x, *dims, out=out)
            yield attempt(norm, x, (0, 0)), attempt(norm, x, (0, 5))
            yield attempt(norm, x, 0), attempt(norm, x, True), attempt(norm, x, None)


@case
def right_hand_sides(torch):
    shapes = (
        *(((1, 1, 1), (3, 1)), ((1, 2, 2), (3, 2)), ((2, 3, 3), (2, 3))),
        *(((2, 3, 3), (3, 3)), ((1, 3, 3), (3, 3)), ((4, 3, 3), (1, 3))),
        *(((2, 1, 3, 3), (1, 5, 3)), ((2, 1, 3, 3), (1, 5, 3, 2)), ((3, 3), (3,))),
        *(((3, 3), (2, 3, 3)), ((2, 3, 3), (3,)), ((5, 3, 2), (3, 5))),
        *(((0, 3, 3), (1, 3, 1)), ((5, 3, 2), (5, 3))),
    )
    for left, right in shapes:
        a = torch.eye(left[-2], left[-1]).expand(left) * 2
        b = torch.arange(float(torch.Size(right).numel())).reshape(right)
        for driver in ("gelsy", "gels", "gelsd", "other"):
            yield attempt(torch.linalg.lstsq, a, b, driver=driver)


@case
def gradients_of_tiny_and_huge_numbers(torch):
    """Whose squares a dtype does not hold."""
    inf = float("inf")
    for kind, numbers in (
        ("complex128", ([1 + 2j, 1e-160 + 1e-160j], [3e200 + 2j, 1e200j], [1e-160j])),
        ("complex64", ([2e-23 + 1e-23j, 3], [2e25 + 1e24j, 3], [0j, 1j], [3e25j])),
        ("float32", ([1e-30], [-3e30])),
    ):
        for values, order in itertools.product(numbers, (inf, -inf, 1, 0.5, 3)):
            x = torch.tensor(values, dtype=getattr(torch, kind), requires_grad=True)
            y = torch.linalg.vector_norm(x, order)
            y.backward()
            yield y if order != 3 or x.numel() == 1 else order
            if order != 3:
                yield x.grad


@case.over("complex64", "complex128")
def gradients_of_extreme_moduli(torch, dtype):
    """A modulus that XLA computed twice, rounded otherwise, equalled no extreme."""
    x = torch.randn(13, 7, dtype=getattr(torch, dtype), requires_grad=True)
    for extreme in (
        lambda z: z.abs().amax(0),
        lambda z: z.abs().amin(0),
        lambda z: z.abs().amax(),
        lambda z: torch.linalg.vector_norm(z, -float("inf"), dim=0),
        lambda z: torch.linalg.vector_norm(z, float("inf"), dim=1),
        lambda z: torch.dist(z, z.detach().flip(0), float("inf")),
    ):
        yield torch.autograd.grad(extreme(x).sum(), x)[0]


@case
def moduli_of_special_numbers(torch):
    inf, nan = float("inf"), float("nan")
    parts = [0.0, -0.0, 3.0, -4.0, 1e30, inf, -inf, nan]
    for kind in (torch.complex64, torch.complex128):
        values = [complex(a, b) for a in parts for b in parts]
        yield torch.tensor(values, dtype=kind).abs()


@case
def matrix_norms_in_a_dtype(torch):
    norm = torch.linalg.matrix_norm
    given = torch.arange(6.0).reshape(2, 3)
    kinds = "float16 float32 float64 complex64 complex128 int32".split()
    for dtype in (getattr(torch, kind) for kind in kinds):
        for order in ("fro", "nuc", 1, -2):
            yield order, attempt(norm, given, order, dtype=dtype)
        yield attempt(norm, given.half(), 2, dtype=dtype)
        yield attempt(norm, given.half(), dtype=dtype)
        yield attempt(norm, given.to(torch.complex64), 1, (1, 0), dtype=dtype)
        yield attempt(norm, given.int(), 1, dtype=dtype)
        yield attempt(torch.linalg.norm, given, 1, dtype=dtype)
    x = given.clone().requires_grad_()
    for order in ("fro", "nuc", 1, 2):
        y = norm(x, order, dtype=torch.float64)
        yield y, torch.autograd.grad(y.sum(), x)
