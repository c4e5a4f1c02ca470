"""Products of vectors, matrices and batches of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.dtypes import dtype as DType
from torchshim._core.dtypes import from_array_dtype
from torchshim._core.op import Array, Scalar, op
from torchshim._core.precision import precision
from torchshim._core.promotion import DEFAULT
from torchshim._ops.view_geometry import wrap_dim

# For products within other operators, which `precision` says nothing of: accelerators
# would otherwise round float32 operands to fewer bits.
PRECISION = lax.Precision.HIGHEST

_HALF = (jnp.float16, jnp.bfloat16)
_BOTH_SAVED = {"input": ("other",), "other": ("input",)}


def scalar_name(x: Any) -> str:
    """PyTorch's name of an array's element type: Float, Long, …"""
    return from_array_dtype(x.dtype).scalar_name


def product(a: Array, b: Array, *, batch: int = 0, b_dim: int = 0) -> Array:
    """Contracts the last dimension of `a` with a dimension of `b`, counted without the
    leading `batch` dimensions, which both have. Half types accumulate in float32,
    and the result is still float32 then."""
    shared = tuple(range(batch))
    dims = (((a.ndim - 1,), (batch + b_dim,)), (shared, shared))
    wide = jnp.float32 if a.dtype in _HALF else None
    return lax.dot_general(
        a, b, dims, precision=precision.matmul, preferred_element_type=wide
    )


def rounded(x: Array, like: Array) -> Array:
    """`x` in the element type of `like`."""
    return x if x.dtype == like.dtype else x.astype(like.dtype)


def scaled(x: Array, factor: Any, *, zero_ignores: bool = False) -> Array:
    """`factor * x`. `zero_ignores`: a zero factor hides NaN and infinity in `x`."""
    if isinstance(factor, (bool, int)) and factor == 1:
        return x
    if isinstance(factor, (bool, int, float, complex)):
        if zero_ignores and factor == 0:
            return jnp.zeros_like(x)
        return x * jnp.asarray(factor, x.dtype)
    factor = factor.astype(x.dtype)
    y = x * factor
    return jnp.where(factor == 0, jnp.zeros_like(y), y) if zero_ignores else y


def expanded(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` broadcast to a shape, or PyTorch's error."""
    have = x.shape
    if len(have) > len(shape):
        raise RuntimeError(
            f"expand({scalar_name(x)}Tensor{{{list(have)}}}, size={list(shape)}): the "
            f"number of sizes provided ({len(shape)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(have)})"
        )
    for i in range(1, len(have) + 1):
        if have[-i] != shape[-i] and have[-i] != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-i]}) must match the "
                f"existing size ({have[-i]}) at non-singleton dimension "
                f"{len(shape) - i}.  Target sizes: {list(shape)}.  Tensor sizes: "
                f"{list(have)}"
            )
    return jnp.broadcast_to(x, shape)


def _kind(x: Any) -> DType:
    return from_array_dtype(x.dtype)


def check_matrices(a: Array, b: Array, rows: int | None = None) -> None:
    """Raises PyTorch's errors for a product of two matrices."""
    n, k = (rows, a.shape[-1]) if rows is not None else a.shape
    if k != b.shape[0]:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({n}x{k} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{_kind(a).cpp_name} != {_kind(b).cpp_name}"
        )
    _refuse_bool(a, "addmm_impl_cpu_")


def _refuse_bool(a: Array, kernel: str) -> None:
    if a.dtype == jnp.bool_:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def _check_vectors(a: Array, b: Array) -> None:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(
            f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "dot : expected both vectors to have same dtype, but found "
            f"{scalar_name(a)} and {scalar_name(b)}"
        )
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.size}] and src [{b.size}] "
            f"to have the same number of elements, but got {a.size} and {b.size} "
            "elements respectively"
        )


