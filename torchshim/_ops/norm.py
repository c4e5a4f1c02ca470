"""Vector norms, and `norm`, which picks among them."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.checks import Check
from torchshim._core.dtypes import dtype as DType
from torchshim._core.op import ORDER, POSITIVE, Array, op
from torchshim._core.promotion import COMPLEX_TO_FLOAT, number
from torchshim._ops._common import broadcast_shapes, is_known
from torchshim._ops._linalg import check_floating
from torchshim._ops._reducing import (
    Dims,
    axes_of,
    cast,
    is_complex,
    is_exact,
    scalar_name,
    squeezed,
    wide,
    with_slope,
)
from torchshim._ops.arithmetic import check_no_bools
from torchshim._ops.eigen import svd_checks, svdvals
from torchshim._ops.rounding import direction, modulus
from torchshim._ops.view_geometry import wrap_dim


@op(
    namespaces=("linalg",),
    method=False,
    out="exact",
    grad_fn="LinalgVectorNormBackward0",
    saves=("x", "result"),
    varies={"ord": ORDER},
)
def vector_norm(
    x: Array,
    ord: Any = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Array:
    """The `ord`-norm of the elements, over some dimensions or all."""
    if isinstance(ord, str):
        raise TypeError(
            "linalg_vector_norm(): argument 'ord' (position 2) must be Number, not str"
        )
    return _vector_norm(x, ord, dim, keepdim, dtype)


def _vector_norm(
    x: Array, ord: float, dim: Dims, keepdim: bool, dtype: DType | None
) -> Array:
    _check_dtypes(x, dtype)
    check_order(ord, "linalg.vector_norm")
    ord = float(ord) if is_known(ord) else ord
    axes = axes_of(dim, x.ndim)
    if is_known(ord) and (ord < 0 or ord == math.inf) and x.ndim:
        _check_identity(x, ord, dim)
    x = cast(x, dtype)
    w = wide(x)
    if not x.size:
        out = jnp.sum(jnp.abs(w), axis=axes, keepdims=True)
    else:
        out = p_norm(w, ord, axes)
    return squeezed(out, axes, keepdim).astype(x.real.dtype)


def check_order(ord: Any, name: str) -> None:
    """Refuses complex numbers for the order of a norm."""
    if isinstance(ord, complex):
        raise RuntimeError(
            f"{name}: Expected a non-complex scalar as the order of norm."
        )


def _check_dtypes(x: Array, dtype: DType | None) -> None:
    name = "linalg.vector_norm"
    if is_exact(x):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(x)}"
        )
    check_norm_dtype(x, dtype, name)


def check_norm_dtype(x: Array, dtype: DType | None, name: str) -> None:
    """Refuses a `dtype=` that a norm of `x` cannot be computed in."""
    if dtype is None:
        return
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got "
            f"{dtype.scalar_name}"
        )
    if dtype.is_complex != is_complex(x):
        kind = "complex" if is_complex(x) else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got "
            f"{dtype.scalar_name}"
        )
    given = dtypes.from_array_dtype(x.dtype)
    if dtype.itemsize < given.itemsize:
        raise RuntimeError(
            f"{name}: the dtype of the input ({given.scalar_name}) should be "
            f"convertible without narrowing to the specified dtype "
            f"({dtype.scalar_name})"
        )


def _no_identity(ord: float) -> RuntimeError:
    return RuntimeError(
        f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor "
        "because the operation does not have an identity"
    )


def _check_identity(x: Array, ord: float, dim: Dims) -> None:
    text = f"{ord:g}"
    if dim is None or dim == ():
        if not x.size:
            raise _no_identity(ord)
        return
    for given in dim if isinstance(dim, tuple) else (dim,):
        if not x.shape[wrap_dim(given, x.ndim)]:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {text} norm on the dimension "
                f"{given}because this dimension is empty and the operation does not "
                "have an identity"
            )


def _magnitude(x: Array) -> Array:
    return modulus(x) if is_complex(x) else jnp.abs(x)


def p_norm(x: Array, p: float, axes: tuple[int, ...]) -> Array:
    """The norm with kept dimensions, and PyTorch's gradient: 0 where it has a kink."""
    special = _special(p)

    def total(values: Array) -> Array:
        return jnp.sum(values, axis=axes, keepdims=True)

    def squares(x: Array) -> Array:
        return x.real**2 + x.imag**2 if is_complex(x) else x * x

    def value(x: Array) -> Array:
        if special != 0 and all(x.shape[axis] == 1 for axis in axes):
            return jnp.abs(x)
        if special == 2:
            return jnp.sqrt(total(squares(x)))
        size = _magnitude(x)
        if special == 0:
            return total((x != 0).astype(size.dtype))
        if special == 1:
            return total(size)
        if special == math.inf:
            return jnp.max(size, axis=axes, keepdims=True)
        if special == -math.inf:
            return jnp.min(size, axis=axes, keepdims=True)
        return total(size**p) ** (1 / p)

    def slope(x: Array, out: Array) -> Array:
        # PyTorch's formulas to the letter: where the norm is 0 their own derivative,
        # a second one of the norm, is NaN.
        if special == 0:
            return jnp.zeros_like(x)
        if special == 1:
            return sign(x)
        if special == 2:
            return jnp.where(out == 0, 0, x / out)
        if special is not None:
            size = _magnitude(x)
            hit = (size == out) | jnp.isnan(size)
            return sign(x) * (hit / total(hit.astype(out.dtype)))
        if is_known(p):
            return slopes[(not p < 1) + (not p < 2)](x, out)
        # No `where`: of what is left out there, derivatives are NaN at 0.
        return jax.lax.switch(jnp.asarray(p >= 1, int) + (p >= 2), slopes, x, out)

    def below_one(x: Array, out: Array) -> Array:
        powers = jnp.where(x == 0, 0, _magnitude(x) ** (p - 1))
        return sign(x) * powers * out ** (1 - p)

    def scale(out: Array) -> Array:
        return jnp.where(out == 0, 0, 1 / out ** (p - 1))

    def below_two(x: Array, out: Array) -> Array:
        return sign(x) * _magnitude(x) ** (p - 1) * scale(out)

    def above_two(x: Array, out: Array) -> Array:
        return x * _magnitude(x) ** (p - 2) * scale(out)

    slopes = below_one, below_two, above_two

    def sign(x: Array) -> Array:
        if is_complex(x):
            return direction(x)
        return jnp.where(jnp.isnan(x), 0, jnp.sign(x))

    def still(out: Array) -> Array:
        return out == 0 if is_known(p) else (out == 0) & (p > 1)

    bounded = special is None and not (is_known(p) and p <= 1)
    return with_slope(x, axes, value, slope, still if bounded else None)


