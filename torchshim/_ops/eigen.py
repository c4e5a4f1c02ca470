"""Eigenvalues and singular values, with their vectors.

The derivatives are PyTorch's: those of vectors hold for functions that do not depend on
the vectors' signs or phases.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.linearize import is_forward
from torchshim._core.op import Array
from torchshim._ops._common import scalar_name
from torchshim._ops._linalg import (
    adjoint,
    castable_text,
    check_floating,
    check_matrix,
    check_square,
    columns,
    diagonal,
    failed,
    linalg_op,
    refuse_kernel,
)


def _over_gaps(a: Array, gaps: Array) -> Array:
    """A matrix over the differences of values, with zeros on its diagonal."""
    eye = jnp.eye(gaps.shape[-1], dtype=gaps.dtype)
    return jnp.where(eye == 1, 0, a / (gaps + eye))


def _gaps(values: Array) -> Array:
    return values[..., None, :] - values[..., :, None]


def _bad(A: Array) -> Array:
    """1 for each matrix with elements that are not finite."""
    return (~jnp.isfinite(A)).any((-2, -1)).astype(jnp.int32)


def _depends(product: Array, text: str) -> list[Check]:
    """The check that a loss is the same for other phases of complex vectors.

    `product`: of the vectors with their gradient.
    """
    phases = diagonal(product).imag
    return [Check(~(jnp.abs(phases) <= 1e-2).all(), RuntimeError, text)]


def _eigenvector_checks(name: str) -> Any:
    text = (
        f"{name}: The eigenvectors in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on this "
        "quantity, so it is ill-defined."
    )

    def checks(results: Any, cotangents: Any) -> list[Check]:
        vectors, grad = results[1], cotangents[1]
        if grad is None or not jnp.iscomplexobj(vectors):
            return []
        return _depends(adjoint(vectors) @ grad, text)

    return checks


def _singular_vector_checks(results: Any, cotangents: Any) -> list[Check]:
    u, _, vh = results
    grad_u, _, grad_vh = cotangents
    if not jnp.iscomplexobj(u):
        return []
    if grad_u is None and grad_vh is None:
        return []
    k = min(u.shape[-1], vh.shape[-2])
    product: Any = 0
    if grad_u is not None:
        product += adjoint(u[..., :k]) @ grad_u[..., :k]
    if grad_vh is not None:
        product += vh[..., :k, :] @ adjoint(grad_vh[..., :k, :])
    text = (
        "svd_backward: The singular vectors in the complex case are specified up to "
        "multiplication by e^{i phi}. The specified loss function depends on this "
        "phase term, making it ill-defined."
    )
    return _depends(product, text)


# Eigenvalues of symmetric matrices ----------------------------------------------------


def _hermitian(A: Array, lower: bool) -> Array:
    """The matrix that one triangle stands for."""
    half = jnp.tril(A, -1) if lower else jnp.triu(A, 1)
    middle = jnp.eye(A.shape[-1], dtype=A.dtype) * A.real
    return half + adjoint(half) + middle


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _eigh(A: Array, lower: bool) -> tuple[Array, Array]:
    vectors, values = lax.linalg.eigh(A, lower=lower, symmetrize_input=False)
    return values, vectors


@_eigh.defjvp
def _eigh_jvp(lower: bool, primals: Any, tangents: Any) -> Any:
    # For a matrix that is Hermitian throughout; PyTorch's tangents may be others'.
    (A,), (dA,) = primals, tangents
    values, vectors = _eigh(A, lower)
    if not is_forward():
        dA = (dA + adjoint(dA)) / 2
    inner = adjoint(vectors) @ dA @ vectors
    turn = vectors @ _over_gaps(inner, _gaps(values))
    return (values, vectors), (diagonal(inner).real, turn)


def _check_eigh(A: Array, UPLO: str) -> bool:
    check_square(A, "linalg.eigh")
    refuse_kernel(A, "linalg_eigh_cpu")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "L"


def _eigh_checks(vectors: bool) -> Any:
    def checks(A: Array, UPLO: str) -> list[Check]:
        if not A.size:
            return []
        code = A.shape[-1] - 1 if vectors else 1
        return failed(
            _bad(_hermitian(A, UPLO.upper() == "L")) * code,
            "linalg.eigh",
            "The algorithm failed to converge because the input matrix is "
            "ill-conditioned or has too many repeated eigenvalues (error code: "
            "{code}).",
        )

    return checks


@linalg_op(
    "LinalgEighBackward0",
    named_result=("eigenvalues", "eigenvectors"),
    checks=_eigh_checks(True),
    gradient_checks=_eigenvector_checks("linalg_eigh_backward"),
    layout=columns,
)
def eigh(input: Array, UPLO: str = "L") -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    lower = _check_eigh(input, UPLO)
    if not input.size:
        return jnp.zeros(input.shape[:-1], input.real.dtype), input
    return _eigh(input, lower)


@linalg_op("LinalgEighBackward0", checks=_eigh_checks(False))
def eigvalsh(input: Array, UPLO: str = "L") -> Array:
    """Eigenvalues of a symmetric matrix, the smallest first."""
    lower = _check_eigh(input, UPLO)
    if not input.size:
        return jnp.zeros(input.shape[:-1], input.real.dtype)
    return _eigh(input, lower)[0]


@linalg_op(
    "LOBPCGAutogradFunctionBackward",
    namespaces=(),
    saves=("A", "result"),
    differentiable=("A", "B"),
)
def _eigenpairs(
    A: Array, B: Array | None, values: Array, vectors: Array, refusal: str
) -> tuple[Array, Array]:
    """Some eigenpairs that are known, with their derivative by the matrix.

    `refusal`: why there is no derivative.
    """

    @jax.custom_jvp
    def known(A: Array, B: Array | None) -> tuple[Array, Array]:
        return values, vectors

    @known.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        if refusal:
            raise ValueError(f"lobpcg.backward {refusal}")
        (A, B), (dA, _) = primals, tangents
        # Asked for again, so that a second derivative sees what they depend on.
        values, vectors = known(A, B)
        image = dA @ vectors
        inner = adjoint(vectors) @ image
        # What is left when the known vectors are taken from all of them.
        others, every = _eigh(A, True)
        other = (jnp.abs(adjoint(vectors) @ every) ** 2).sum(-2) < 0.5
        gaps = values[..., None, :] - others[..., :, None]
        shares = jnp.where(other[..., None], 1 / jnp.where(gaps == 0, 1, gaps), 0)
        turn = vectors @ _over_gaps(inner, _gaps(values))
        turn += every @ (shares * (adjoint(every) @ image))
        return (values, vectors), (diagonal(inner), turn)

    return known(A, B)


# Eigenvalues --------------------------------------------------------------------------


@jax.custom_jvp
def _eig(A: Array) -> tuple[Array, Array]:
    values, vectors = jnp.linalg.eig(A)
    return values, vectors


@_eig.defjvp
def _eig_jvp(primals: Any, tangents: Any) -> Any:
    (A,), (dA,) = primals, tangents
    values, vectors = _eig(A)
    inner = jnp.linalg.solve(vectors, dA.astype(vectors.dtype) @ vectors)
    turn = vectors @ _over_gaps(inner, _gaps(values))
    # The vectors keep their length.
    along = diagonal(adjoint(vectors) @ turn).real
    return (values, vectors), (diagonal(inner), turn - vectors * along[..., None, :])


def _check_eig(A: Array, name: str) -> None:
    check_square(A, name)
    if not jnp.issubdtype(A.dtype, jnp.inexact):
        raise RuntimeError(f"Unknown Complex ScalarType for {scalar_name(A)}")
    refuse_kernel(A, "linalg_eig_out_cpu")


def _eig_checks(A: Array) -> list[Check]:
    if not A.size:
        return []
    text = "torch.linalg.eig: input tensor should not contain infs or NaNs."
    return [Check(~jnp.isfinite(A).all(), RuntimeError, text)]


def _finite(A: Array) -> Array:
    # LAPACK does not return for a matrix with NaN in it.
    return jnp.where(jnp.isfinite(A), A, 0)


@linalg_op(
    "LinalgEigBackward0",
    named_result=("eigenvalues", "eigenvectors"),
    checks=_eig_checks,
    gradient_checks=_eigenvector_checks("linalg_eig_backward"),
    out=True,
    castable=tuple(
        castable_text("torch.linalg.eig", n) for n in ("eigenvalues", "eigenvectors")
    ),
    layout=columns,
)
def eig(input: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors; complex."""
    _check_eig(input, "linalg.eig")
    if not input.size:
        kind = jnp.result_type(input.dtype, jnp.complex64)
        return jnp.zeros(input.shape[:-1], kind), jnp.zeros(input.shape, kind)
    return _eig(_finite(input))


