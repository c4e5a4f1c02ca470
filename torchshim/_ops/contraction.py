"""General products: `einsum`, `tensordot`, chains and powers, all pairs of elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.host_dtypes import NAMES
from torchshim._core.meta import contiguous_strides, elementwise_strides
from torchshim._core.op import Arranged, Array, Arrays, op
from torchshim._core.precision import precision
from torchshim._core.promotion import DEFAULT
from torchshim._ops import _integer_products
from torchshim._ops._common import (
    BOOL,
    HALF,
    is_integral,
    refuse,
    scalar_name,
)
from torchshim._ops._linalg import castable_text, columns
from torchshim._ops._products import refuse_bool
from torchshim._ops.linalg import check_square, inverse_checks
from torchshim._ops.matmul import matmul, rounded
from torchshim._ops.view_geometry import viewed, wrap_dim, wrap_dims

# General contractions ----------------------------------------------------------------


@op(
    grad_fn="ViewBackward0",
    saves={"input": ("other",), "other": ("input",)},
    name="_tensordot",
    namespaces=(),
    method=False,
    out=False,
)
def _tensordot(
    input: Array,
    other: Array,
    dims_self: tuple[int, ...],
    dims_other: tuple[int, ...],
) -> Array:
    """Products summed over pairs of dimensions."""
    if input.dtype != other.dtype:
        raise RuntimeError("both inputs should have same dtype")
    wide = jnp.float32 if input.dtype in HALF else None
    # Pairs are looked at one by one; whether a dimension is there twice comes after.
    # One of size 1 broadcasts against its partner.
    for x, y in zip(dims_self, dims_other, strict=True):
        wrap_dim(x, input.ndim)
        wrap_dim(y, other.ndim)
        if input.shape[x] != other.shape[y]:
            if other.shape[y] == 1:
                input = input.sum(x, keepdims=True, dtype=input.dtype)
            elif input.shape[x] == 1:
                other = other.sum(y, keepdims=True, dtype=other.dtype)
            else:
                raise RuntimeError(
                    "contracted dimensions need to match, but first has size "
                    f"{input.shape[x]} in dim {x} and second has size "
                    f"{other.shape[y]} in dim {y}"
                )
    at = (wrap_dims(dims_self, input.ndim), wrap_dims(dims_other, other.ndim))
    refuse_bool(input, "addmm_impl_cpu_", input.size, other.size)
    dims = at, ((), ())
    if _integer_products.pays(input, other, dims):
        return _integer_products.product(input, other, dims)
    out = lax.dot_general(
        input,
        other,
        dims,
        precision=precision.matmul,
        preferred_element_type=wide,
    )
    return rounded(out, input)


def _einsum_layout(shape: tuple[int, ...], equation: str, operands: Any) -> Any:
    """Strides of what a batch of matrix products gives, its dimensions reordered.

    The labels of both operands are the batch's, then come those of the first operand
    and of the second, or the other way round where that is the order of the result.
    """
    if len(operands) != 2:
        return None
    left, right = equation.split("->")
    held = [
        {c for c, n in zip(term, x[0], strict=True) if n != 1}
        for term, x in zip(left.split(","), operands, strict=True)
    ]
    first, second = held
    if not (first & second) - set(right):
        return None
    shared = [c for c in right if c in first and c in second]
    rows = [c for c in right if c in first - second]
    others = [c for c in right if c not in first]
    if rows and others and right.index(rows[0]) > right.index(others[-1]):
        rows, others = others, rows
    sizes = dict(zip(right, shape, strict=True))
    order = [*shared, *rows, *others]
    strides = dict(
        zip(order, contiguous_strides([sizes[c] for c in order]), strict=True)
    )
    return tuple(strides[c] for c in right)


@op(
    grad_fn="ViewBackward0",
    saves=("operands", "computed"),
    name="_einsum",
    namespaces=(),
    method=False,
    out=False,
    layout=Arranged(_einsum_layout),
)
def _einsum(equation: str, operands: Arrays) -> Array:
    """Einstein's summation of several; the equation is checked and explicit."""
    left, right = equation.split("->")
    terms = left.split(",")
    sizes: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for letter, size in zip(term, x.shape, strict=True):
            if sizes.get(letter, 1) == 1:
                sizes[letter] = size
    kinds = {x.dtype for x in operands}
    if len(kinds) > 1:
        first, other = (
            operands[0],
            next(x for x in operands if x.dtype != operands[0].dtype),
        )
        raise RuntimeError(
            f"expected scalar type {scalar_name(first)} but found {scalar_name(other)}"
        )
    # A dimension of size 1 broadcasts: it takes no part in the sum.
    arrays, kept = [], []
    for term, x in zip(terms, operands, strict=True):
        drop = tuple(
            i
            for i, letter in enumerate(term)
            if x.shape[i] == 1 and (sizes[letter] != 1 or letter not in right)
        )
        arrays.append(x.reshape([s for i, s in enumerate(x.shape) if i not in drop]))
        kept.append("".join(c for i, c in enumerate(term) if i not in drop))
    if is_integral(operands[0]):
        return _integer_einsum(kept, right, arrays)
    wide = jnp.float32 if operands[0].dtype in HALF else None
    out = jnp.einsum(
        f"{','.join(kept)}->{right}",
        *arrays,
        precision=precision.matmul,
        preferred_element_type=wide,
    )
    return rounded(out, operands[0])


