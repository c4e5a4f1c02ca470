"""Cholesky's factorization, and what is solved with it."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.op import Array, op
from torchshim._ops._linalg import (
    adjoint,
    batched,
    check_floating,
    check_square,
    diagonal,
    failed,
    linalg_op,
    refuse_kernel,
)

solve_triangular = lax.linalg.triangular_solve


@jax.custom_jvp
def _lower(A: Array) -> Array:
    # PyTorch reads one triangle alone.
    return lax.linalg.cholesky(jnp.tril(A), symmetrize_input=False)


@_lower.defjvp
def _lower_jvp(primals: Any, tangents: Any) -> Any:
    # The derivative for a matrix that is Hermitian throughout, as PyTorch has it.
    (A,), (dA,) = primals, tangents
    factor = _lower(A)
    half = solve_triangular(factor, dA, left_side=True, lower=True)
    both = solve_triangular(
        factor, half, lower=True, transpose_a=True, conjugate_a=True
    )
    eye = jnp.eye(A.shape[-1], dtype=A.dtype)
    return factor, factor @ (jnp.tril(both + adjoint(both), -1) + both * eye) / 2


def _factor(A: Array, upper: bool) -> Array:
    if not A.size:
        return A
    return adjoint(_lower(adjoint(A))) if upper else _lower(A)


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
)
def cholesky_ex(
    input: Array, *, upper: bool = False, check_errors: bool = False
) -> tuple[Array, Array]:
    """As `cholesky`, and the order of the first minor that is not positive.

    Where there is one, the factor is NaN.
    """
    _check_cholesky(input)
    return _factor(input, upper), _order(input, upper)


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def _cholesky_solution(B: Array, given: Array, upper: bool) -> Array:
    factor = adjoint(given) if upper else given
    if not B.size:
        return B
    half = solve_triangular(factor, B, left_side=True, lower=True)
    return solve_triangular(
        factor, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


@_cholesky_solution.defjvp
def _cholesky_solution_jvp(upper: bool, primals: Any, tangents: Any) -> Any:
    # PyTorch's: by all of the factor, though one triangle alone is read.
    (B, factor), (dB, d_factor) = primals, tangents
    X = _cholesky_solution(B, factor, upper)
    if upper:
        dA = adjoint(d_factor) @ factor + adjoint(factor) @ d_factor
    else:
        dA = d_factor @ adjoint(factor) + factor @ adjoint(d_factor)
    return X, _cholesky_solution(dB - dA @ X, factor, upper)


@op(grad_fn="CholeskySolveBackward0", saves=("input2", "result"))
def cholesky_solve(input: Array, input2: Array, upper: bool = False) -> Array:
    """The solution for a matrix that is given by its Cholesky factor."""
    for each, name in ((input, "b"), (input2, "u")):
        if each.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {each.ndim} "
                "dimensions instead"
            )
    if input2.shape[-1] != input2.shape[-2]:
        raise RuntimeError(
            "A must be batches of square matrices, but they are "
            f"{input2.shape[-2]} by {input2.shape[-1]} matrices"
        )
    if input2.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            "Incompatible matrix sizes for cholesky_solve: each A matrix is "
            f"{input2.shape[-1]} by {input2.shape[-1]} but each b matrix is "
            f"{input.shape[-2]} by {input.shape[-1]}"
        )
    B, factor = batched(input, input2)
    return _cholesky_solution(B, factor, upper)


@op(grad_fn="CholeskyInverseBackward0", saves=("input", "result"))
def cholesky_inverse(input: Array, upper: bool = False) -> Array:
    """The inverse of a matrix that is given by its Cholesky factor."""
    check_square(input, "cholesky_inverse")
    refuse_kernel(input, "cholesky_inverse_out_cpu")
    eye = jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=input.dtype), input.shape)
    return _cholesky_solution(eye, input, upper)