def _check_mv(mat: Array, vec: Array, given: int | None = None) -> None:
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            "vector + matrix @ vector expected, got "
            f"{1 if given is None else given}, {mat.ndim}, {vec.ndim}"
        )
    if mat.shape[1] != vec.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({mat.shape[0]}), mat "
            f"({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    if mat.dtype != vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{scalar_name(vec)}, {scalar_name(mat)}, and {scalar_name(vec)}"
        )


def _check_batches(a: Array, b: Array) -> None:
    for name, x in (("batch1", a), ("batch2", b)):
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(a)} but found {scalar_name(b)}"
        )
    _refuse_bool(a, "bmm")


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


@op(grad_fn=_matmul_node, saves=_BOTH_SAVED, out="exact")
def matmul(input: Array, other: Array) -> Array:
    """The matrix product, with vectors and broadcast batches."""
    if input.ndim == 0 or other.ndim == 0:
        raise RuntimeError(
            "both arguments to matmul need to be at least 1D, but they are "
            f"{input.ndim}D and {other.ndim}D"
        )
    if other.ndim == 1:
        if input.ndim == 1:
            _check_vectors(input, other)
            _refuse_bool(input, "dot")
        else:
            rows = math.prod(input.shape[:-1])
            _check_mv(jnp.empty((rows, input.shape[-1]), input.dtype), other)
        return rounded(product(input, other), input)
    if other.ndim == 2:
        check_matrices(input, other, math.prod(input.shape[:-1]))
        return rounded(product(input, other), input)
    if input.ndim <= 2:
        n = input.shape[0] if input.ndim == 2 else 1
        k, m = other.shape[-2:]
        rows = math.prod(other.shape[:-2]) * m
        if input.ndim == 1:
            _check_mv(jnp.empty((rows, k), other.dtype), input)
        elif k != input.shape[1]:
            raise RuntimeError(
                "mat1 and mat2 shapes cannot be multiplied "
                f"({rows}x{k} and {input.shape[1]}x{n})"
            )
        else:
            check_matrices(jnp.empty((rows, k), other.dtype), input.T)
        out = product(jnp.swapaxes(other, -1, -2), input, b_dim=input.ndim - 1)
        return rounded(out if input.ndim == 1 else jnp.swapaxes(out, -1, -2), input)
    from_, to = input.shape[:-2], other.shape[:-2]
    batch = broadcast_shapes(from_, to)
    count = math.prod(batch)
    a, b = input.shape[-2:], other.shape[-2:]
    if a[1] != b[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {a[1]}] but got: [{count}, {b[0]}]."
        )
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input)} but found {scalar_name(other)}"
        )
    _refuse_bool(input, "bmm")
    out = product(
        jnp.broadcast_to(input, batch + a),
        jnp.broadcast_to(other, batch + b),
        batch=len(batch),
    )
    return rounded(out, input)


def broadcast_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The common shape of two, or PyTorch's error."""
    n = max(len(a), len(b))
    out = [1] * n
    for i in reversed(range(n)):
        x = a[i - n + len(a)] if i >= n - len(a) else 1
        y = b[i - n + len(b)] if i >= n - len(b) else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(
                f"The size of tensor a ({x}) must match the size of tensor b ({y}) at "
                f"non-singleton dimension {i}"
            )
        out[i] = y if x == 1 else x
    return tuple(out)


@op(
    grad_fn="MmBackward0",
    saves={"input": ("mat2",), "mat2": ("input",)},
    out="exact",
)
def mm(input: Array, mat2: Array) -> Array:
    """The product of two matrices."""
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_matrices(input, mat2)
    return rounded(product(input, mat2), input)


@op(grad_fn="BmmBackward0", saves={"input": ("mat2",), "mat2": ("input",)}, out="exact")
def bmm(input: Array, mat2: Array) -> Array:
    """The products of two batches of matrices, pair by pair."""
    _check_batches(input, mat2)
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
    _check_mv(input, vec)
    return rounded(product(input, vec), input)


_OUT_OF_DOT = (
    "result dtype {have.scalar_name} does not match input dtype {want.scalar_name}"
)


