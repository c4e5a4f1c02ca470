"""Linear algebra: factorizations, inverses, norms of matrices."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.op import Array, op
from torchshim._ops.matmul import scalar_name
from torchshim._ops.norm import _norm as p_norm
from torchshim._ops.views import wrap_dim


class LinAlgError(RuntimeError):
    """A matrix that does not allow it: `torch.linalg.LinAlgError`."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "torch._C"


def check_matrix(a: Array, name: str) -> None:
    """Raises PyTorch's error for less than two dimensions."""
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions."
        )


def check_square(a: Array, name: str) -> None:
    """Raises PyTorch's error for what is no batch of square matrices."""
    check_matrix(a, name)
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are "
            f"{a.shape[-2]} by {a.shape[-1]} matrices"
        )


def check_floating(a: Array, name: str) -> None:
    """Raises PyTorch's error for integers and half types."""
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(a)}"
        )
    if a.dtype in (jnp.float16, jnp.bfloat16):
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {scalar_name(a)}"
        )


def _linalg(
    grad_fn: Any, *, saves: tuple[str, ...] = ("result",), **options: Any
) -> Any:
    options = {"namespaces": ("linalg",), "method": False, **options}
    return op(grad_fn=grad_fn, saves=saves, **options)


def _first_bad(bad: Array) -> Array:
    return jnp.argmax(bad.reshape(-1))


# Determinants and inverses -----------------------------------------------------------


@_linalg("LinalgDetBackward0", method=True, out=False, namespaces=("torch",))
def det(A: Array) -> Array:
    """The determinant."""
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    return jnp.linalg.det(A)


@_linalg("LinalgDetBackward0", name="linalg_det", public="det")
def linalg_det(A: Array) -> Array:
    """The determinant; unlike `torch.det` it takes `out=`."""
    return det(A)


@_linalg(
    "LinalgSlogdetBackward0",
    method=True,
    namespaces=("torch", "linalg"),
    named_result=("sign", "logabsdet"),
)
def slogdet(A: Array) -> tuple[Array, Array]:
    """The sign and the logarithm of the absolute value of the determinant."""
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet")
    sign, value = jnp.linalg.slogdet(A)
    return sign, value


@_linalg("WhereBackward0", method=True, out=False, namespaces=("torch",))
def logdet(input: Array) -> Array:
    """The logarithm of the determinant; NaN where that is negative."""
    check_square(input, "logdet")
    check_floating(input, "logdet")
    sign, value = jnp.linalg.slogdet(input)
    if jnp.iscomplexobj(input):
        return value + jnp.log(sign)
    return jnp.where(sign == -1, jnp.nan, value)


def _inverse_checks(A: Array) -> list[Check]:
    # As a factorization with row swaps finds it: a zero on the diagonal of U.
    lu, _, _ = lax.linalg.lu(A)
    zero = jnp.diagonal(lu, axis1=-2, axis2=-1) == 0
    bad = zero.any(-1)
    if not bad.size:
        return []
    which = _first_bad(bad)
    at = jnp.argmax(zero.reshape(-1, zero.shape[-1])[which]) + 1
    text = (
        "The diagonal element {value} is zero, the inversion could not be completed "
        "because the input matrix is singular."
    )
    batch = "" if A.ndim == 2 else "(Batch element 0): "
    return [Check(bad.any(), LinAlgError, f"linalg.inv: {batch}{text}", at)]


@_linalg(
    "LinalgInvExBackward0",
    checks=_inverse_checks,
    name="linalg_inv",
    public="inv",
)
def linalg_inv(A: Array) -> Array:
    """The inverse matrix."""
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv")
    return jnp.linalg.inv(A)


def _pinv(A: Array, rtol: float | None, hermitian: bool) -> Array:
    if rtol is None:
        rtol = max(A.shape[-2:]) * float(jnp.finfo(A.dtype).eps)
    return jnp.linalg.pinv(A, rtol=rtol, hermitian=hermitian)


