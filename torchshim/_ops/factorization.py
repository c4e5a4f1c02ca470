"""Triangular and orthogonal factors of matrices: LU, QR, products of reflections."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.op import Arranged, Array, op
from torchshim._ops._common import is_integral, scalar_name
from torchshim._ops._linalg import (
    adjoint,
    batched,
    castable_text,
    check_equation,
    check_fits,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    columns,
    failed,
    first_zero,
    linalg_op,
    refuse_kernel,
    solutions,
)
from torchshim._ops.view_geometry import size_at

solve_triangular = lax.linalg.triangular_solve

# LU -----------------------------------------------------------------------------------


def _check_lu(A: Array, pivot: bool, name: str) -> None:
    if A.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: "
            f"{list(A.shape)} instead"
        )
    if not pivot and not A.size:  # no kernel is asked
        return
    refuse_kernel(A, "lu_cpu")
    if not pivot:
        raise RuntimeError(
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU"
        )


def _lu(A: Array) -> tuple[Array, Array, Array]:
    """The packed factors, the swaps (from 1) and the permutation of the rows."""
    m, n = A.shape[-2:]
    if not A.size:
        order = jnp.broadcast_to(jnp.arange(m), (*A.shape[:-2], m))
        return A, jnp.zeros((*A.shape[:-2], min(m, n)), jnp.int32), order
    lu, swaps, order = lax.linalg.lu(A)
    return lu, swaps + 1, order


def _triangles(lu: Array) -> tuple[Array, Array]:
    m, n = lu.shape[-2:]
    k = min(m, n)
    lower = jnp.tril(lu[..., :k], -1) + jnp.eye(m, k, dtype=lu.dtype)
    return lower, jnp.triu(lu[..., :k, :])


def _permutation_matrix(order: Array, dtype: Any) -> Array:
    m = order.shape[-1]
    return jnp.swapaxes(jax.nn.one_hot(order, m, dtype=dtype), -1, -2)


@op(namespaces=(), method=False, differentiable=False)
def _lu_permutation(A: Array, pivot: bool) -> Array:
    """The matrix P of `A = P @ L @ U`."""
    _check_lu(A, pivot, "linalg.lu")
    if not pivot:
        return jnp.zeros(0, A.dtype)
    return _permutation_matrix(_lu(A)[2], A.dtype)


@op(namespaces=(), method=False, grad_fn="LinalgLuBackward0", saves=("result",))
def _lu_triangles(A: Array) -> tuple[Array, Array]:
    """The factors L and U."""
    return _triangles(_lu(A)[0])


_DIVISION = (
    "U[{code},{code}] is zero and using it on lu_solve would result in a division by "
    "zero. If you still want to perform the factorization, consider calling "
    "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)


def _lu_checks(name: str) -> Any:
    def checks(A: Array, pivot: bool, check_errors: bool = True) -> list[Check]:
        if not check_errors:
            return []
        return failed(first_zero(_lu(A)[0]), name, _DIVISION, RuntimeError)

    return checks


@linalg_op(
    "LinalgLuFactorExBackward0",
    checks=_lu_checks("torch.linalg.lu_factor"),
    named_result=("LU", "pivots"),
    layout=columns,
)
def lu_factor(A: Array, *, pivot: bool = True) -> tuple[Array, Array]:
    """The factors L and U in one matrix, and the swaps of rows."""
    _check_lu(A, pivot, "torch.lu_factor")
    return _lu(A)[:2]


@linalg_op(
    "LinalgLuFactorExBackward0",
    checks=_lu_checks("torch.linalg.lu_factor_ex"),
    named_result=("LU", "pivots", "info"),
    layout=columns,
)
def lu_factor_ex(
    A: Array, *, pivot: bool = True, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    """As `lu_factor`, and where the first zero on U's diagonal is."""
    _check_lu(A, pivot, "torch.lu_factor")
    lu, pivots, _ = _lu(A)
    return lu, pivots, first_zero(lu)


_FROM_FACTOR = "Did you properly pass the result of lu_factor?"


def _pivot_checks(LU: Array, pivots: Array, B: Array, *rest: Any) -> list[Check]:
    if not pivots.size:
        return []
    wanted = "Pivots given to lu_solve must all be"
    low = Check(
        pivots.min() < 1,
        RuntimeError,
        f"{wanted} greater or equal to 1. {_FROM_FACTOR}",
    )
    high = Check(
        pivots.max() > LU.shape[-2],
        RuntimeError,
        f"{wanted} smaller or equal to LU.size(-2). {_FROM_FACTOR}",
    )
    return [low, high]