def _integer_einsum(terms: list[str], right: str, arrays: list[Array]) -> Array:
    """`einsum` of integers, pair by pair: PyTorch's sums of them are int64."""
    out, done = jnp.empty(0), ""
    for i, (term, x) in enumerate(zip(terms, arrays, strict=True)):
        others = "".join([*terms[:i], right, *terms[i + 1 :]])
        shared = "".join(c for c in dict.fromkeys(term) if c in others)
        if set(term) - set(shared):
            x = jnp.einsum(f"{term}->{shared}", x.astype(jnp.int64))
        elif shared != term:
            x = jnp.einsum(f"{term}->{shared}", x)
        if not i:
            out, done = x, shared
            continue
        later = right + "".join(terms[i + 1 :])
        kept = "".join(c for c in dict.fromkeys(done + shared) if c in later)
        if set(done + shared) - set(kept):
            if out.dtype != x.dtype:
                raise RuntimeError(
                    f"expected scalar type {scalar_name(out)} but found "
                    f"{scalar_name(x)}"
                )
            if out.size and x.size:
                refuse("bmm", x, BOOL)
        kind = jnp.promote_types(out.dtype, x.dtype)
        out = jnp.einsum(
            f"{done},{shared}->{kept}", out, x, preferred_element_type=kind
        )
        done = kept
    return jnp.einsum(f"{done}->{right}", out)


@op(grad_fn="ViewBackward0", name="_multi_dot", namespaces=(), out=False)
def _multi_dot(tensors: Arrays) -> Array:
    """A chain of matrix products in the order that needs fewest multiplications."""
    if len(tensors) < 2:
        raise RuntimeError(
            f"multi_dot(): expected at least 2 tensors but got {len(tensors)}"
        )
    last = len(tensors) - 1
    for i, x in enumerate(tensors):
        if i in (0, last):
            if x.ndim not in (1, 2):
                place = "first" if i == 0 else "last"
                raise RuntimeError(
                    f"multi_dot(): the {place} tensor must be 1D or 2D but got "
                    f"{x.ndim}D"
                )
        elif x.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D")
    for i, x in enumerate(tensors):
        if x.dtype != tensors[0].dtype:
            first, other = (NAMES[y.dtype.name][1] for y in (tensors[0], x))
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{first} and tensor {i} {other}"
            )
    for i, x in enumerate(tensors):
        if i and tensors[i - 1].shape[-1] != x.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i - 1} and {i} with shapes "
                f"{list(tensors[i - 1].shape)} and {list(x.shape)} cannot be multiplied"
            )
    refuse_bool(tensors[0], "addmm_impl_cpu_", *(n for x in tensors for n in x.shape))
    if all(x.ndim == 2 for x in tensors) or len(tensors) > 2:
        return jnp.linalg.multi_dot(list(tensors), precision=precision.matmul)
    return matmul(tensors[0], tensors[1])


