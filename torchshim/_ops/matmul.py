"""Products of vectors, matrices and batches of them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.host_dtypes import NAMES
from torchshim._core.op import Array, Scalar, op
from torchshim._core.precision import precision
from torchshim._core.promotion import DEFAULT, element, number
from torchshim._ops import _integer_products, _products, _shapes
from torchshim._ops._common import (
    HALF,
    broadcast_shapes,
)
from torchshim._ops._formats import first_layout
from torchshim._ops._products import (
    check_addend,
    check_batches,
    check_matrices,
    check_mv,
    check_mv_dtypes,
    check_mv_shapes,
    check_same,
    check_vectors,
    expanded,
    kind,
    refuse_bool,
)
from torchshim._ops._reducing import spread
from torchshim._ops.view_geometry import size_at

# For products within other operators, which `precision` says nothing of: accelerators
# would otherwise round float32 operands to fewer bits.
PRECISION = lax.Precision.HIGHEST

_BOTH_SAVED = {"input": ("other",), "other": ("input",)}


def product(a: Array, b: Array, *, batch: int = 0, b_dim: int = 0) -> Array:
    """Contracts the last dimension of `a` with a dimension of `b`, counted without the
    leading `batch` dimensions, which both have. Half types accumulate in float32,
    and the result is still float32 then."""
    shared = tuple(range(batch))
    dims = (((a.ndim - 1,), (batch + b_dim,)), (shared, shared))
    if _integer_products.pays(a, b, dims):
        return _integer_products.product(a, b, dims)
    wide = jnp.float32 if a.dtype in HALF else None
    return lax.dot_general(
        a, b, dims, precision=precision.matmul, preferred_element_type=wide
    )


def rounded(x: Array, like: Array) -> Array:
    """`x` in the element type of `like`."""
    return x if x.dtype == like.dtype else x.astype(like.dtype)


def scaled(x: Array, factor: Any, *, zero_ignores: bool = False) -> Array:
    """`factor * x`. `zero_ignores`: a zero factor hides NaN and infinity in `x`."""
    factor = element(factor, x.dtype)
    if isinstance(factor, (bool, int)) and factor == 1:
        return x
    if isinstance(factor, (bool, int, float, complex)):
        if zero_ignores and factor == 0:
            return jnp.zeros_like(x)
        return x * number(factor, x.dtype)
    factor = factor.astype(x.dtype)
    y = x * factor
    return jnp.where(factor == 0, jnp.zeros_like(y), y) if zero_ignores else y


# Products ----------------------------------------------------------------------------


def _matmul_node(input: Any, other: Any) -> str:
    a, b = len(getattr(input, "shape", (0, 0))), len(getattr(other, "shape", (0, 0)))
    match a, b:
        case 1, 1:
            return "DotBackward0"
        case 2, 1:
            return "MvBackward0"
        case 1, 2:
            return "SqueezeBackward4"
        case 2, 2:
            return "MmBackward0"
    if a >= 3 and b >= 3 and (a == 3 and b == 3 and input.shape[0] == 1 != b):
        return "UnsafeViewBackward0" if other.shape[0] == 1 else "CloneBackward0"
    return "CloneBackward0" if a == 2 else "UnsafeViewBackward0"


_OUT_OF_DOT = (
    "result dtype {have.scalar_name} does not match input dtype {want.scalar_name}"
)


def _matmul_out(input: Any, other: Any, *_: Any) -> str:
    return _OUT_OF_DOT if input.ndim == other.ndim == 1 else "exact"


@op(
    grad_fn=_matmul_node,
    saves=_BOTH_SAVED,
    typecheck=_products.check_matmul,
    out=_matmul_out,
    shape=_shapes.product,
)
def matmul(input: Array, other: Array) -> Array:
    """The matrix product, with vectors and broadcast batches."""
    if other.ndim <= 2:
        return rounded(product(input, other), input)
    if input.ndim <= 2:
        out = product(jnp.swapaxes(other, -1, -2), input, b_dim=input.ndim - 1)
        return rounded(out if input.ndim == 1 else jnp.swapaxes(out, -1, -2), input)
    batch = broadcast_shapes(input.shape[:-2], other.shape[:-2])
    out = product(
        spread(input, batch + input.shape[-2:]),
        spread(other, batch + other.shape[-2:]),
        batch=len(batch),
    )
    return rounded(out, input)


@op(
    grad_fn="MmBackward0",
    saves={"input": ("mat2",), "mat2": ("input",)},
    out="exact",
    shape=_shapes.product,
)
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices."""
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_matrices(input, mat2)
    return rounded(product(input, mat2), input)


