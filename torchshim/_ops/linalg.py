"""Linear algebra: determinants, inverses, equations, norms of matrices."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.dtypes import dtype as DType
from torchshim._core.op import Arranged, Array, Operand
from torchshim._ops._common import broadcast_shapes, check_fixed, scalar_name
from torchshim._ops._linalg import (
    NO_INVERSE,
    batched,
    check_fits,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    columns,
    exponential,
    failed,
    first_zero,
    refuse_kernel,
    solutions,
)
from torchshim._ops._linalg import linalg_op as _linalg
from torchshim._ops._reducing import cast, is_complex, is_exact
from torchshim._ops.eigen import pinv_checks, pseudo_inverse, svd_checks, svdvals
from torchshim._ops.norm import check_norm_dtype, check_order, p_norm
from torchshim._ops.view_geometry import size_at, wrap_dim

# Determinants and inverses -----------------------------------------------------------


def _det(A: Array) -> Array:
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det", "lu_cpu")
    if not A.shape[-1]:
        return jnp.ones(A.shape[:-2], A.dtype) + A.sum((-2, -1))
    value = jnp.linalg.det(A)
    # Where it is NaN its gradient would be zeros.
    unknown = jnp.isnan(value)
    factor = jnp.where(unknown, jnp.nan, 1)[..., None, None]
    return jnp.where(unknown, (A * factor).sum((-2, -1)), value)


@_linalg(
    "LinalgDetBackward0",
    method=True,
    out=False,
    namespaces=("torch",),
    saves=("A", "computed", "result"),
)
def det(A: Array) -> Array:
    """The determinant."""
    return _det(A)


@_linalg(
    "LinalgDetBackward0",
    name="linalg_det",
    public="det",
    saves=("A", "computed", "result"),
)
def linalg_det(A: Array) -> Array:
    """The determinant; unlike `torch.det` it takes `out=`."""
    return _det(A)


@jax.custom_jvp
def _sign_and_logarithm(A: Array) -> tuple[Array, Array]:
    """As `jnp.linalg.slogdet`, which computes the determinant of two rows itself.

    That may be too large, or too small, for its dtype.
    """
    factors, pivots, _ = lax.linalg.lu(A)
    diagonal = jnp.diagonal(factors, axis1=-2, axis2=-1)
    swaps = (pivots != jnp.arange(A.shape[-1], dtype=pivots.dtype)).sum(-1)
    signs = jnp.sign(diagonal)
    if not jnp.iscomplexobj(A):
        signs = jnp.where(jnp.isnan(diagonal), 0, signs)  # as in PyTorch
    sign = signs.prod(-1)
    value = jnp.log(jnp.abs(diagonal)).sum(-1)
    return jnp.where(swaps % 2 == 1, -sign, sign), value


@_sign_and_logarithm.defjvp
def _sign_and_logarithm_jvp(primals: Any, tangents: Any) -> Any:
    (A,), (dA,) = primals, tangents
    sign, value = _sign_and_logarithm(A)
    moved = jnp.trace(jnp.linalg.solve(A, dA), axis1=-1, axis2=-2)
    if not jnp.iscomplexobj(A):
        return (sign, value), (jnp.zeros_like(sign), moved)
    turned = lax.complex(jnp.zeros_like(value), moved.imag) * sign
    return (sign, value), (turned, moved.real)


def _slogdet(A: Array) -> tuple[Array, Array]:
    check_square(A, "linalg.slogdet")
    check_floating(A, "linalg.slogdet")
    return _sign_and_logarithm(A)


@_linalg(
    "LinalgSlogdetBackward0",
    method=True,
    namespaces=("torch",),
    named_result=("sign", "logabsdet"),
    saves=("A", "result0"),
)
def slogdet(A: Array) -> tuple[Array, Array]:
    """The sign and the logarithm of the absolute value of the determinant."""
    return _slogdet(A)


@_linalg(
    "LinalgSlogdetBackward0",
    name="linalg_slogdet",
    public="slogdet",
    named_result=("sign", "logabsdet"),
    saves=("A", "result0"),
)
def linalg_slogdet(A: Array) -> tuple[Array, Array]:
    """The sign and the logarithm of the absolute value of the determinant."""
    return _slogdet(A)


def _logdet_node(input: Any) -> str:
    return "AddBackward0" if input.dtype.is_complex else "WhereBackward0"


@_linalg(
    _logdet_node,
    method=True,
    out=False,
    namespaces=("torch",),
    saves=("input", "computed"),
)
def logdet(input: Array) -> Array:
    """The logarithm of the determinant; NaN where that is negative."""
    check_square(input, "logdet")
    check_floating(input, "logdet")
    sign, value = _sign_and_logarithm(input)
    if jnp.iscomplexobj(input):
        return value + jnp.log(sign)
    return jnp.where(sign == -1, jnp.nan, value)


def _inverse(A: Array) -> Array:
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv")
    return jnp.linalg.inv(A)


def _singular(A: Array) -> Array:
    """The first zero on the diagonal of U; 0 where a matrix has an inverse."""
    return first_zero(lax.linalg.lu(A)[0])


def inverse_checks(A: Array) -> list[Check]:
    """The check that every matrix has an inverse."""
    return failed(_singular(A), "linalg.inv", NO_INVERSE)


@_linalg(
    "LinalgInvExBackward0",
    checks=inverse_checks,
    name="linalg_inv",
    public="inv",
    layout=columns,
)
def linalg_inv(A: Array) -> Array:
    """The inverse matrix."""
    return _inverse(A)


def _inv_ex_checks(A: Array, check_errors: bool) -> list[Check]:
    if not check_errors:
        return []
    return failed(_singular(A), "linalg.inv_ex", NO_INVERSE)


@_linalg(
    "LinalgInvExBackward0",
    checks=_inv_ex_checks,
    named_result=("inverse", "info"),
    layout=columns,
)
def inv_ex(A: Array, *, check_errors: bool = False) -> tuple[Array, Array]:
    """The inverse matrix, and where its elimination met a zero."""
    return _inverse(A), _singular(A)


@_linalg(
    "LinalgPinvBackward0",
    name="linalg_pinv",
    saves=("input", "atol", "rtol", "computed"),
    namespaces=(),
    checks=lambda input, atol, rtol, hermitian: pinv_checks(input, hermitian),
    typecheck=lambda input, atol, rtol, hermitian: check_fixed(
        "linalg_pinv", atol=atol, rtol=rtol
    ),
)
def linalg_pinv(
    input: Array, atol: Operand | None, rtol: Operand | None, hermitian: bool
) -> Array:
    """The pseudo-inverse: singular values up to max(atol, rtol * largest) are zeros."""
    if input.ndim < 2 or is_exact(input) or input.dtype.itemsize == 2:
        raise _no_pinv(input)
    for which, each in (("atol", atol), ("rtol", rtol)):
        if each is not None and is_complex(each):
            raise RuntimeError(
                f"torch.linalg.pinv: {which} tensor of complex type is not supported. "
                f"Got {scalar_name(each)}"
            )
    if not input.size:
        return jnp.zeros((*input.shape[:-2], *input.shape[:-3:-1]), input.dtype)
    if hermitian:
        check_square(input, "linalg.eigh")
    real = input.real.dtype
    if rtol is None:
        relative = max(input.shape[-2:]) * float(jnp.finfo(real).eps)
        rtol = (
            relative if atol is None else jnp.where(jnp.asarray(atol) > 0, 0, relative)
        )
    relative = lax.stop_gradient(jnp.asarray(rtol, real))
    absolute = lax.stop_gradient(jnp.asarray(0 if atol is None else atol, real))

    def tolerance(largest: Array) -> Array:
        return jnp.maximum(absolute, relative * largest)

    return pseudo_inverse(input, tolerance, hermitian)


def _no_pinv(input: Array) -> RuntimeError:
    return RuntimeError(
        f"linalg.pinv({scalar_name(input)}{{{list(input.shape)}}}): expected a tensor "
        "with 2 or more dimensions of float, double, cfloat or cdouble types"
    )


# Equations ---------------------------------------------------------------------------


def _is_vector(A: Array, B: Array) -> bool:
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _solution(A: Array, B: Array, left: bool) -> Array:
    if not jnp.issubdtype(A.dtype, jnp.inexact):
        check_floating(A, "linalg.solve")
    check_same_dtype("linalg.solve", A, B)
    check_square(A, "linalg.solve")
    vector = _is_vector(A, B)
    b = B[..., None] if vector else B
    check_matrix(b, "linalg.solve", "B")
    check_fits("linalg.solve", A, b, left)
    a, b = batched(A, b)
    refuse_kernel(A, "lu_cpu")
    if not left:
        a, b = jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2)
    out = jnp.linalg.solve(a, b) if b.size else b
    if not left:
        out = jnp.swapaxes(out, -1, -2)
    return out[..., 0] if vector else out


_NO_SOLUTION = "The solver failed because the input matrix is singular."


@_linalg(
    "LinalgSolveExBackward0",
    saves=("A", "result"),
    checks=lambda A, B, left: failed(_singular(A), "torch.linalg.solve", _NO_SOLUTION),
    layout=Arranged(solutions),
)
def solve(A: Array, B: Array, *, left: bool = True) -> Array:
    """The matrix X with `A @ X = B` (`X @ A = B` where `left` is false)."""
    return _solution(A, B, left)


def _solve_ex_checks(A: Array, B: Array, left: bool, check_errors: bool) -> list[Check]:
    if not check_errors:
        return []
    return failed(_singular(A), "torch.linalg.solve_ex", _NO_SOLUTION)


@_linalg(
    "LinalgSolveExBackward0",
    saves=("A", "result"),
    checks=_solve_ex_checks,
    named_result=("result", "info"),
    layout=Arranged(solutions),
)
def solve_ex(
    A: Array, B: Array, *, left: bool = True, check_errors: bool = False
) -> tuple[Array, Array]:
    """As `solve`, and where the elimination met a zero."""
    # A code for each matrix, however many right sides it is broadcast to.
    return _solution(A, B, left), _singular(A)


@_linalg(
    "LinalgSolveTriangularBackward0",
    saves=("input", "result"),
    out="expected scalar type {want.scalar_name} but found {have.scalar_name}",
    layout=columns,
)
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
    check_matrix(B, "linalg.solve_triangular", "B")
    check_fits("linalg.solve_triangular", input, B, left)
    a, b = batched(input, B)
    refuse_kernel(input, "triangular_solve_cpu")
    if not b.size:
        return b.astype(a.dtype)
    return lax.linalg.triangular_solve(
        a,
        b.astype(a.dtype),
        left_side=left,
        lower=not upper,
        unit_diagonal=unitriangular,
    )


# Norms -------------------------------------------------------------------------------


def _matrix_node(input: Any, ord: Any = "fro", *rest: Any) -> str:
    if ord == "fro":
        return "LinalgVectorNormBackward0"
    if ord == "nuc":
        return "SumBackward1"
    return "AmaxBackward0" if ord > 0 else "AminBackward0"


# The orders of a matrix norm that are found from the singular values.
_SPECTRAL = ("nuc", 2, -2)


def _norm_checks(
    input: Array, ord: Any, dim: tuple[int, ...], keepdim: bool, dtype: DType | None
) -> list[Check]:
    if ord not in _SPECTRAL:
        return []
    return svd_checks(jnp.moveaxis(cast(input, dtype), dim, (-2, -1)))


@_linalg(
    _matrix_node,
    saves=("input", "result"),
    checks=_norm_checks,
    out=(
        "linalg.matrix_norm expected out tensor dtype {want.scalar_name} but got: "
        "{have.scalar_name}"
    ),
)
def matrix_norm(
    input: Array,
    ord: Any = "fro",
    dim: tuple[int, ...] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """A norm of matrices: Frobenius, nuclear, of rows, of columns, spectral."""
    name = "linalg.matrix_norm"
    check_order(ord, name)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    check_matrix(input, name)
    if ord in _SPECTRAL or is_exact(input):
        check_floating(input, name)
    if len(dim) != 2:
        raise RuntimeError(
            f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}"
        )
    rows, columns = (wrap_dim(d, input.ndim) for d in dim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({rows}, {columns})")
    check_norm_dtype(input, dtype, name)
    input = cast(input, dtype)
    if ord == "fro":
        out = p_norm(input, 2, (rows, columns))
        return out if keepdim else out.squeeze((rows, columns))
    x = jnp.moveaxis(input, (rows, columns), (-2, -1))
    if ord in _SPECTRAL:
        values, place = svdvals(x), -1
    else:
        summed, kept = (-2, -1) if abs(ord) == 1 else (-1, -2)
        values = p_norm(x, 1, (summed,)).squeeze(summed)
        place = (rows, columns)[kept] - (not keepdim and rows < columns and kept == -1)
    if ord == "nuc":
        out = values.sum(-1)
    elif values.shape[-1]:
        out = values.max(-1) if ord > 0 else values.min(-1)
    elif ord > 0:
        out = jnp.zeros(values.shape[:-1], values.dtype)
    else:
        raise IndexError(
            f"amin(): Expected reduction dim {place} to have non-zero size."
        )
    if keepdim:
        for axis in sorted((rows, columns)):
            out = jnp.expand_dims(out, axis)
    return out


@_linalg(
    "LinalgMatrixExpBackward0",
    saves=("input", "computed"),
    namespaces=("torch", "linalg"),
    method=True,
    out=False,
)
def matrix_exp(input: Array) -> Array:
    """The exponential of square matrices."""
    check_square(input, "linalg.matrix_exp")
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        check_floating(input, "linalg.matrix_exp")
    if not input.size:
        return input
    flat = input.reshape(-1, *input.shape[-2:])
    wide = flat.astype(jnp.promote_types(flat.dtype, jnp.float32))
    return exponential(wide).astype(input.dtype).reshape(input.shape)


# Products -----------------------------------------------------------------------------


def _cross(input: Array, other: Array, axis: int) -> Array:
    a, b = jnp.broadcast_arrays(input, other)
    return jnp.cross(a, b, axis=axis)


def _check_cross(input: Array, other: Array, dim: int) -> None:
    if input.ndim != other.ndim:
        raise RuntimeError(
            "linalg.cross: inputs must have the same number of dimensions."
        )
    sizes = size_at(input.shape, dim), size_at(other.shape, dim)
    if sizes != (3, 3):
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got "
            f"{sizes[0]} and {sizes[1]}"
        )
    broadcast_shapes(input.shape, other.shape)
    if input.dtype == jnp.bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input)} but found {scalar_name(other)}"
        )


@_linalg(
    "LinalgCrossBackward0",
    saves={"input": ("other",), "other": ("input",)},
    name="linalg_cross",
    public="cross",
    apart=("input", "other"),
)
def linalg_cross(input: Array, other: Array, *, dim: int = -1) -> Array:
    """The cross product of vectors of three elements."""
    _check_cross(input, other, dim)
    return _cross(input, other, wrap_dim(dim, input.ndim))
