"""Solutions of equations: sides whose dtypes and shapes do not fit."""

from itertools import product

from tests.oracle import attempt, case

KINDS = ("float32", "float64", "complex64", "int32", "float16", "bool")
SIDES = (((3, 3), (3, 3)), ((3,), (3,)), ((), (3,)), ((3, 3), (3,)), ((3,), ()))
SHAPES = ((), (3,), (4,), (3, 3), (2, 3), (4, 4), (2, 3, 3), (0, 3, 3), (2, 3, 1))


def _solvers(torch):
    linalg = torch.linalg

    def pivots(a):
        return torch.ones(a.shape[:-1], dtype=torch.int32)

    yield linalg.solve
    yield linalg.solve_ex
    yield lambda a, b: linalg.solve(a, b, left=False)
    yield lambda a, b: linalg.solve_triangular(a, b, upper=True)
    yield lambda a, b: linalg.lu_solve(a, pivots(a), b)
    yield lambda a, b: linalg.ldl_solve(a, pivots(a), b)
    yield lambda a, b: torch.cholesky_solve(b, a)
    yield lambda a, b: torch.triangular_solve(b, a)
    yield lambda a, b: torch.lu_solve(b, a, pivots(a))


def _matrix(torch, shape, kind):
    ones = torch.ones(shape, dtype=getattr(torch, kind))
    return ones + torch.eye(*shape[-2:]).to(ones.dtype) if len(shape) > 1 else ones


@case(warnings=False)
def of_kinds(torch):
    for kinds in product(KINDS, repeat=2):
        for shapes in SIDES:
            sides = [_matrix(torch, s, k) for s, k in zip(shapes, kinds, strict=True)]
            yield [attempt(f, *sides) for f in _solvers(torch)]


@case(warnings=False)
def of_shapes(torch):
    for shapes in product(SHAPES, repeat=2):
        a, b = (_matrix(torch, s, "float32") for s in shapes)
        found = [attempt(f, a, b) for f in _solvers(torch)]
        yield [str(f) if isinstance(f, Exception) else len(f) for f in found]


@case.lines("""
torch.linalg.ldl_solve(torch.ones(3, 3), torch.ones(3), torch.ones(3, 1))
torch.linalg.ldl_solve(torch.ones(3, 3), torch.ones(3).bool(), torch.ones(3, 1))
torch.linalg.ldl_solve(torch.ones(3, 3), torch.ones(2).int(), torch.ones(3, 1))
torch.linalg.ldl_solve(torch.ones(3, 3).half(), torch.ones(3).int(), torch.ones(3, 1))
torch.linalg.ldl_solve(torch.ones(3, 3).int(), torch.ones(3).int(), torch.ones(3, 1))
torch.linalg.lu_solve(torch.ones(3, 3), torch.ones(3), torch.ones(3, 1).half())
torch.linalg.lu_solve(torch.ones(3, 3).half(), torch.ones(3), torch.ones(3, 1).half())
torch.linalg.solve_triangular(torch.ones(3, 3).int(), torch.ones(3, 0), upper=True)
torch.linalg.solve_triangular(torch.eye(3), torch.ones(3, 0).double(), upper=True)
torch.cholesky_solve(torch.ones(3, 0).int(), torch.ones(3, 3))
torch.linalg.tensorsolve(torch.ones(3), torch.ones(4))
torch.linalg.tensorsolve(torch.ones(3, 3), torch.ones(4))
torch.linalg.tensorsolve(torch.ones(2, 3), torch.ones(3))
torch.linalg.tensorsolve(torch.ones(2, 3, 6), torch.ones(6))
torch.lu_unpack(torch.ones(3), torch.ones(3))
torch.ormqr(torch.ones(4, 3), torch.ones(2), torch.ones(3, 2))
torch.ormqr(torch.ones(4, 3), torch.ones(4), torch.ones(2, 3), left=False)
torch.ormqr(torch.ones(4, 3), torch.ones(2), torch.ones(4, 2))
torch.linalg.multi_dot([torch.ones(2, 2), torch.ones(2, 2).int()])
torch.linalg.multi_dot([torch.ones(2, 2).half(), torch.ones(2, 2), torch.ones(2)])
torch.linalg.multi_dot([torch.ones(2, 2), torch.ones(2, 2, 2), torch.ones(2).int()])
torch.linalg.multi_dot([torch.ones(2, 2).bool(), torch.ones(2, 2).bool()])
torch.tensordot(torch.ones(2, 2).bool(), torch.ones(2, 2).bool(), 1)
torch.inner(torch.ones(2, 2).bool(), torch.ones(2).bool())
torch.linalg.cross(torch.ones(2, 3).bool(), torch.ones(2, 3))
torch.einsum("", [])
torch.einsum("")
torch.linalg.cross(torch.ones(2, 3).bool(), torch.ones(2, 3).bool())
""")
def other_faults(torch): ...


@case
def products_with_numbers(torch):
    """`inner` and `kron` of what has no dimensions."""
    kinds = "float32", "float64", "float16", "int64", "bool"
    for kind, other in product(kinds, repeat=2):
        for shape, second in (((), ()), ((2,), ()), ((), (2,)), ((2, 2), ())):
            a = torch.ones(shape, dtype=getattr(torch, kind))
            b = torch.ones(second, dtype=getattr(torch, other))
            yield attempt(torch.inner, a, b), attempt(torch.kron, a, b)
    x, two = torch.ones(2, requires_grad=True), torch.tensor(2.0)
    yield torch.inner(x, two), torch.inner(x, x), x.kron(two), x.inner(x).grad_fn.name()
    for kind in ("float64", "int32", "complex64"):
        out = torch.empty(0, dtype=getattr(torch, kind))
        yield attempt(torch.inner, torch.ones(2), two, out=out)
        yield attempt(torch.inner, torch.ones(2), torch.ones(2), out=out)


@case
def codes_of_broadcast_equations(torch):
    shapes = [((2, 1, 2, 2), (3, 2, 3)), ((2, 2), (3, 2, 3)), ((1, 2, 2), (3, 2, 3))]
    for left, right in shapes:
        A = torch.eye(2).expand(left).contiguous()
        yield torch.linalg.solve_ex(A, torch.ones(right)).info


@case
def tolerances_of_pseudo_inverses(torch):
    pinv, imaginary = torch.linalg.pinv, torch.tensor(1j)
    for x in (torch.ones(3, 2), torch.ones(0, 2), torch.ones(2)):
        yield attempt(pinv, x, hermitian=True)
        yield attempt(pinv, x, atol=imaginary), attempt(pinv, x, rtol=imaginary)
