"""Products of groups of rows with a matrix each, as mixtures of experts take them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core import dtypes
from torchshim._core.linearize import is_forward
from torchshim._core.op import Array, op
from torchshim._core.precision import precision

_KINDS = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
# Rows of the columns, a group of the shared dimension each: (m, K) @ (K, n).
_SHARED = lax.RaggedDotDimensionNumbers((([1], [0]), ([], [])), [1], [])


def _check(input: Any, mat2: Any, offs: Any) -> None:
    for name, mat in (("mat_a", input), ("mat_b", mat2)):
        if mat.dtype not in _KINDS:
            raise RuntimeError(
                f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got "
                f"{mat.dtype.scalar_name}"
            )
    for name, mat in (("mat_a", input), ("mat_b", mat2)):
        if len(mat.shape) not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
    if input.shape[-1] != mat2.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    flat = len(input.shape) == 2, len(mat2.shape) == 2
    if any(flat) is (offs is None):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both "
            "matrices are 3d"
        )
    if offs is not None:
        if len(offs.shape) != 1:
            raise RuntimeError("offs has to be 1D")
        if offs.dtype is not dtypes.int32:
            raise RuntimeError("Offsets have to be int32")
        for mat in (input, mat2):
            if len(mat.shape) == 3 and mat.shape[0] != offs.shape[0]:
                raise RuntimeError("matrix batch sizes have to match")
    elif input.shape[0] != mat2.shape[0]:
        raise RuntimeError("batched dimension has to match")
    if input.dtype is not mat2.dtype:
        names = {dtypes.float32: "float", dtypes.float16: "c10::Half"}
        a, b = (names.get(mat.dtype, "c10::BFloat16") for mat in (input, mat2))
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {a} != {b}"
        )


@op(
    name="_grouped_products",
    public="_grouped_mm",
    grad_fn="GroupedMmBackward0",
    saves={"input": ("mat2", "offs"), "mat2": ("input", "offs")},
    differentiable=("input", "mat2"),
    namespaces=(),
    method=False,
    out=False,
    typecheck=_check,
)
def grouped_mm(input: Array, mat2: Array, offs: Array | None = None) -> Array:
    """The products of the groups, which end at `offs` in the matrix of two dimensions.

    What is behind the last of them is zero.
    """
    if is_forward():  # nor has PyTorch
        raise NotImplementedError("the derivative for tangents")
    if offs is None:
        return _multiplied(jnp.matmul, input, mat2)
    return _grouped(input, mat2, offs)


def _multiplied(function: Any, *operands: Any, **options: Any) -> Any:
    """A product, of half types with sums of float32."""
    made = function(
        *operands,
        precision=precision.matmul,
        preferred_element_type=jnp.float32,
        **options,
    )
    return made.astype(operands[0].dtype)


@jax.custom_vjp
def _grouped(a: Array, b: Array, offs: Array) -> Array:
    sizes = jnp.diff(offs, prepend=0).astype(jnp.int32)
    if a.ndim == 2 and b.ndim == 3:
        return _multiplied(lax.ragged_dot, a, b, sizes)
    if a.ndim == 3:
        turned = _multiplied(lax.ragged_dot, b.T, a.swapaxes(1, 2), sizes)
        return turned.T
    return _multiplied(
        lax.ragged_dot_general, a, b, sizes, ragged_dot_dimension_numbers=_SHARED
    )


def _forward(a: Array, b: Array, offs: Array) -> Any:
    return _grouped(a, b, offs), (a, b, offs)


def _backward(kept: Any, grad: Array) -> Any:
    # Of the same kind, so that these have derivatives, too: JAX has none of theirs.
    a, b, offs = kept
    return (
        _grouped(grad, b.swapaxes(-1, -2), offs),
        _grouped(a.swapaxes(-1, -2), grad, offs),
        None,
    )


_grouped.defvjp(_forward, _backward)