@linalg_op(
    "LinalgLuSolveBackward0",
    saves=("LU", "pivots", "result"),
    checks=_pivot_checks,
    layout=Arranged(
        lambda shape, LU, pivots, B, left, adjoint: solutions(shape, LU, B, left)
    ),
)
def lu_solve(
    LU: Array, pivots: Array, B: Array, *, left: bool = True, adjoint: bool = False
) -> Array:
    """The solution for a matrix (or its adjoint) that is given by `lu_factor`."""
    name = "linalg.lu_solve"
    if is_integral(LU):
        check_floating(LU, f"torch.{name}")
    check_same_dtype(name, LU, B, "LU")
    if pivots.dtype != jnp.int32:
        raise RuntimeError(
            f"{name}: pivots should be a Tensor of scalar type torch.int32"
        )
    check_square(LU, "torch.linalg.lu_solve")
    check_matrix(B, name, "B")
    check_fits(name, LU, B, left)
    if pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(
            f"{name}: Number of pivots per batch should be same as the dimension of "
            "the matrix"
        )
    if pivots.shape[:-1] != LU.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected LU.shape[:-1] and pivots.shape to be the same, but got "
            f"pivots with shape {list(pivots.shape)} instead"
        )
    lu, b = batched(LU, B)
    if not b.size:
        return b
    refuse_kernel(LU, f"{name}_cpu")
    order = _order_of(pivots, LU.shape[-1])
    if not left:  # the transpose of the equation
        b = jnp.swapaxes(b, -1, -2)
        b = jnp.conj(b) if adjoint else b
    order = jnp.broadcast_to(order, (*b.shape[:-2], order.shape[-1]))[..., None]
    if left is not adjoint:
        # P L U X = B, or for X A^H = B the conjugate of it.
        b = jnp.take_along_axis(b, order, -2)
        b = solve_triangular(lu, b, left_side=True, lower=True, unit_diagonal=True)
        out = solve_triangular(lu, b, left_side=True)
    else:
        turned: dict[str, Any] = {"left_side": True, "transpose_a": True}
        turned["conjugate_a"] = left
        b = solve_triangular(lu, b, **turned)
        b = solve_triangular(lu, b, lower=True, unit_diagonal=True, **turned)
        out = jnp.take_along_axis(b, jnp.argsort(order, -2), -2)
    if not left:
        out = jnp.conj(out) if adjoint else out
        out = jnp.swapaxes(out, -1, -2)
    return out


def _order_of(pivots: Array, rows: int) -> Array:
    """The permutation that swaps of rows, counted from 1, make."""
    if not pivots.size:
        return jnp.broadcast_to(jnp.arange(rows), (*pivots.shape[:-1], rows))
    return lax.linalg.lu_pivots_to_permutation(pivots - 1, rows)


def _unpacked_checks(LU_data: Array, LU_pivots: Array) -> list[Check]:
    if not LU_pivots.size:
        return []
    return [
        Check(
            (LU_pivots.min() < 1) | (LU_pivots.max() > LU_data.shape[-2]),
            RuntimeError,
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            f"{_FROM_FACTOR}",
        )
    ]


@op(namespaces=(), method=False, differentiable=False, checks=_unpacked_checks)
def _lu_unpacked_permutation(LU_data: Array, LU_pivots: Array) -> Array:
    """The matrix P that `pivots` stand for."""
    if LU_pivots.dtype != jnp.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
            "torch.int32 dtype.\nNote: this function is intended to be used with the "
            "output produced by torch.linalg.lu_factor"
        )
    order = _order_of(LU_pivots, LU_data.shape[-2])
    return _permutation_matrix(order, LU_data.dtype)


@op(namespaces=(), method=False, grad_fn="LuUnpackBackward0", saves=())
def _lu_unpacked_triangles(LU_data: Array) -> tuple[Array, Array]:
    """The two triangles of a packed factorization."""
    return _triangles(LU_data)


# Orthogonal factors -------------------------------------------------------------------