@op(
    grad_fn="BmmBackward0",
    saves={"input": ("mat2",), "mat2": ("input",)},
    out="exact",
    shape=_shapes.batched,
)
def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices, pair by pair."""
    check_batches(input, mat2)
    return rounded(product(input, mat2, batch=1), input)


@op(
    grad_fn="MvBackward0",
    saves={"input": ("vec",), "vec": ("input",)},
    out=(
        "addmv input tensors must have the same dtype, but got "
        "{have.scalar_name}, {want.scalar_name}, and {want.scalar_name}"
    ),
)
def mv(input: Array, vec: Array) -> Array:
    """The product of a matrix and a vector."""
    size_at(input.shape, 0)
    check_mv(input, vec)
    return rounded(product(input, vec), input)


@op(
    grad_fn="DotBackward0",
    saves={"input": ("tensor",), "tensor": ("input",)},
    out=_OUT_OF_DOT,
)
def dot(input: Array, tensor: Array) -> Array:
    """The sum of the products of two vectors' elements."""
    check_vectors(input, tensor)
    refuse_bool(input, "dot")
    return rounded(product(input, tensor), input)


@op(grad_fn="VdotBackward0", saves=_BOTH_SAVED, out=_OUT_OF_DOT)
def vdot(input: Array, other: Array) -> Array:
    """`dot` with the first vector conjugated."""
    check_vectors(input, other)
    refuse_bool(input, "vdot" if jnp.iscomplexobj(input) else "dot")
    return rounded(product(jnp.conj(input), other), input)


@op(
    grad_fn="ViewBackward0",
    saves=_BOTH_SAVED,
    out=(
        "tensordot: Expected the output tensor to have dtype "
        "{want.scalar_name}, but got an output tensor with dtype "
        "{have.scalar_name}"
    ),
)
def inner(input: Array, other: Array) -> Array:
    """Products summed over the last dimension of both."""
    if input.dtype != other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got "
            f"shapes {list(input.shape)} and {list(other.shape)}"
        )
    if input.ndim == other.ndim == 1:
        refuse_bool(input, "dot")
    refuse_bool(input, "addmm_impl_cpu_", input.size, other.size)
    return rounded(product(input, other, b_dim=other.ndim - 1), input)


@op(
    method=False,
    differentiable=False,
    out=(
        "int_mm_out_cpu: Expected result dtype to be of type kInt but got "
        "{have.cpp_name}"
    ),
)
def _int_mm(input: Array, mat2: Array) -> Array:
    """The product of matrices of 8-bit integers, in 32 bits."""
    name = "int_mm_out_cpu"
    if input.ndim != 2:
        raise RuntimeError(
            f"{name}: Expected self to be of dimension 2 but got {input.ndim}"
        )
    columns = input.shape[1]
    size_at(mat2.shape, 1)  # what PyTorch asks for first, and its error
    if mat2.ndim != 2:
        raise RuntimeError(
            f"{name}: Expected mat2 to be of dimension 2 but got {mat2.ndim}"
        )
    if columns != mat2.shape[0]:
        raise RuntimeError(
            f"{name}: self.size(1) needs to match mat2.size(0) but got "
            f"{columns} and {mat2.shape[0]}"
        )
    if input.dtype not in (jnp.int8, jnp.uint8):
        raise RuntimeError(
            f"{name}: Expected self dtype to be int8 or uint8 but got "
            f"{NAMES[input.dtype.name][1]}"
        )
    if mat2.dtype != jnp.int8:
        raise RuntimeError(
            f"{name}: Expected mat2 dtype to be of type int8 but got "
            f"{NAMES[mat2.dtype.name][1]}"
        )
    return input.astype(jnp.int32) @ mat2.astype(jnp.int32)


