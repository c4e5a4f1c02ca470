"""Cholesky's factorization, and what is solved with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.linearize import is_forward
from torchshim._core.op import Array, op
from torchshim._ops._linalg import (
    NO_INVERSE,
    adjoint,
    batched,
    castable_text,
    check_equation,
    check_floating,
    check_square,
    columns,
    diagonal,
    failed,
    first_zero,
    linalg_op,
    refuse_kernel,
)

solve_triangular = lax.linalg.triangular_solve


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _factored(A: Array, upper: bool) -> Array:
    # PyTorch reads one triangle alone.
    lower = jnp.tril(adjoint(A) if upper else A)
    factor = lax.linalg.cholesky(lower, symmetrize_input=False)
    return adjoint(factor) if upper else factor


@_factored.defjvp
def _factored_jvp(upper: bool, primals: Any, tangents: Any) -> Any:
    # The derivative for a matrix that is Hermitian throughout, as PyTorch has it; in
    # forward mode one triangle of what is in the middle counts.
    (A,), (dA,) = primals, tangents
    factor = _factored(A, upper)
    L = adjoint(factor) if upper else factor
    half = solve_triangular(L, dA, left_side=True, lower=True)
    both = solve_triangular(L, half, lower=True, transpose_a=True, conjugate_a=True)
    eye = jnp.eye(A.shape[-1], dtype=A.dtype)
    below = both if is_forward() else (both + adjoint(both)) / 2
    dL = L @ (jnp.tril(below, -1) + both * eye / 2)
    return factor, adjoint(dL) if upper else dL


def _factor(A: Array, upper: bool) -> Array:
    return _factored(A, upper) if A.size else A


def _order(A: Array, upper: bool) -> Array:
    """The order of the first leading minor that is not positive; 0 if all are."""
    batch, n = A.shape[:-2], A.shape[-1]
    if not A.size:
        return jnp.zeros(batch, jnp.int32)
    bad = jnp.isnan(diagonal(_factor(A, upper)).real).any(-1)

    def first(a: Array) -> Array:
        def column(j: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
            a, order = state
            pivot = a[j, j].real
            order = jnp.where((order == 0) & ~(pivot > 0), j + 1, order)
            ratio = jnp.where(jnp.arange(n) > j, a[:, j], 0) / a[j, j]
            return a - ratio[:, None] * jnp.conj(a[:, j])[None], order

        start = jnp.zeros((), jnp.int32)
        return lax.fori_loop(0, n, column, (a, start))[1].astype(jnp.int32)

    def each() -> Array:
        whole = jnp.tril(adjoint(A) if upper else A)
        whole = whole + adjoint(jnp.tril(whole, -1))
        found = jax.vmap(first)(whole.reshape(-1, n, n)).reshape(batch)
        # A pivot that rounding alone keeps positive is the last one's.
        return jnp.where(bad, jnp.where(found == 0, n, found), 0).astype(jnp.int32)

    return lax.cond(bad.any(), each, lambda: jnp.zeros(batch, jnp.int32))


def _check_cholesky(A: Array) -> None:
    check_square(A, "linalg.cholesky")
    check_floating(A, "linalg.cholesky", "cholesky_cpu")


_NOT_POSITIVE = (
    "The factorization could not be completed because the input is not "
    "positive-definite (the leading minor of order {code} is not positive-definite)."
)


def _positive(name: str) -> Any:
    def checks(input: Array, upper: bool = False) -> list[Check]:
        return failed(_order(input, upper), name, _NOT_POSITIVE)

    return checks


@linalg_op(
    "LinalgCholeskyExBackward0",
    checks=_positive("linalg.cholesky"),
    name="linalg_cholesky",
    public="cholesky",
    layout=columns,
)
def linalg_cholesky(input: Array, *, upper: bool = False) -> Array:
    """The triangular factor of a positive definite matrix."""
    _check_cholesky(input)
    return _factor(input, upper)


@op(
    name="_cholesky",
    public="cholesky",
    namespaces=(),
    method=False,
    grad_fn="CholeskyBackward0",
    saves=("result",),
    checks=_positive("cholesky"),
    castable=castable_text("cholesky"),
    layout=columns,
)
def _cholesky(input: Array, upper: bool) -> Array:
    """The triangular factor of a positive definite matrix."""
    check_square(input, "cholesky")
    refuse_kernel(input, "cholesky_cpu")
    return _factor(input, upper)


def _cholesky_ex_checks(input: Array, upper: bool, check_errors: bool) -> list[Check]:
    if not check_errors:
        return []
    return failed(_order(input, upper), "linalg.cholesky_ex", _NOT_POSITIVE)


@linalg_op(
    "LinalgCholeskyExBackward0",
    checks=_cholesky_ex_checks,
    named_result=("L", "info"),
    layout=columns,
)
def cholesky_ex(
    input: Array, *, upper: bool = False, check_errors: bool = False
) -> tuple[Array, Array]:
    """As `cholesky`, and the order of the first minor that is not positive.

    Where there is one, the factor is NaN.
    """
    _check_cholesky(input)
    return _factor(input, upper), _order(input, upper)


def _cholesky_solution(B: Array, given: Array, upper: bool) -> Array:
    """The X with `F @ F^H @ X = B`; of F one triangle is read.

    PyTorch's derivatives of any order are those by all of F.
    """
    if not B.size:
        return B
    factor = adjoint(given) if upper else given

    def product(X: Array) -> Array:
        return factor @ (adjoint(factor) @ X)

    def solution(_: Any, B: Array) -> Array:
        half = solve_triangular(factor, B, left_side=True, lower=True)
        return solve_triangular(
            factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
        )

    def transposed(_: Any, B: Array) -> Array:
        return jnp.conj(solution(None, jnp.conj(B)))

    return lax.custom_linear_solve(product, B, solution, transposed)


@op(
    grad_fn="CholeskySolveBackward0",
    saves=("input", "input2", "result"),
    castable=castable_text("cholesky_solve"),
    layout=columns,
)
def cholesky_solve(input: Array, input2: Array, upper: bool = False) -> Array:
    """The solution for a matrix that is given by its Cholesky factor."""
    for each, name in ((input, "b"), (input2, "u")):
        if each.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {each.ndim} "
                "dimensions instead"
            )
    check_equation("cholesky_solve", input2, input)
    factor, B = batched(input2, input)
    refuse_kernel(input, "cholesky_solve_cpu")
    return _cholesky_solution(B, factor, upper)


@op(
    grad_fn="CholeskyInverseBackward0",
    saves=("input", "result"),
    checks=lambda input, upper: failed(
        first_zero(input), "cholesky_inverse", NO_INVERSE
    ),
    castable=castable_text("cholesky_inverse"),
    layout=columns,
)
def cholesky_inverse(input: Array, upper: bool = False) -> Array:
    """The inverse of a matrix that is given by its Cholesky factor."""
    check_square(input, "cholesky_inverse")
    refuse_kernel(input, "cholesky_inverse_out_cpu")
    eye = jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=input.dtype), input.shape)
    return _cholesky_solution(eye, input, upper)