def _qr(A: Array) -> tuple[Array, Array]:
    m, n = A.shape[-2:]
    if not A.size:
        eye = jnp.eye(m, min(m, n), dtype=A.dtype)
        q = jnp.broadcast_to(eye, (*A.shape[:-2], m, min(m, n)))
        return q, jnp.zeros((*A.shape[:-2], min(m, n), n), A.dtype)
    if m >= n:
        q, r = jnp.linalg.qr(A, mode="reduced")
        return q, r
    # JAX has no derivative for wide matrices: Q is that of the first columns.
    q, r = jnp.linalg.qr(A[..., :m], mode="reduced")
    return q, jnp.concatenate([r, adjoint(q) @ A[..., m:]], -1)


def _check_qr(A: Array, mode: str) -> None:
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr", "geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
            "(default), 'r', or 'complete'"
        )


def _not_differentiable(text: str, error: type[Exception] = RuntimeError) -> Any:
    """Makes a function whose derivative raises `text`."""

    def wrap(fn: Any) -> Any:
        made = jax.custom_jvp(fn)

        def refused(primals: Any, tangents: Any) -> Any:
            raise error(text)

        made.defjvp(refused)
        return made

    return wrap


@_not_differentiable(
    "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
    "Please use linalg.qr(A, mode='reduced') if you are going to differentiate through "
    "linalg.qr."
)
def _qr_r(A: Array) -> Array:
    return _qr(A)[1]


@_not_differentiable(
    "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
)
def _qr_tall(A: Array) -> tuple[Array, Array]:
    if not A.size:
        m = A.shape[-2]
        q = jnp.broadcast_to(jnp.eye(m, dtype=A.dtype), (*A.shape[:-2], m, m))
        return q, A
    q, r = jnp.linalg.qr(A, mode="complete")
    return q, r


def _qr_by_mode(A: Array, mode: str) -> tuple[Array, Array]:
    _check_qr(A, mode)
    if mode == "r":
        return jnp.zeros((0,), A.dtype), _qr_r(A)
    if mode == "complete" and A.shape[-2] > A.shape[-1]:
        return _qr_tall(A)
    return _qr(A)


@linalg_op(
    "LinalgQrBackward0",
    named_result=("Q", "R"),
    name="linalg_qr",
    public="qr",
    layout=columns,
)
def linalg_qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """An orthogonal and an upper triangular factor."""
    return _qr_by_mode(A, mode)


@op(
    name="_qr",
    public="qr",
    namespaces=(),
    method=False,
    grad_fn="LinalgQrBackward0",
    saves=("result",),
    named_result=("Q", "R"),
    layout=columns,
)
def _qr_older(input: Array, some: bool) -> tuple[Array, Array]:
    """An orthogonal and an upper triangular factor; `linalg.qr` by its older name."""
    return _qr_by_mode(input, "reduced" if some else "complete")


def _reflected(vectors: Array, tau: Array, other: Array, transpose: bool) -> Array:
    """`Q @ other` (or with Q's adjoint) for the product Q of reflections."""
    m, k = vectors.shape[-2], tau.shape[-1]
    v = jnp.tril(vectors[..., :k], -1) + jnp.eye(m, k, dtype=vectors.dtype)
    columns = jnp.moveaxis(v, -1, 0)[..., None]
    factors = jnp.moveaxis(jnp.conj(tau) if transpose else tau, -1, 0)[..., None, None]

    def reflect(x: Array, step: tuple[Array, Array]) -> tuple[Array, None]:
        column, factor = step
        return x - factor * column * (adjoint(column) @ x), None

    batch = jnp.broadcast_shapes(vectors.shape[:-2], other.shape[:-2])
    start = jnp.broadcast_to(other, batch + other.shape[-2:])
    return lax.scan(reflect, start, (columns, factors), reverse=not transpose)[0]


def _check_batch(name: str, which: str, batch: tuple[int, ...], input: Array) -> None:
    if batch != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of {which} to be equal to "
            f"input.shape[:-2], but got {list(batch)}"
        )


def _check_tau(name: str, input: Array, tau: Array) -> None:
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got "
            f"tau.ndim equal to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    _check_batch(name, "tau", tau.shape[:-1], input)


def _householder(input: Array, tau: Array) -> Array:
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.shape[-2] < input.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if input.shape[-1] < size_at(tau.shape, -1):
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _check_tau(name, input, tau)
    if tau.dtype != input.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {scalar_name(tau)} does not match input dtype "
            f"{scalar_name(input)}"
        )
    refuse_kernel(input, "orgqr_cpu")
    eye = jnp.eye(*input.shape[-2:], dtype=input.dtype)
    return _reflected(input, tau, jnp.broadcast_to(eye, input.shape), False)