def _power_node(input: Any, n: int) -> str:
    if n in (0, 1):
        return "CloneBackward0" if n else "CopyBackwards"
    if n == -1:
        return "LinalgInvExBackward0"
    return "MmBackward0" if len(input.shape) == 2 else "UnsafeViewBackward0"


def _power_layout(shape: tuple[int, ...], input: Any, n: int) -> Any:
    """Inverses lie by columns, as LAPACK writes them."""
    return columns(shape, [input]) if n == -1 else None


def _power_checks(input: Array, n: int) -> list[Check]:
    return inverse_checks(input) if n < 0 else []


@op(
    grad_fn=_power_node,
    saves=("input", "computed"),
    namespaces=("torch", "linalg"),
    checks=_power_checks,
    out="exact",
    castable=castable_text("matrix_power"),
    layout=Arranged(_power_layout),
)
def matrix_power(input: Array, n: int) -> Array:
    """A square matrix times itself; of its inverse if `n` is negative."""
    check_square(input, "linalg.matrix_power")
    if n == 0:
        eye = jnp.eye(input.shape[-1], dtype=input.dtype)
        return jnp.broadcast_to(eye, input.shape)
    if n < 0:
        if not jnp.issubdtype(input.dtype, jnp.inexact):
            raise RuntimeError(
                "linalg.inv: Expected a floating point or complex tensor as input. Got "
                f"{scalar_name(input)}"
            )
        input, n = jnp.linalg.inv(input), -n
    out: Array | None = None
    square = input
    while True:
        if n & 1:
            out = (
                square
                if out is None
                else jnp.matmul(out, square, precision=precision.matmul)
            )
        n >>= 1
        if not n:
            assert out is not None
            return out
        square = jnp.matmul(square, square, precision=precision.matmul)


# All pairs of elements ---------------------------------------------------------------


@op(
    promote=DEFAULT,
    grad_fn="MulBackward0",
    saves={"input": ("vec2",), "vec2": ("input",)},
    layout=lambda shape, operands: None,
    aliases=("ger",),
    whole=("input", "vec2"),
)
def outer(input: Array, vec2: Array) -> Array:
    """Every product of an element of one vector and an element of the other."""
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(
                f"outer: Expected 1-D argument {name}, but got {x.ndim}-D"
            )
    return input[:, None] * vec2


def _kron_layout(shape: tuple[int, ...], operands: Sequence[Any]) -> Any:
    """That of a view of the product of both, spread over twice as many dimensions."""
    spread: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for which, (size, strides) in enumerate(operands):
        padded = (1,) * (len(shape) - len(size)) + size
        wide = tuple(n for s in padded for n in ((1, s) if which else (s, 1)))
        spread.append((wide, viewed(size, strides, 0, wide)[1]))
    pairs = zip(*(size for size, _ in spread), strict=True)
    product = tuple(max(pair) if 0 not in pair else 0 for pair in pairs)
    return viewed(product, elementwise_strides(product, spread), 0, shape)[1]


@op(
    promote=DEFAULT,
    grad_fn="UnsafeViewBackward0",
    saves=("intermediate",),
    layout=_kron_layout,
    whole=("input", "other"),
)
def kron(input: Array, other: Array) -> Array:
    """The Kronecker product."""
    if input.dtype == jnp.bool_:
        return jnp.kron(input.astype(jnp.uint8), other.astype(jnp.uint8)).astype(bool)
    return jnp.kron(input, other)