@op(
    grad_fn="DotBackward0",
    saves={"input": ("tensor",), "tensor": ("input",)},
    out=_OUT_OF_DOT,
)
def dot(input: Array, tensor: Array) -> Array:
    """The sum of the products of two vectors' elements."""
    _check_vectors(input, tensor)
    _refuse_bool(input, "dot")
    return rounded(product(input, tensor), input)


@op(grad_fn="VdotBackward0", saves=_BOTH_SAVED, out=_OUT_OF_DOT)
def vdot(input: Array, other: Array) -> Array:
    """`dot` with the first vector conjugated."""
    _check_vectors(input, other)
    _refuse_bool(input, "vdot" if jnp.iscomplexobj(input) else "dot")
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
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got "
            f"shapes {list(input.shape)} and {list(other.shape)}"
        )
    return rounded(product(input, other, b_dim=other.ndim - 1), input)


# A product and a sum -----------------------------------------------------------------


def _addmm_saves(first: str, second: str) -> dict[str, tuple[str, ...]]:
    return {"input": (), first: (second,), second: (first,)}


# The gradient of what is added, as it arrives.
_PASSES: Any = {"passes": lambda input, a, b, beta, alpha: ("input",) * (beta == 1)}
_ADDS: Any = {"inplace": True, "out": "exact", "whole": ("input",), **_PASSES}


def _check_addend(input: Array, other: Array, name: str) -> None:
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"self and {name} must have the same dtype, but got "
            f"{scalar_name(input)} and {scalar_name(other)}"
        )


def _sum(input: Array, out: Array, beta: Any, alpha: Any) -> Array:
    addend = rounded(input, out)
    total = scaled(addend, beta, zero_ignores=True) + scaled(out, alpha)
    return rounded(total, input)