@linalg_op(
    "LinalgHouseholderProductBackward0",
    saves=("input", "tau", "result"),
    out=True,
    castable=castable_text("torch.linalg.householder_product"),
    layout=columns,
)
def householder_product(input: Array, tau: Array) -> Array:
    """The first columns of a product of Householder reflections."""
    return _householder(input, tau)


@op(
    grad_fn="LinalgHouseholderProductBackward0",
    saves=("input", "input2", "result"),
    castable=castable_text("torch.linalg.householder_product"),
    layout=columns,
)
def orgqr(input: Array, input2: Array) -> Array:
    """`linalg.householder_product` by its older name."""
    return _householder(input, input2)


@op(
    grad_fn="OrmqrBackward0",
    saves=("input", "input2", "input3", "result"),
    out=(
        "torch.ormqr: Expected input and result to have the same dtype, "
        "but input has dtype{want.scalar_name} and result has dtype "
        "{have.scalar_name}"
    ),
    layout=columns,
)
def ormqr(
    input: Array,
    input2: Array,
    input3: Array,
    left: bool = True,
    transpose: bool = False,
) -> Array:
    """A product with the orthogonal matrix that `geqrf` gives the reflections of."""
    name, side = "torch.ormqr", -2 if left else -1
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input3.ndim < 2:
        raise RuntimeError(f"{name}: other must have at least 2 dimensions.")
    if input3.shape[side] != input.shape[-2]:
        raise RuntimeError(
            f"{name}: other.shape[{side}] must be equal to input.shape[-2]"
        )
    if input2.shape[-1] > min(input3.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], "
            "input.shape[-1])"
        )
    if input3.shape[side] < input2.shape[-1]:
        raise RuntimeError(
            f"{name}: other.shape[{side}] must be greater than or equal to "
            "tau.shape[-1]"
        )
    if input2.shape[-1] != min(input3.shape[side], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], "
            "input.shape[-1])"
        )
    _check_tau(name, input, input2)
    if input3.ndim != input.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, "
            f"but got other.ndim equal to {input3.ndim} and input.ndim is equal to "
            f"{input.ndim}"
        )
    _check_batch(name, "other", input3.shape[:-2], input)
    for which, each in (("tau", input2), ("other", input3)):
        if each.dtype != input.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {which} to have the same dtype, but input "
                f"has dtype{scalar_name(input)} and {which} has dtype "
                f"{scalar_name(each)}"
            )
    refuse_kernel(input, "ormqr_cpu")
    if left:
        return _reflected(input, input2, input3, transpose)
    return adjoint(_reflected(input, input2, adjoint(input3), not transpose))


@_not_differentiable(
    "the derivative for 'geqrf' is not implemented.", NotImplementedError
)
def _geqrf(A: Array) -> tuple[Array, Array]:
    raw, tau = jnp.linalg.qr(A, mode="raw")
    return jnp.swapaxes(raw, -1, -2), tau


@op(
    grad_fn="GeqrfBackward0",
    saves=(),
    named_result=("a", "tau"),
    out=True,
    castable=(
        castable_text("torch.geqrf", "a"),
        castable_text("torch.geqrf", "tau"),
    ),
    layout=columns,
    real_gradients="geqrf",
)
def geqrf(input: Array) -> tuple[Array, Array]:
    """The reflections whose product is Q, with R above them."""
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    refuse_kernel(input, "geqrf_cpu")
    return _geqrf(input)


@op(
    name="_triangular_solve",
    public="triangular_solve",
    namespaces=(),
    method=False,
    grad_fn="TriangularSolveBackward0",
    saves=("A", "result"),
    named_result=("solution", "cloned_coefficient"),
    layout=columns,
)
def _triangular_solve(
    b: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool
) -> tuple[Array, Array]:
    """The solution for a triangular matrix, and a copy of the matrix."""
    name = "torch.triangular_solve"
    for each, which in ((b, "b"), (A, "A")):
        if each.ndim < 2:
            raise RuntimeError(
                f"{name}: Expected {which} to have at least 2 dimensions, but it has "
                f"{each.ndim} dimensions instead"
            )
    check_equation("triangular_solve", A, b)
    a, right = batched(A, b)
    refuse_kernel(A, "triangular_solve_cpu")
    solution = right
    if right.size:
        solution = solve_triangular(
            a,
            right,
            left_side=True,
            lower=not upper,
            transpose_a=transpose,
            unit_diagonal=unitriangular,
        )
    return solution, a
