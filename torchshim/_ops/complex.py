"""Complex numbers: their parts and conjugates, and pairs of real numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.op import Array, View, op
from torchshim._core.promotion import NO_OPMATH
from torchshim._ops._common import is_complex

Geometry = tuple[tuple[int, ...], tuple[int, ...], int]


def _real_of(x: Array) -> Array:
    return x.real if is_complex(x) else x


def _pairs(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Geometry:
    return (*shape, 2), (*(2 * s for s in strides), 1), 2 * offset


def _joined(x: Array) -> Array:
    return jax.lax.complex(x[..., 0], x[..., 1])


@op(
    view=View(_pairs, lambda base, new: _joined(_real_of(new)), retyped=True),
    method=False,
    grad_fn="ViewAsRealBackward0",
    saves=(),
)
def view_as_real(input: Array) -> Array:
    """Complex numbers as pairs of real ones, in the same memory."""
    if not is_complex(input):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return jnp.stack([input.real, input.imag], axis=-1)


def _unpaired(
    shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Geometry:
    if strides[-1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % 2 for s in strides[:-1]):
        raise RuntimeError(
            "Tensor must have a stride divisible by 2 for all but last dimension"
        )
    if offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return shape[:-1], tuple(s // 2 for s in strides[:-1]), offset // 2


@op(
    view=View(
        _unpaired, lambda base, new: jnp.stack([new.real, new.imag], -1), retyped=True
    ),
    method=False,
    grad_fn="ViewAsComplexBackward0",
    saves=(),
)
def view_as_complex(input: Array) -> Array:
    """Pairs of real numbers as complex ones, in the same memory."""
    if is_complex(input) or input.dtype not in (jnp.float32, jnp.float64, jnp.float16):
        name = dtypes.from_array_dtype(input.dtype).scalar_name
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, "
            f"but got a tensor of scalar type: {name}"
        )
    if input.dtype == jnp.float16:
        raise NotImplementedError(
            "view_as_complex(): complex32 tensors are not supported"
        )
    if input.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if input.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    return _joined(input)


def _same(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Geometry:
    return shape, strides, offset


@op(
    name="_conj",
    view=View(_same, lambda base, new: jnp.conj(new), bit="conj"),
    grad_fn="ConjBackward0",
    saves=(),
)
def conj(input: Array) -> Array:
    """Complex numbers conjugated, in the same memory."""
    if not is_complex(input):
        raise RuntimeError("_conj is only supported for complex tensors")
    return jnp.conj(input)


@op(
    name="_neg_view",
    view=View(_same, lambda base, new: jnp.negative(new), bit="neg"),
    grad_fn="NegViewBackward0",
    saves=(),
)
def neg_view(input: Array) -> Array:
    """Numbers negated, in the same memory."""
    if input.dtype == jnp.bool_:
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    return jnp.negative(input)


@op(
    name="conj_physical",
    promote=NO_OPMATH,
    grad_fn="ConjPhysicalBackward0",
    saves=(),
    inplace={"grad_fn": "ConjPhysicalBackward1"},
    out="same",
    unfollowed=True,
)
def conj_physical(input: Array) -> Array:
    """The conjugates of complex numbers, in memory of their own."""
    return jnp.conj(input)