@linalg_op(
    "LinalgEigBackward0",
    checks=_eig_checks,
    out=True,
    castable=castable_text("torch.linalg.eigvals", "eigenvalues"),
    unfollowed=True,
)
def eigvals(input: Array) -> Array:
    """Eigenvalues; complex."""
    _check_eig(input, "linalg.eigvals")
    if not input.size:
        kind = jnp.result_type(input.dtype, jnp.complex64)
        return jnp.zeros(input.shape[:-1], kind)
    return _eig(_finite(input))[0]


# Singular values ----------------------------------------------------------------------


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _svd(A: Array, full: bool) -> tuple[Array, Array, Array]:
    u, s, vh = jnp.linalg.svd(A, full_matrices=full)
    return u, s, vh


@_svd.defjvp
def _svd_jvp(full: bool, primals: Any, tangents: Any) -> Any:
    (A,), (dA,) = primals, tangents
    m, n = A.shape[-2:]
    k = min(m, n)
    whole_u, s, whole_vh = _svd(A, full)
    u, vh = whole_u[..., :k], whole_vh[..., :k, :]
    v = adjoint(vh)
    inner = adjoint(u) @ dA @ v
    columns, rows = s[..., None, :], s[..., :, None]
    gaps = (columns - rows) * (columns + rows)
    back = adjoint(inner)
    in_u = _over_gaps(inner * columns + rows * back, gaps)
    in_v = _over_gaps(rows * inner + back * columns, gaps)
    if jnp.iscomplexobj(A):
        eye = jnp.eye(k, dtype=s.dtype)
        in_u = in_u + eye * (1j * inner.imag / columns)
    du, dv = u @ in_u, v @ in_v
    if m > k:
        across = dA @ v / columns
        du = du + across - u @ (adjoint(u) @ across)
    if n > k:
        across = adjoint(dA) @ u / columns
        dv = dv + across - v @ (vh @ across)
    # The columns that complete a basis have no derivative.
    more_u, more_v = whole_u.shape[-1] - k, whole_vh.shape[-2] - k
    none = [(0, 0)] * (A.ndim - 2)
    du = jnp.pad(du, [*none, (0, 0), (0, more_u)])
    dvh = jnp.pad(adjoint(dv), [*none, (0, more_v), (0, 0)])
    return (whole_u, s, whole_vh), (du, diagonal(inner).real, dvh)


