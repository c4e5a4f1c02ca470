"""Tensors made from sizes and numbers.

The public functions stand in `_functions/creation.py`: these operators are what they
record. `device` is where the results are (`Call.device`); the functions do not use it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core.op import Array, Scalar, op
from torchshim._core.promotion import cast, converted
from torchshim._ops import _trigonometric
from torchshim._ops._common import channels_last_layout, quotient
from torchshim._ops._shapes import same

_NUMBERS = (bool, int, float, complex)


@op(name="full", namespaces=(), differentiable=False, shape=same)
def full(size: tuple[int, ...], value: Scalar, dtype: Any, device: Any) -> Array:
    """A tensor filled with one number."""
    if isinstance(value, _NUMBERS):
        value = constant(value, dtype.np)
    return jnp.broadcast_to(cast(value, dtype.np), size)


def constant(value: Any, np_dtype: np.dtype[Any]) -> np.ndarray:
    """A Python number as a 0-dim array; integers modulo 2**bits, as C converts."""
    if np_dtype.kind in "iu" and not isinstance(value, bool):
        wide = np.array(int(value) & (2**64 - 1), np.uint64)
        return wide.astype(np_dtype)
    with np.errstate(over="ignore"):  # what is too large for half types is infinite
        return np.array(value).astype(np_dtype)


@op(namespaces=(), method=False, differentiable=False, layout="preserve", out=False)
def full_like(input: Array, value: Scalar, dtype: Any) -> Array:
    """A tensor filled with one number, with the sizes and memory order of another."""
    return full(input.shape, value, dtype, None)


@op(
    namespaces=(),
    method=False,
    differentiable=False,
    layout=channels_last_layout,
    out=False,
)
def full_like_channels_last(input: Array, value: Scalar, dtype: Any) -> Array:
    """A tensor filled with one number, the channels innermost in memory."""
    return full(input.shape, value, dtype, None)


@op(namespaces=(), method=False, differentiable=False, layout="preserve", out=False)
def ones_like(input: Array) -> Array:
    """Ones: where a gradient starts."""
    return jnp.ones_like(input)


# Vector registers of AVX2 hold so many elements; PyTorch fills two at a time.
_LANES = {"float32": 8, "float64": 4, "float16": 16, "bfloat16": 16}


def sequence(xp: Any, length: int, start: Any, step: Any, np_dtype: Any) -> Any:
    """`start`, `start + step`, … with the roundings of PyTorch's vectorized kernel.

    `xp` is numpy or jax.numpy.
    """
    if np_dtype.kind in "iu":
        wide = np.dtype(np.int64)
        if isinstance(start, _NUMBERS) and isinstance(step, _NUMBERS):
            start, step = constant(start, wide), constant(step, wide)
        return (start + step * xp.arange(length, dtype=wide)).astype(np_dtype)
    i = np.arange(length)
    lanes = _LANES[np_dtype.name]
    first = i // lanes * lanes
    alone = i >= length // (2 * lanes) * (2 * lanes)
    first = np.where(alone, i, first)
    at = xp.asarray(start + step * first.astype(np.float64)).astype(np_dtype)
    if alone.all():
        return at
    return (at.astype(np.float64) + step * (i - first)).astype(np_dtype)


@op(
    name="arange",
    namespaces=(),
    differentiable=False,
    shape=lambda length, *rest: (length,),
)
def arange(length: int, start: Scalar, step: Scalar, dtype: Any, device: Any) -> Array:
    """Numbers at equal distances, so many from `start` on."""
    whole = dtype.np.kind in "iu"
    if all(isinstance(v, _NUMBERS) for v in (start, step)):
        xp = jnp if whole else np
        return jnp.asarray(sequence(xp, length, start, step, dtype.np))
    wide = jnp.int64 if whole else jnp.float64
    start, step = jnp.asarray(start).astype(wide), jnp.asarray(step).astype(wide)
    return sequence(jnp, length, start, step, dtype.np)


def _plus(a: Any, b: Any, count: Any) -> Any:
    """`a + b * count`, as if rounded once: `b` in two parts with exact products."""
    high = b.astype(np.float32).astype(np.float64)
    product = high * count
    total = a + product
    back = total - a
    lost = (a - (total - back)) + (product - back)
    return total + (lost + (b - high) * count)


def spaced(xp: Any, start: Any, end: Any, steps: int, np_dtype: Any) -> Any:
    """`steps` numbers from `start` to `end`, each half counted from its own end."""
    if steps == 0:
        return xp.zeros(0, np_dtype)
    if steps == 1:
        return xp.asarray(start).astype(np_dtype).reshape(1)
    i = np.arange(steps)
    over = np.true_divide if xp is np else quotient
    if np_dtype.kind in "iu":
        start, end = (xp.asarray(v).astype(np.int64) for v in (start, end))
        start, end = start.astype(np.float64), end.astype(np.float64)
        step = over(end - start, steps - 1)
        up, down = _plus(start, step, i), _plus(end, -step, steps - 1 - i)
        return xp.where(i < steps // 2, up, down).astype(np.int64).astype(np_dtype)
    wide = np.complex128 if np_dtype.kind == "c" else np.float64
    start, end = (xp.asarray(v).astype(np_dtype) for v in (start, end))
    step = over(end - start, xp.asarray(steps - 1).astype(np_dtype)).astype(np_dtype)
    step, start, end = step.astype(wide), start.astype(wide), end.astype(wide)
    values = xp.where(i < steps // 2, start + step * i, end - step * (steps - 1 - i))
    return values.astype(np_dtype)


@op(name="linspace", namespaces=(), differentiable=False)
def linspace(start: Scalar, end: Scalar, steps: int, dtype: Any, device: Any) -> Array:
    """Numbers at equal distances, both ends included."""
    if all(isinstance(v, _NUMBERS) for v in (start, end)):
        return jnp.asarray(spaced(np, start, end, steps, dtype.np))
    return spaced(jnp, start, end, steps, dtype.np)


@op(name="logspace", namespaces=(), differentiable=False)
def logspace(
    start: Scalar, end: Scalar, steps: int, base: Scalar, dtype: Any, device: Any
) -> Array:
    """Powers of `base` whose exponents lie at equal distances."""
    return powers(jnp, start, end, steps, base, dtype.np)


def powers(xp: Any, start: Any, end: Any, steps: int, base: Any, np_dtype: Any) -> Any:
    """`base` to the power of `steps` numbers from `start` to `end`."""
    wide = np.complex128 if np_dtype.kind == "c" else np.float64
    i = np.arange(steps)
    if steps != 1:  # PyTorch casts the ends first, but that of one alone
        start, end = (xp.asarray(v).astype(np_dtype) for v in (start, end))
    start, end, base = (xp.asarray(v).astype(wide) for v in (start, end, base))
    step = (np.true_divide if xp is np else quotient)(end - start, max(steps - 1, 1))
    exponents = xp.where(
        (i < steps // 2) | (steps == 1), start + step * i, end - step * (steps - 1 - i)
    )
    return xp.power(base, exponents).astype(np_dtype)


@op(name="eye", namespaces=(), differentiable=False)
def eye(n: int, m: int, dtype: Any, device: Any) -> Array:
    """Ones on the diagonal, zeros elsewhere."""
    return converted(jnp.eye(n, m, dtype=bool), dtype.np)


@op(namespaces=(), differentiable=False)
def triangle_indices(
    row: int, col: int, offset: int, upper: bool, dtype: Any, device: Any
) -> Array:
    """Rows and columns of the elements of a triangle, as a tensor with two rows."""
    return jnp.asarray(triangle(row, col, offset, upper, dtype.np))


def triangle(row: int, col: int, offset: int, upper: bool, np_dtype: Any) -> np.ndarray:
    """The indices (2, n) of a triangle, row by row."""
    i, j = np.indices((row, col))
    chosen = j - i >= offset if upper else j - i <= offset
    return np.stack([i[chosen], j[chosen]]).astype(np_dtype)


_SCALAR_NAMES = {
    "float16": "Half", "float32": "Float", "float64": "Double", "int64": "Long",
    "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "bfloat16": "BFloat16", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip


def _check_parts(function: str, one: Array, two: Array) -> None:
    """Raises unless both are of the same real floating-point dtype."""
    kinds = [np.dtype(a.dtype).name for a in (one, two)]
    a, b = (_SCALAR_NAMES.get(k, k) for k in kinds)
    if any(k not in ("float16", "float32", "float64") for k in kinds):
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{a} and {b}"
        )
    if a != b:
        raise RuntimeError(
            f"Expected object of scalar type {a} but got scalar type {b} for second "
            "argument"
        )
    if kinds[0] == "float16":
        if function == "polar":
            raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
        raise NotImplementedError(f"{function}(): complex32 tensors are not supported")


_OUT_OF_PARTS = (
    "Expected object of scalar type {want.scalar_name} but got scalar "
    "type {have.scalar_name} for argument 'out'"
)


@op(
    grad_fn="ComplexBackward0",
    saves={"real": ("real",), "imag": ("imag",)},
    curved=False,
    method=False,
    layout="preserve",
    out=_OUT_OF_PARTS,
)
def complex(real: Array, imag: Array) -> Array:
    """Complex numbers from their real and imaginary parts."""
    _check_parts("complex", real, imag)
    return jax.lax.complex(*jnp.broadcast_arrays(real, imag))


@op(
    grad_fn="PolarBackward0",
    saves=("result",),
    method=False,
    layout="preserve",
    out=_OUT_OF_PARTS,
)
def polar(abs: Array, angle: Array) -> Array:
    """Complex numbers from their magnitude and angle."""
    _check_parts("polar", abs, angle)
    cosine, sine = _trigonometric.cos(angle), _trigonometric.sin(angle)
    return jax.lax.complex(abs * cosine, abs * sine)