@_linalg("LinalgPinvBackward0", namespaces=("linalg",))
def pinv(input: Array, *, rtol: float | None = None, hermitian: bool = False) -> Array:
    """The pseudo-inverse."""
    if input.ndim < 2:
        raise RuntimeError(
            f"linalg.pinv({scalar_name(input)}{{{list(input.shape)}}}): expected a "
            "tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    check_floating(input, "linalg.pinv")
    return _pinv(input, rtol, hermitian)


# Equations ---------------------------------------------------------------------------


def _is_vector(A: Array, B: Array) -> bool:
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _solve_checks(A: Array, B: Array, left: bool = True) -> list[Check]:
    lu, _, _ = lax.linalg.lu(A)
    bad = (jnp.diagonal(lu, axis1=-2, axis2=-1) == 0).any()
    batch = "" if A.ndim == 2 else "(Batch element 0): "
    return [
        Check(
            bad,
            LinAlgError,
            f"torch.linalg.solve: {batch}The solver failed because the input matrix is "
            "singular.",
        )
    ]


@_linalg("LinalgSolveExBackward0", saves=("A", "result"), checks=_solve_checks)
def solve(A: Array, B: Array, *, left: bool = True) -> Array:
    """The matrix X with `A @ X = B` (`X @ A = B` where `left` is false)."""
    check_square(A, "linalg.solve")
    check_floating(A, "linalg.solve")
    if A.dtype != B.dtype:
        raise RuntimeError(
            "linalg.solve: Expected A and B to have the same dtype, but found A of "
            f"type {scalar_name(A)} and B of type {scalar_name(B)} instead"
        )
    vector = _is_vector(A, B)
    b = B[..., None] if vector else B
    fits = A.shape[-1] == (b.shape[-2] if left else b.shape[-1])
    if not fits:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation {equation} "
            f"({A.shape[-2]}x{A.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )
    batch = jnp.broadcast_shapes(A.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(A, batch + A.shape[-2:])
    b = jnp.broadcast_to(b, batch + b.shape[-2:])
    if left:
        out = jnp.linalg.solve(a, b)
    else:
        out = jnp.swapaxes(
            jnp.linalg.solve(jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2)), -1, -2
        )
    return out[..., 0] if vector else out


@_linalg("LinalgSolveTriangularBackward0", saves=("input", "result"))
def solve_triangular(
    input: Array,
    B: Array,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Array:
    """As `solve`, for a triangular matrix."""
    check_square(input, "linalg.solve_triangular")
    check_matrix(B, "linalg.solve_triangular")
    batch = jnp.broadcast_shapes(input.shape[:-2], B.shape[:-2])
    return lax.linalg.triangular_solve(
        jnp.broadcast_to(input, batch + input.shape[-2:]),
        jnp.broadcast_to(B, batch + B.shape[-2:]),
        left_side=left,
        lower=not upper,
        unit_diagonal=unitriangular,
    )


# Factorizations ----------------------------------------------------------------------


def _lower(A: Array, upper: bool) -> Array:
    # PyTorch reads one triangle alone.
    half = jnp.triu(A) if upper else jnp.tril(A)
    if upper:
        half = jnp.conj(jnp.swapaxes(half, -1, -2))
    return lax.linalg.cholesky(half, symmetrize_input=False)


def _cholesky_checks(input: Array, upper: bool = False) -> list[Check]:
    factor = _lower(input, upper)
    bad = jnp.isnan(jnp.diagonal(factor, axis1=-2, axis2=-1).real).any(-1)
    if not bad.size:
        return []
    which = _first_bad(bad)
    n = input.shape[-1]
    a = input.reshape(-1, n, n)[which]

    def positive(k: int) -> Array:
        return ~jnp.isnan(_lower(a[:k, :k], upper)).any()

    order = 1 + sum((positive(k).astype(jnp.int64) for k in range(1, n)), 0)
    batch = "" if input.ndim == 2 else "(Batch element 0): "
    return [
        Check(
            bad.any(),
            LinAlgError,
            f"linalg.cholesky: {batch}The factorization could not be completed because "
            "the input is not positive-definite (the leading minor of order {value} is "
            "not positive-definite).",
            order,
        )
    ]


@_linalg("LinalgCholeskyExBackward0", checks=_cholesky_checks)
def cholesky(input: Array, *, upper: bool = False) -> Array:
    """The triangular factor of a positive definite matrix."""
    check_square(input, "linalg.cholesky")
    check_floating(input, "linalg.cholesky")
    hermitian = (input + jnp.conj(jnp.swapaxes(input, -1, -2))) / 2
    value = lax.linalg.cholesky(hermitian, symmetrize_input=False)
    # The value from one triangle, the gradient from both, as PyTorch has it.
    factor = value + lax.stop_gradient(_lower(input, upper) - value)
    return jnp.conj(jnp.swapaxes(factor, -1, -2)) if upper else factor


@_linalg("LinalgQrBackward0", named_result=("Q", "R"))
def qr(A: Array, mode: str = "reduced") -> tuple[Array, Array]:
    """An orthogonal and an upper triangular factor."""
    check_matrix(A, "linalg.qr")
    check_floating(A, "linalg.qr")
    if mode == "r":
        r = jnp.linalg.qr(A, mode="r")
        return jnp.zeros((0,), A.dtype), r
    if mode not in ("reduced", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
            "(default), 'r', or 'complete'"
        )
    q, r = jnp.linalg.qr(A, mode=mode)
    return q, r


@_linalg("LinalgSvdBackward0", named_result=("U", "S", "Vh"))
def svd(A: Array, full_matrices: bool = True) -> tuple[Array, Array, Array]:
    """Singular values and their vectors."""
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    u, s, vh = jnp.linalg.svd(A, full_matrices=full_matrices)
    return u, s, vh


@_linalg("LinalgSvdBackward0")
def svdvals(A: Array) -> Array:
    """Singular values, the largest first."""
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svdvals")
    return jnp.linalg.svd(A, compute_uv=False)


def _hermitian(A: Array, UPLO: str, name: str) -> Array:
    check_square(A, name)
    half_or_exact = not jnp.issubdtype(A.dtype, jnp.inexact) or A.dtype.itemsize == 2
    if half_or_exact:
        raise NotImplementedError(
            f"\"linalg_eigh_cpu\" not implemented for '{scalar_name(A)}'"
        )
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    lower = UPLO.upper() == "L"
    half = jnp.tril(A, -1) if lower else jnp.triu(A, 1)
    diagonal = jnp.eye(A.shape[-1], dtype=A.dtype) * A
    whole = half + jnp.conj(jnp.swapaxes(half, -1, -2)) + diagonal
    # The gradient is the one for a matrix that is symmetric throughout.
    both = (A + jnp.conj(jnp.swapaxes(A, -1, -2))) / 2
    return both + lax.stop_gradient(whole - both)


@_linalg("LinalgEighBackward0", named_result=("eigenvalues", "eigenvectors"))
def eigh(input: Array, UPLO: str = "L") -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(
        _hermitian(input, UPLO, "linalg.eigh"), symmetrize_input=False
    )
    return values, vectors


@_linalg("LinalgEighBackward0")
def eigvalsh(input: Array, UPLO: str = "L") -> Array:
    """Eigenvalues of a symmetric matrix, the smallest first."""
    return jnp.linalg.eigh(
        _hermitian(input, UPLO, "linalg.eigh"), symmetrize_input=False
    )[0]


# Norms -------------------------------------------------------------------------------


def _matrix_node(input: Any, ord: Any = "fro", *rest: Any) -> str:
    if ord == "fro":
        return "LinalgVectorNormBackward0"
    if ord == "nuc":
        return "SumBackward1"
    return "AmaxBackward0" if ord > 0 else "AminBackward0"


@_linalg(_matrix_node, saves=("input", "result"))
def matrix_norm(
    input: Array,
    ord: Any = "fro",
    dim: tuple[int, ...] = (-2, -1),
    keepdim: bool = False,
) -> Array:
    """A norm of matrices: Frobenius, nuclear, of rows, of columns, spectral."""
    name = "linalg.matrix_norm"
    check_matrix(input, name)
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(input)}"
        )
    if len(dim) != 2:
        raise RuntimeError(
            f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}"
        )
    rows, columns = (wrap_dim(d, input.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({rows}, {columns})")
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    if ord == "fro":
        out = p_norm(input, 2, (rows, columns))
        return out if keepdim else out.squeeze((rows, columns))
    x = jnp.moveaxis(input, (rows, columns), (-2, -1))
    if ord in ("nuc", 2, -2):
        s = jnp.linalg.svd(x, compute_uv=False)
        out = s.sum(-1) if ord == "nuc" else s.max(-1) if ord == 2 else s.min(-1)
    else:
        sums = p_norm(x, 1, (-2 if abs(ord) == 1 else -1,)).reshape(
            *x.shape[:-2], x.shape[-1 if abs(ord) == 1 else -2]
        )
        out = sums.max(-1) if ord > 0 else sums.min(-1)
    if keepdim:
        for axis in sorted((rows, columns)):
            out = jnp.expand_dims(out, axis)
    return out


@_linalg(
    "LinalgMatrixExpBackward0",
    namespaces=("torch", "linalg"),
    method=True,
    out=False,
)
def matrix_exp(input: Array) -> Array:
    """The exponential of square matrices."""
    check_square(input, "linalg.matrix_exp")
    flat = input.reshape(-1, *input.shape[-2:])
    if not flat.size:
        return input
    return jax.vmap(jax.scipy.linalg.expm)(flat).reshape(input.shape)