def _check_svd(A: Array) -> None:
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd", "linalg_svd_cpu")


def svd_checks(A: Array, *rest: Any) -> list[Check]:
    """The check that matrices have singular values; LAPACK refuses NaN alone."""
    if not A.size:
        return []
    return failed(
        jnp.isnan(A).any((-2, -1)),
        "linalg.svd",
        "The algorithm failed to converge because the input matrix contained "
        "non-finite values.",
    )


def _decomposed(A: Array, full: bool) -> tuple[Array, Array, Array]:
    _check_svd(A)
    if A.size:
        return _svd(A, full)
    m, n = A.shape[-2:]
    k, batch = min(m, n), A.shape[:-2]
    a, b = (m, n) if full else (k, k)
    u = jnp.broadcast_to(jnp.eye(m, a, dtype=A.dtype), (*batch, m, a))
    vh = jnp.broadcast_to(jnp.eye(b, n, dtype=A.dtype), (*batch, b, n))
    return u, jnp.zeros((*batch, k), A.real.dtype), vh


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
            "inputs with cuSOLVER backend."
        )


@linalg_op(
    "LinalgSvdBackward0",
    named_result=("U", "S", "Vh"),
    checks=svd_checks,
    gradient_checks=_singular_vector_checks,
    layout=columns,
)
def svd(
    A: Array, full_matrices: bool = True, *, driver: str | None = None
) -> tuple[Array, Array, Array]:
    """Singular values and their vectors."""
    _check_driver(driver)
    return _decomposed(A, full_matrices)


@linalg_op("LinalgSvdBackward0", checks=svd_checks)
def svdvals(A: Array, *, driver: str | None = None) -> Array:
    """Singular values, the largest first."""
    _check_driver(driver)
    if not A.size:
        return _decomposed(A, False)[1]
    _check_svd(A)
    return _svd(A, False)[1]


# Pseudo-inverses ----------------------------------------------------------------------


def pseudo_inverse(A: Array, tolerance: Any, hermitian: bool = False) -> Array:
    """The pseudo-inverse; `tolerance(largest)` is the largest value that counts as 0.

    The derivative is PyTorch's, that of a matrix of any kind.
    """

    def inverse(A: Array) -> Array:
        if hermitian:
            values, u = _eigh(A, True)
            v, sizes = u, jnp.abs(values)
        else:
            u, values, vh = _svd(A, False)
            v, sizes = adjoint(vh), values
        small = sizes <= tolerance(sizes.max(-1))[..., None]
        inverted = jnp.where(small, 0, 1 / jnp.where(small, 1, values))
        return (v * inverted[..., None, :]) @ adjoint(u)

    @jax.custom_jvp
    def found(A: Array) -> Array:
        return inverse(A)

    @found.defjvp
    def derivative(primals: Any, tangents: Any) -> Any:
        (A,), (dA,) = primals, tangents
        P = found(A)
        back, across, own = adjoint(dA), P @ adjoint(P), adjoint(P) @ P
        left = across @ (back - back @ A @ P)
        right = (back - P @ A @ back) @ own
        return P, left + right - P @ dA @ P

    return found(A)


def pinv_checks(A: Array, hermitian: bool) -> list[Check]:
    """The check that the decomposition behind a pseudo-inverse is there."""
    return _eigh_checks(True)(A, "L") if hermitian else svd_checks(A)


@linalg_op(
    "LinalgLstsqBackward0",
    layout=columns,
    namespaces=(),
    saves=("A", "B", "result"),
    checks=lambda A, B, rcond: svd_checks(A),
)
def _lstsq(A: Array, B: Array, rcond: float) -> Array:
    """The solutions of least squares, and of those the shortest."""
    if not A.size or not B.size:
        return jnp.zeros((*A.shape[:-2], A.shape[-1], B.shape[-1]), A.dtype)
    return pseudo_inverse(A, lambda largest: max(rcond, 0.0) * largest) @ B
