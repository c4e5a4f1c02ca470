"""What the operators of linear algebra share: PyTorch's checks and errors."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.meta import contiguous_strides
from torchshim._core.op import Array, op
from torchshim._ops._common import (
    HALF,
    broadcast_shapes,
    scalar_name,
)
from torchshim._ops.view_geometry import Ints, size_at

NO_INVERSE = (
    "The diagonal element {code} is zero, the inversion could not be completed because "
    "the input matrix is singular."
)


def _by_columns(shape: Ints) -> Ints:
    *batch, rows, n = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return *batch, n, rows


def columns(shape: Ints, operands: Any) -> Ints | None:
    """Strides of matrices by columns, as LAPACK writes them; row-major for vectors."""
    if len(shape) < max(len(operands[0][0]), 2):
        return None
    return _by_columns(shape)


def solutions(shape: Ints, A: Any, B: Any, left: bool, *_: Any) -> Ints | None:
    """By columns, but for those of equations from the right."""
    matrix = A[0]
    if len(shape) < max(len(matrix) - 1, 2):
        return None
    return _by_columns(shape) if left or len(shape) < len(matrix) else None


class LinAlgError(RuntimeError):
    """A matrix that does not allow it: `torch.linalg.LinAlgError`."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = "torch._C"

# A check reports one number: the element of the batch and the error code share it.
_CODES = 2**32


def castable_text(function: str, result: str = "result") -> str:
    """What is said of an `out=` that a function's result can't be cast to."""
    return (
        f"{function}: Expected {result} to be safely castable from "
        f"{{want.scalar_name}} dtype, but got {result} with dtype {{have.scalar_name}}"
    )


def _located(text: str) -> str:
    number, _, text = text.partition("|")
    element, code = divmod(int(number), _CODES)
    return text.replace("{element}", str(element)).replace("{code}", str(code))


class _LocatedLinAlgError(LinAlgError):
    def __new__(cls, text: str) -> Any:
        return LinAlgError(_located(text))


class _LocatedRuntimeError(RuntimeError):
    def __new__(cls, text: str) -> Any:
        return RuntimeError(_located(text))


def failed(
    info: Array, name: str, text: str, error: type[Exception] = LinAlgError
) -> list[Check]:
    """The check that no matrix of a batch has an error code; `{code}` may be shown."""
    if not info.size:
        return []
    flat = info.reshape(-1).astype(jnp.int64)
    element = jnp.argmax(flat != 0)
    place = "(Batch element {element}): " if info.ndim else ""
    located = _LocatedLinAlgError if error is LinAlgError else _LocatedRuntimeError
    value = element * _CODES + flat[element]
    shown = f"{{value}}|{name}: {place}{text}"
    return [Check((flat != 0).any(), located, shown, value)]


def linalg_op(grad_fn: Any, *, saves: Any = ("result",), **options: Any) -> Any:
    """Declares an operator of `torch.linalg`; all of them take `out=`."""
    options = {"namespaces": ("linalg",), "method": False, "out": "exact", **options}
    return op(grad_fn=grad_fn, saves=saves, **options)


def check_matrix(a: Array, name: str, which: str = "A") -> None:
    """Raises PyTorch's error for less than two dimensions."""
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {which} must have at least 2 dimensions."
        )


def check_square(a: Array, name: str) -> None:
    """Raises PyTorch's error for what is no batch of square matrices."""
    check_matrix(a, name)
    if a.shape[-1] != a.shape[-2]:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are "
            f"{a.shape[-2]} by {a.shape[-1]} matrices"
        )


def check_floating(a: Array, name: str, kernel: str | None = None) -> None:
    """Raises PyTorch's error for integers and half types."""
    if not jnp.issubdtype(a.dtype, jnp.inexact):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(a)}"
        )
    if a.dtype in HALF:
        if kernel is not None:
            refuse_kernel(a, kernel)
        raise RuntimeError(
            f"{name}: Low precision dtypes not supported. Got {scalar_name(a)}"
        )


def refuse_kernel(a: Array, kernel: str) -> None:
    """Raises PyTorch's error for the dtypes that LAPACK does not have."""
    if not jnp.issubdtype(a.dtype, jnp.inexact) or a.dtype in (
        jnp.float16,
        jnp.bfloat16,
    ):
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{scalar_name(a)}'"
        )


def adjoint(a: Array) -> Array:
    """The conjugate transpose of matrices."""
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def diagonal(a: Array) -> Array:
    """The diagonals of matrices."""
    return jnp.diagonal(a, axis1=-2, axis2=-1)