@op(grad_fn="AddmmBackward0", saves=_addmm_saves("mat1", "mat2"), **_ADDS)
def addmm(
    input: Array, mat1: Array, mat2: Array, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """`beta * input + alpha * mat1 @ mat2`."""
    for name, x in (("mat1", mat1), ("mat2", mat2)):
        if x.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {x.ndim}-D tensor")
    if mat1.shape[1] != mat2.shape[0]:
        check_matrices(mat1, mat2)
    addend = expanded(input, (mat1.shape[0], mat2.shape[1]))
    _check_addend(input, mat2, "mat2")
    check_same(mat1, mat2)
    return _sum(addend, product(mat1, mat2), beta, alpha)


def check_same(mat1: Array, mat2: Array) -> None:
    """Raises PyTorch's error for two matrices of different types."""
    if mat1.dtype != mat2.dtype:
        raise RuntimeError(
            "mat1 and mat2 must have the same dtype, but got "
            f"{scalar_name(mat1)} and {scalar_name(mat2)}"
        )
    _refuse_bool(mat1, "addmm_impl_cpu_")


@op(grad_fn="AddmvBackward0", saves=_addmm_saves("mat", "vec"), **_ADDS)
def addmv(
    input: Array, mat: Array, vec: Array, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """`beta * input + alpha * mat @ vec`."""
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        _check_mv(jnp.empty((1,)) if input.ndim > 1 else mat, vec, input.ndim)
    if mat.shape[1] != vec.shape[0] or (input.size not in (1, mat.shape[0])):
        raise RuntimeError(
            f"size mismatch, got input ({input.size}), mat "
            f"({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    if not input.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{scalar_name(input)}, {scalar_name(mat)}, and {scalar_name(vec)}"
        )
    out = product(mat, vec)
    return _sum(jnp.broadcast_to(input, out.shape), out, beta, alpha)


@op(grad_fn="BaddbmmBackward0", saves=_addmm_saves("batch1", "batch2"), **_ADDS)
def baddbmm(
    input: Array,
    batch1: Array,
    batch2: Array,
    *,
    beta: Scalar = 1,
    alpha: Scalar = 1,
) -> Array:
    """`beta * input + alpha * batch1 @ batch2`, pair by pair."""
    addend = input
    if batch1.ndim >= 2 and batch2.ndim < 3:
        # PyTorch asks for the sizes of the result first.
        wrap_dim(2, batch2.ndim)
    if batch1.ndim >= 2 and batch2.ndim == 3:
        shape = (batch1.shape[0], batch1.shape[1], batch2.shape[2])
        addend = expanded(input, shape)
    _check_batches(batch1, batch2)
    if input.dtype != batch1.dtype:
        raise RuntimeError(
            "Input dtypes must be the same, got: input "
            f"{_kind(input).cpp_name}, batch1: "
            f"{_kind(batch1).cpp_name}, batch2: "
            f"{_kind(batch2).cpp_name}"
        )
    return _sum(addend, product(batch1, batch2, batch=1), beta, alpha)


@op(
    grad_fn="AddbmmBackward0",
    saves=_addmm_saves("batch1", "batch2"),
    **_PASSES,
    inplace=True,
    whole=("input",),
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
    addend = input
    if batch1.ndim >= 2 and batch2.ndim == 3:
        addend = expanded(input, (batch1.shape[1], batch2.shape[2]))
    for name, x in (("batch1", batch1), ("batch2", batch2)):
        if x.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    if batch1.shape[0] != batch2.shape[0]:
        raise RuntimeError(
            "batch1 and batch2 must have same number of batches, got "
            f"{batch1.shape[0]} and {batch2.shape[0]}"
        )
    if batch1.shape[2] != batch2.shape[1]:
        a, b = batch1.shape, batch2.shape
        raise RuntimeError(
            f"Incompatible matrix sizes for bmm ({a[1]}x{a[2]} and {b[1]}x{b[2]})"
        )
    _check_addend(input, batch2, "mat2")
    check_same(batch1, batch2)
    out = product(batch1, batch2, batch=1).sum(0)
    return _sum(addend, out, beta, alpha)


@op(
    promote=DEFAULT,
    grad_fn="AddrBackward0",
    saves=_addmm_saves("vec1", "vec2"),
    **_PASSES,
    inplace=True,
    layout=lambda shape, operands: None,
    whole=("input", "vec1", "vec2"),
)
def addr(
    input: Array, vec1: Array, vec2: Array, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Array:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    for name, x in (("vec1", vec1), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(
                f"addr: Expected 1-D argument {name}, but got {x.ndim}-D"
            )
    addend = expanded(input, (vec1.shape[0], vec2.shape[0]))
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
        return "AddmmBackward0" if n == 2 else "ViewBackward0"
    return {1: "SqueezeBackward4", 2: "MmBackward0"}.get(n, "UnsafeViewBackward0")


@op(
    grad_fn=_linear_node,
    saves={"input": ("weight",), "weight": ("input",), "bias": ()},
    edges=("bias", "input", "weight"),  # as of `addmm`
    namespaces=("nn.functional",),
    method=False,
    out="exact",
)
def linear(input: Array, weight: Array, bias: Array | None = None) -> Array:
    """`input @ weight.T + bias`."""
    if input.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            "both arguments to linear need to be at least 1D, but they are "
            f"{input.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D"
        )
    if weight.ndim == 1:
        if bias is not None:
            raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
        return matmul(input, weight)
    rows = math.prod(input.shape[:-1])
    columns, k = weight.shape
    if input.shape[-1] != k:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({rows}x{input.shape[-1]} and {k}x{columns})"
        )
    if bias is None:
        check_matrices(input, weight.T, rows)
        return rounded(product(input, weight, b_dim=1), input)
    expanded(bias, (rows, columns))
    _check_addend(bias, weight, "mat2")
    check_same(input, weight)
    out = product(input, weight, b_dim=1)
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
        if x.shape[-1] != weight.shape[i]:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got "
                f"{x.shape[-1]} but expected {weight.shape[i]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} "
            f"but expected {weight.shape[0]}"
        )
    out = jnp.einsum(
        "...i,oij,...j->...o", input1, weight, input2, precision=precision.matmul
    )
    return out if bias is None else out + bias