# A product and a sum -----------------------------------------------------------------


def _addmm_saves(first: str, second: str) -> dict[str, tuple[str, ...]]:
    return {"input": (), first: (second,), second: (first,)}


# The gradient of what is added, as it arrives.
_PASSES: Any = {"passes": lambda input, a, b, beta, alpha: ("input",) * (beta == 1)}
_ADDS: Any = {
    "inplace": True,
    "out": "exact",
    "whole": ("input",),
    "fits": ("beta", "alpha"),
    **_PASSES,
}


def _sum(input: Array, out: Array, beta: Any, alpha: Any) -> Array:
    addend = rounded(input, out)
    total = scaled(addend, beta, zero_ignores=True) + scaled(out, alpha)
    return rounded(total, input)


@op(
    grad_fn="AddmmBackward0",
    saves=_addmm_saves("mat1", "mat2"),
    inplace_check=_products.addmm_in_place,
    **_ADDS,
)
def addmm(
    input: Array, mat1: Array, mat2: Array, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """`beta * input + alpha * mat1 @ mat2`."""
    addend = expanded(input, _products.check_addmm(input, mat1, mat2))
    _products.refuse_sum(mat1, mat2, mat1.shape[0], beta)
    return _sum(addend, product(mat1, mat2), beta, alpha)


@op(
    grad_fn="AddmvBackward0",
    saves=_addmm_saves("mat", "vec"),
    inplace_check=_products.addmv_in_place,
    **_ADDS,
)
def addmv(
    input: Array, mat: Array, vec: Array, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """`beta * input + alpha * mat @ vec`."""
    check_mv_shapes(mat, vec, input.shape)
    check_mv_dtypes(input, mat, vec)
    out = product(mat, vec)
    return _sum(spread(input, out.shape), out, beta, alpha)


@op(
    grad_fn="BaddbmmBackward0",
    saves=_addmm_saves("batch1", "batch2"),
    inplace_check=_products.baddbmm_in_place,
    **_ADDS,
)
def baddbmm(
    input: Array,
    batch1: Array,
    batch2: Array,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> Array:
    """`beta * input + alpha * batch1 @ batch2`, pair by pair."""
    addend = expanded(input, _products.check_baddbmm(input, batch1, batch2))
    check_batches(batch1, batch2, "baddbmm")
    if input.dtype != batch1.dtype:
        raise RuntimeError(
            "Input dtypes must be the same, got: input "
            f"{kind(input).cpp_name}, batch1: "
            f"{kind(batch1).cpp_name}, batch2: "
            f"{kind(batch2).cpp_name}"
        )
    _products.refuse_sum(batch1, batch2, batch1.shape[0] * batch1.shape[1], beta)
    return _sum(addend, product(batch1, batch2, batch=1), beta, alpha)


@op(
    grad_fn="AddbmmBackward0",
    saves=_addmm_saves("batch1", "batch2"),
    **_PASSES,
    inplace=True,
    whole=("input",),
    fits=("beta", "alpha"),
    out=(
        "self and mat2 must have the same dtype, but got "
        "{have.scalar_name} and {want.scalar_name}"
    ),
)
def addbmm(
    input: Array,
    batch1: Array,
    batch2: Array,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> Array:
    """`beta * input + alpha` times the sum of the batch's products."""
    addend = expanded(input, _products.check_addbmm(input, batch1, batch2))
    check_addend(input, batch2, "mat2")
    check_same(batch1, batch2)
    _products.refuse_sum(batch1, batch2, batch1.shape[0] * batch1.shape[1], beta)
    each = product(batch1, batch2, batch=1)
    out = each.sum(0, dtype=each.dtype)
    return _sum(addend, out, beta, alpha)


@op(
    promote=DEFAULT,
    grad_fn="AddrBackward0",
    saves=_addmm_saves("vec1", "vec2"),
    **_PASSES,
    typecheck=_products.check_addr,
    inplace=True,
    inplace_check=_products.addr_in_place,
    fits=("beta", "alpha"),
    layout=first_layout,
    whole=("input", "vec1", "vec2"),
)
def addr(
    input: Array, vec1: Array, vec2: Array, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    addend = spread(input, (vec1.shape[0], vec2.shape[0]))
    if input.dtype == jnp.bool_:
        both = vec1[:, None] & vec2
        return (addend & jnp.asarray(beta, bool)) | (both & jnp.asarray(alpha, bool))
    return scaled(addend, beta, zero_ignores=True) + scaled(vec1[:, None] * vec2, alpha)


# Layers ------------------------------------------------------------------------------


def _linear_node(input: Any, weight: Any, bias: Any = None) -> str:
    n, w = len(getattr(input, "shape", (0, 0))), len(getattr(weight, "shape", (0, 0)))
    if w == 1:
        return _matmul_node(input, weight) if bias is None else "AddBackward0"
    if bias is not None:
        if n and not _products.adds_by_addmm(input, bias):
            return "AddBackward0"
        return "AddmmBackward0" if n == 2 else "ViewBackward0"
    return {1: "SqueezeBackward4", 2: "MmBackward0"}.get(n, "UnsafeViewBackward0")


@op(
    grad_fn=_linear_node,
    saves={"input": ("weight",), "weight": ("input",), "bias": ()},
    edges=("bias", "input", "weight"),  # as of `addmm`
    typecheck=_products.check_linear,
    namespaces=("nn.functional",),
    method=False,
    out="exact",
    shape=_shapes.linear,
)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """`input @ weight.T + bias`."""
    b_dim = weight.ndim - 1
    out = product(input, weight, b_dim=b_dim)
    if bias is None:
        return rounded(out, input)
    apart = input.ndim != 2 and weight.ndim == 2 and bias.ndim > 1
    if apart and _products.is_fused(bias.shape):
        # Added to all rows in one matrix.
        rows = out.reshape(-1, weight.shape[0])
        return rounded((rows + rounded(bias, out)).reshape(out.shape), input)
    return rounded(out + rounded(bias, out), input)


def _bilinear_node(input1: Any, input2: Any, weight: Any, bias: Any = None) -> str:
    return "ViewBackward0" if bias is None else "AddBackward0"


@op(
    grad_fn=_bilinear_node,
    saves={
        "input1": ("input2", "weight"),
        "input2": ("input1", "weight"),
        "weight": ("input1", "input2"),
        "bias": (),
    },
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    typecheck=_products.check_bilinear,
    real_gradients="_trilinear",
)
def bilinear(
    input1: Array, input2: Array, weight: Array, bias: Array | None = None
) -> Array:
    """`input1 @ weight[k] @ input2 + bias[k]` for each output feature `k`."""
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and "
            f"{input2.ndim}"
        )
    for i in range(input1.ndim - 1):
        if input1.shape[i] != input2.shape[i]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {i}: got "
                f"{input1.shape[i]} and {input2.shape[i]}"
            )
    for i, x in ((1, input1), (2, input2)):
        if size_at(x.shape, x.ndim - 1) != size_at(weight.shape, i):
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got "
                f"{x.shape[-1]} but expected {weight.shape[i]}"
            )
    if bias is not None and size_at(bias.shape, 0) != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} "
            f"but expected {weight.shape[0]}"
        )
    out = jnp.einsum(
        "...i,oij,...j->...o", input1, weight, input2, precision=precision.matmul
    )
    if bias is None:
        return out
    broadcast_shapes(out.shape, bias.shape)
    return out + bias