def first_zero(a: Array) -> Array:
    """The place, from 1, of the first zero on each diagonal; 0 where there is none."""
    zero = diagonal(a) == 0
    if not zero.shape[-1]:
        return jnp.zeros(zero.shape[:-1], jnp.int32)
    return jnp.where(zero.any(-1), jnp.argmax(zero, -1) + 1, 0).astype(jnp.int32)


def batched(a: Array, b: Array) -> tuple[Array, Array]:
    """Two batches of matrices, broadcast to one batch."""
    batch = broadcast_shapes(b.shape[:-2], a.shape[:-2])
    return (
        jnp.broadcast_to(a, batch + a.shape[-2:]),
        jnp.broadcast_to(b, batch + b.shape[-2:]),
    )


def check_same_dtype(name: str, A: Array, B: Array, which: str = "A") -> None:
    """Raises PyTorch's error for a right side of another dtype."""
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected {which} and B to have the same dtype, but found {which} "
            f"of type {scalar_name(A)} and B of type {scalar_name(B)} instead"
        )


def check_equation(name: str, A: Array, B: Array) -> None:
    """What the older functions say of the sides of an equation that do not fit."""
    if A.dtype != B.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{scalar_name(B)} and A of type {scalar_name(A)} instead."
        )
    rows, columns, height, width = (
        size_at(x.shape, d) for x in (A, B) for d in (-2, -1)
    )
    if rows != columns:
        raise RuntimeError(
            "A must be batches of square matrices, but they are "
            f"{rows} by {columns} matrices"
        )
    if rows != height:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {rows} by {rows} "
            f"but each b matrix is {height} by {width}"
        )


def check_fits(name: str, a: Array, b: Array, left: bool) -> None:
    """Raises PyTorch's error for a right side of the wrong size."""
    if a.shape[-1] != b.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} "
            f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})"
        )


# PyTorch's polynomial of degree 18 in five products, and the largest norms for it. See
# Bader, Blanes and Casas, "Computing the matrix exponential with an optimized Taylor
# polynomial approximation", https://doi.org/10.3390/math7121174.
_TAYLOR = (
    (
        0.0,
        -0.10036558103014462,
        -0.00802924648241157,
        -0.00089213849804573,
        0.0,
    ),
    (
        0.0,
        0.3978497494996451,
        1.3678377846041172,
        0.49828962252538267,
        -0.0006378981945947233,
    ),
    (
        -10.967639605296206,
        1.680158138789062,
        0.05717798464788655,
        -0.0069821012248805206,
        3.349750170860705e-05,
    ),
    (
        -0.09043168323908106,
        -0.06764045190713819,
        0.06759613017704597,
        0.029555257042931552,
        -1.391802575160607e-05,
    ),
    (
        0.0,
        0.0,
        -0.09233646193671186,
        -0.016936493900208172,
        -1.400867981820361e-05,
    ),
)
_LARGEST_NORM = {4: 3.010066362817634, 8: 1.090863719290036}
_MOST_SQUARINGS = 32


def exponential(A: Array) -> Array:
    """The exponential of each matrix of a batch, by scaling and squaring."""
    product = partial(jnp.matmul, precision=lax.Precision.HIGHEST)
    norms = lax.stop_gradient(jnp.abs(A).sum(-2).max(-1))
    largest = _LARGEST_NORM[norms.dtype.itemsize]
    times = jnp.ceil(jnp.log2(norms / largest))
    times = jnp.where(jnp.isfinite(norms), jnp.clip(times, 0, _MOST_SQUARINGS), 0)
    times = times.astype(jnp.int32)[:, None, None]
    A = A / jnp.ldexp(jnp.ones_like(norms)[:, None, None], times).astype(A.dtype)
    unit = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    square = product(A, A)
    cube = product(square, A)
    powers = (unit, A, square, cube, product(cube, cube))
    a, b, c, d, e = (
        sum(jnp.asarray(k, A.dtype) * p for k, p in zip(row, powers, strict=True) if k)
        for row in _TAYLOR
    )
    ninth = product(a, e) + d
    found = b + product(c + ninth, ninth)
    most = times.max()

    def squared(i: Any, found: Array) -> Array:
        def once(found: Array) -> Array:
            return jnp.where(i < times, product(found, found), found)

        return lax.cond(i < most, once, lambda found: found, found)

    return lax.fori_loop(0, _MOST_SQUARINGS, squared, found)