def _special(p: float) -> float | None:
    """An order that has a formula of its own."""
    return p if is_known(p) and p in (0, 1, 2, math.inf, -math.inf) else None


def _norm_node(
    input: object, p: object, dim: object, keepdim: bool, dtype: object
) -> str:
    if p != "nuc":
        return "LinalgVectorNormBackward0"
    return "PermuteBackward0" if keepdim and dim is not None else "SumBackward1"


def _norm_checks(
    input: Array, p: Any, dim: Dims, keepdim: bool, dtype: DType | None
) -> list[Check]:
    if p != "nuc":
        return []
    dims = (0, 1) if dim is None else dim
    return svd_checks(jnp.moveaxis(cast(input, dtype), dims, (-2, -1)))


@op(
    grad_fn=_norm_node,
    saves=("input", "result"),
    out="exact",
    checks=_norm_checks,
    varies={"p": ORDER},
)
def norm(
    input: Array,
    p: Any = "fro",
    dim: Dims = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Array:
    """A vector norm of the elements, or the nuclear norm of matrices."""
    if not isinstance(p, str):
        return _vector_norm(input, 2 if p is None else p, dim, keepdim, dtype)
    if p == "fro" and (not isinstance(dim, tuple) or len(dim) <= 2):
        return _vector_norm(input, 2, dim, keepdim, dtype)
    dims = tuple(range(input.ndim)) if dim is None else dim
    return _nuclear(
        input, p, dims if isinstance(dims, tuple) else (dims,), keepdim, dtype
    )


def _nuclear(
    input: Array, p: str, dims: tuple[int, ...], keepdim: bool, dtype: DType | None
) -> Array:
    name = "linalg.matrix_norm"
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {p} not supported.")
    if input.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor A must have at least 2 dimensions."
        )
    check_floating(input, name)
    if len(dims) != 2:
        raise RuntimeError(
            f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}"
        )
    a, b = (wrap_dim(d, input.ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"{name}: dims must be different. Got ({a}, {b})")
    x = cast(input, dtype)
    matrix = jnp.moveaxis(wide(x), (a, b), (-2, -1))
    out = jnp.sum(svdvals(matrix), axis=-1)
    if keepdim:
        out = jnp.expand_dims(out, (min(a, b), max(a, b)))
    return out.astype(x.real.dtype)


def _check_renorm(input: Any, p: Any, dim: int, maxnorm: Any) -> None:
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if not maxnorm >= 0:
        raise RuntimeError(
            f"renorm: expected maxnorm to be >= 0 but got {float(maxnorm):g}"
        )
    if len(input.shape) < 2:
        raise RuntimeError(
            "renorm: input needs at least 2 dimensions, got "
            f"{len(input.shape)} dimensions"
        )


@op(
    grad_fn="RenormBackward0",
    saves=("input",),
    inplace=True,
    typecheck=_check_renorm,
    out="exact",
    varies={"p": ORDER, "maxnorm": POSITIVE},
)
def renorm(input: Array, p: Any, dim: int, maxnorm: float) -> Array:
    """Slices along a dimension whose `p`-norm exceeds `maxnorm` scaled down to it."""
    kept = wrap_dim(dim, input.ndim)
    axes = tuple(d for d in range(input.ndim) if d != kept)
    w = wide(input)
    size = _vector_norm(w, p, axes, True, None)
    most = number(maxnorm, size.dtype)
    over = size > most
    factor = jnp.where(over, most / (jnp.where(over, size, 1) + 1e-7), 1)
    return (w * factor.astype(w.dtype)).astype(input.dtype)


def _distance(p: float) -> Any:
    """The p-norm of a difference; PyTorch's gradient is 0 wherever it has none."""
    special = _special(p)

    @jax.custom_jvp
    def norm(d: Array) -> Array:
        size = _magnitude(d)
        if special == 0:
            return jnp.sum(size != 0).astype(size.dtype)
        if special in (np.inf, -np.inf):
            return jnp.max(size) if p > 0 else jnp.min(size)
        if special == 1:
            return jnp.sum(size)
        if special == 2:
            return jnp.sqrt(jnp.sum(size * size))
        return jnp.sum(size**p) ** (1 / p)

    def jvp(primals: Any, tangents: Any) -> Any:
        (d,), (dd,) = primals, tangents
        result = norm(d)
        size = _magnitude(d)
        total = jnp.where(result == 0, 1, result)
        if special == 2:
            return result, jnp.sum(jnp.real(jnp.conj(d) * dd)) / total
        safe = jnp.where(size == 0, 1, size)
        along = jnp.real(jnp.conj(d / safe) * dd)  # 0 where d is
        if special == 0:
            slope = jnp.zeros_like(size)
        elif special in (np.inf, -np.inf):
            at = (size == result).astype(size.dtype)
            slope = at / jnp.sum(at)
        else:
            slope = jnp.where(size == 0, 0, (safe / total) ** (p - 1))
        return result, jnp.sum(slope * along)

    norm.defjvp(jvp)
    return norm


@op(
    promote=COMPLEX_TO_FLOAT,
    grad_fn="DistBackward0",
    typecheck=check_no_bools,
    saves=("input", "other", "result"),
    out=False,
    layout=lambda shape, operands: (),
    varies={"p": ORDER},
)
def dist(input: Array, other: Array, p: Any = 2) -> Array:
    """The p-norm of `input - other`."""
    shape = broadcast_shapes(input.shape, other.shape)
    if is_exact(input):
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{scalar_name(input)} instead."
        )
    check_order(p, "linalg.vector_norm")
    if is_known(p) and (p < 0 or p == math.inf) and 0 in shape:
        raise _no_identity(float(p))
    return _distance(float(p) if is_known(p) else p)(input - other)
