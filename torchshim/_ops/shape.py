"""Operators that copy elements into another arrangement."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.meta import contiguous_strides, elementwise_strides
from torchshim._core.op import Arranged, Array, Arrays, Shape, op
from torchshim._core.promotion import NO_OPMATH
from torchshim._ops import _shapes
from torchshim._ops._formats import joining_layout
from torchshim._ops.view_geometry import (
    Ints,
    diagonal_length,
    view_strides,
    wrap_dim,
    wrap_dims,
)


def contiguous_layout(shape: Ints, pairs: Any) -> Ints:
    """Row-major strides, whatever the operands' are."""
    return contiguous_strides(shape)


# -- joining -----------------------------------------------------------------------


def _is_legacy_empty(shape: Ints) -> bool:
    """1-dimensional and empty: `cat` skips such tensors, whatever the others are."""
    return tuple(shape) == (0,)


def _need(name: str) -> Any:
    def check(tensors: Any, *rest: Any) -> None:
        if not tensors:
            raise RuntimeError(f"{name} expects a non-empty TensorList")

    return check


def _need_for_cat(tensors: Any, *rest: Any) -> None:
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")


def joined(tensors: Arrays, dim: int) -> Array:
    """`cat`, with PyTorch's errors."""
    for i, t in enumerate(tensors):
        if not t.ndim:
            raise RuntimeError(
                f"zero-dimensional tensor (at position {i}) cannot be concatenated"
            )
    kept = [(i, t) for i, t in enumerate(tensors) if not _is_legacy_empty(t.shape)]
    if not kept:
        return tensors[0]
    first = kept[0][1]
    axis = wrap_dim(dim, first.ndim)
    for i, t in kept:
        if t.ndim != first.ndim:
            raise RuntimeError(
                "Tensors must have same number of dimensions: got "
                f"{first.ndim} and {t.ndim}"
            )
        for d in range(first.ndim):
            if d != axis and t.shape[d] != first.shape[d]:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. "
                    f"Expected size {first.shape[d]} but got size {t.shape[d]} for "
                    f"tensor number {i} in the list."
                )
    return lax.concatenate([t for _, t in kept], axis)


def _cat_stack(stack: Array, dim: int) -> Array:
    if _is_legacy_empty(stack.shape[1:]):
        return stack[0]
    axis = wrap_dim(dim, stack.ndim - 1)
    return lax.collapse(jnp.moveaxis(stack, 0, axis), axis, axis + 2)


@op(
    promote=NO_OPMATH,
    layout=joining_layout,
    grad_fn="CatBackward0",
    saves=(),
    typecheck=_need_for_cat,
    aliases=("concat", "concatenate"),
    method=False,
    apart=("tensors",),
    on_stack=_cat_stack,
    shape=_shapes.joined,
)
def cat(tensors: Arrays, dim: int = 0) -> Array:
    """The tensors one after the other along a dimension."""
    return joined(tensors, dim)


def _stacking_layout(shape: Ints, tensors: Any, dim: int) -> Ints | None:
    """That of `cat` along the dimension, of which the new one is split off."""
    axis = wrap_dim(dim, len(shape))
    if axis == len(shape) - 1:
        return joining_layout(shape, [((*n, 1), (*s, 1)) for n, s in tensors])
    joint = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    found = joining_layout(joint, tensors)
    return found and view_strides(joint, found, shape)


@op(
    promote=NO_OPMATH,
    layout=Arranged(_stacking_layout),
    grad_fn="StackBackward0",
    saves=(),
    typecheck=_need("stack"),
    method=False,
    apart=("tensors",),
    on_stack=lambda stack, dim: jnp.moveaxis(stack, 0, wrap_dim(dim, stack.ndim)),
)
def stack(tensors: Arrays, dim: int = 0) -> Array:
    """The tensors one after the other along a new dimension."""
    axis = wrap_dim(dim, tensors[0].ndim + 1)
    for i, t in enumerate(tensors):
        if t.shape != tensors[0].shape:
            raise RuntimeError(
                "stack expects each tensor to be equal size, but got "
                f"{list(tensors[0].shape)} at entry 0 and {list(t.shape)} at entry {i}"
            )
    return jnp.stack(tensors, axis)


@op(
    promote=NO_OPMATH,
    layout=joining_layout,
    grad_fn="CatBackward0",
    saves=(),
    typecheck=_need("hstack"),
    method=False,
)
def hstack(tensors: Arrays) -> Array:
    """The tensors side by side: along dimension 1, or 0 where they have but one."""
    tensors = [t.reshape(1) if not t.ndim else t for t in tensors]
    return joined(tensors, 0 if tensors[0].ndim == 1 else 1)


@op(
    promote=NO_OPMATH,
    layout=joining_layout,
    grad_fn="CatBackward0",
    saves=(),
    typecheck=_need("vstack"),
    method=False,
    aliases=("row_stack",),
)
def vstack(tensors: Arrays) -> Array:
    """The tensors as rows, one below the other."""
    rows = [t.reshape(1, -1) if t.ndim < 2 else t for t in tensors]
    return joined(rows, 0)


def _deep(t: Array) -> Array:
    if t.ndim < 2:
        return t.reshape(1, -1, 1)
    return t[..., None] if t.ndim == 2 else t


@op(
    promote=NO_OPMATH,
    layout=joining_layout,
    grad_fn="CatBackward0",
    saves=(),
    typecheck=_need("dstack"),
    method=False,
)
def dstack(tensors: Arrays) -> Array:
    """The tensors one behind the other, along the third dimension."""
    return joined([_deep(t) for t in tensors], 2)


@op(
    promote=NO_OPMATH,
    layout=joining_layout,
    grad_fn="CatBackward0",
    saves=(),
    typecheck=_need("column_stack"),
    method=False,
)
def column_stack(tensors: Arrays) -> Array:
    """The tensors as columns of a matrix."""
    columns = [t.reshape(-1, 1) if t.ndim < 2 else t for t in tensors]
    return joined(columns, 1)


@op(
    name="block_diag_of",
    promote=NO_OPMATH,
    layout=contiguous_layout,
    grad_fn="BlockDiagBackward0",
    saves=(),
    method=False,
    namespaces=(),
)
def block_diag_of(tensors: Arrays) -> Array:
    """A matrix with the tensors along its diagonal."""
    blocks: list[Array] = []
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. "
                f"Input {i} has {t.ndim} dimensions"
            )
        blocks.append(t.reshape(1, -1) if t.ndim < 2 else t)
    columns = sum(b.shape[1] for b in blocks)
    at, rows = 0, []
    for b in blocks:
        left, right = at, columns - at - b.shape[1]
        rows.append(jnp.pad(b, ((0, 0), (left, right))))
        at += b.shape[1]
    return jnp.concatenate(rows, 0)


# -- repeating ---------------------------------------------------------------------


def _repeated(input: Array, repeats: Shape) -> Array:
    lead = len(repeats) - input.ndim
    if lead < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    shape = (1,) * lead + input.shape
    target = [n * r for n, r in zip(shape, repeats, strict=True)]
    for n, r in zip(target, repeats, strict=True):
        if r < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {target}"
            )
    # One broadcast and one reshape; the gradient is one sum.
    split: list[int] = []
    source: list[int] = []
    for n, r in zip(shape, repeats, strict=True):
        split += [r, n]
        source += [1, n]
    return jnp.broadcast_to(input.reshape(source), split).reshape(target)


@op(grad_fn="RepeatBackward0", saves=(), namespaces=())
def repeat(input: Array, repeats: Shape) -> Array:
    """The tensor repeated along each dimension."""
    return _repeated(input, repeats)


@op(grad_fn="RepeatBackward0", saves=(), out=False)
def tile(input: Array, dims: Shape) -> Array:
    """`repeat` that takes fewer numbers than the tensor has dimensions."""
    return _repeated(input, (1,) * (input.ndim - len(dims)) + tuple(dims))


@op(
    name="repeat_each",
    grad_fn="ViewBackward0",
    saves=(),
    method=False,
    namespaces=(),
)
def repeat_each(input: Array, repeats: int, dim: int | None = None) -> Array:
    """Every element (or slice) of the input repeated."""
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if dim is None:
        input, dim = input.reshape(-1), 0
    elif not input.ndim:
        wrap_dim(dim, 0)
        input, dim = input.reshape(1), 0
    dim = wrap_dim(dim, input.ndim)
    shape = input.shape
    wide = jnp.broadcast_to(
        jnp.expand_dims(input, dim + 1),
        (*shape[: dim + 1], repeats, *shape[dim + 1 :]),
    )
    return wide.reshape(*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :])


# -- turning -----------------------------------------------------------------------


@op(layout="preserve", grad_fn="FlipBackward0", saves=(), out=False)
def flip(input: Array, dims: Shape) -> Array:
    """Dimensions in reverse."""
    axes = wrap_dims(tuple(dims), max(input.ndim, 1))
    return lax.rev(input, axes) if input.ndim else input


@op(layout="preserve", grad_fn="FlipBackward0", saves=(), out=False)
def fliplr(input: Array) -> Array:
    """The second dimension in reverse."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return lax.rev(input, (1,))


@op(layout="preserve", grad_fn="FlipBackward0", saves=(), out=False)
def flipud(input: Array) -> Array:
    """The first dimension in reverse."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return lax.rev(input, (0,))


@op(layout=contiguous_layout, grad_fn="RollBackward0", saves=(), out=False)
def roll(
    input: Array, shifts: int | tuple[int, ...], dims: int | tuple[int, ...] = ()
) -> Array:
    """Elements moved along dimensions; what leaves at the end enters at the start."""
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return jnp.roll(input.reshape(-1), shifts[0]).reshape(input.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    for shift, dim in zip(shifts, dims, strict=True):
        if not input.ndim:
            raise IndexError(
                f"Dimension specified as {dim} but tensor has no dimensions"
            )
        if input.size:  # PyTorch does not look at dimensions of nothing
            input = jnp.roll(input, shift, wrap_dim(dim, input.ndim))
    return input


def _rotation(shape: Ints, k: int, dims: Any) -> tuple[int, int]:
    ndim = len(shape)
    if len(dims) != 2:
        raise RuntimeError(
            f"expected total rotation dims == 2, but got dims = {len(dims)}"
        )
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    first, second = wrap_dim(dims[0], ndim), wrap_dim(dims[1], ndim)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and "
            f"dim1 = {dims[1]}"
        )
    return first, second


def _turned(shape: Ints, input: Any, k: int, dims: Any) -> Ints | None:
    """The order of the input's memory, flipped and transposed."""
    turns = k % 4
    if not turns:
        return None
    kept = list(elementwise_strides(input[0], [input]))
    if turns != 2:
        a, b = _rotation(input[0], k, dims)
        kept[a], kept[b] = kept[b], kept[a]
    return tuple(kept)


@op(layout=Arranged(_turned), grad_fn="Rot90Backward0", saves=(), out=False)
def rot90(input: Array, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> Array:
    """The plane of two dimensions turned by 90 degrees, `k` times."""
    a, b = _rotation(input.shape, k, dims)
    turns = k % 4
    if turns == 0:
        return input
    if turns == 2:
        return lax.rev(input, (a, b))
    if turns == 1:
        return jnp.swapaxes(lax.rev(input, (b,)), a, b)
    return jnp.swapaxes(lax.rev(input, (a,)), a, b)


# -- triangles and diagonals -------------------------------------------------------


def _triangle(input: Array, diagonal: int, lower: bool, name: str) -> Array:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    # Within 32 bits, as the numbers of rows and columns are.
    diagonal = max(min(diagonal, input.shape[-1]), -input.shape[-2])
    rows = lax.broadcasted_iota(np.int32, input.shape, input.ndim - 2)
    columns = lax.broadcasted_iota(np.int32, input.shape, input.ndim - 1)
    keep = columns - rows <= diagonal if lower else columns - rows >= diagonal
    return jnp.where(keep, input, jnp.zeros((), input.dtype))


@op(
    layout=contiguous_layout,
    grad_fn="TrilBackward0",
    saves=(),
    inplace=True,
    overlaps=True,
    out="exact",
    shape=_shapes.same,
)
def tril(input: Array, diagonal: int = 0) -> Array:
    """The lower triangle; zeros elsewhere."""
    return _triangle(input, diagonal, True, "tril")


@op(
    layout=contiguous_layout,
    grad_fn="TriuBackward0",
    saves=(),
    inplace=True,
    overlaps=True,
    out="exact",
    shape=_shapes.same,
)
def triu(input: Array, diagonal: int = 0) -> Array:
    """The upper triangle; zeros elsewhere."""
    return _triangle(input, diagonal, False, "triu")


def embedded(input: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Vectors (the last dimension) as diagonals of matrices."""
    ndim = input.ndim + 1
    a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if not input.ndim:
        raise IndexError(
            "Dimension out of range (expected to be in range of [-1, 0], but got -2)"
        )
    n = input.shape[-1]
    size = n + abs(offset)
    if n:
        # A row of the matrix is an element and `size` zeros: one padding.
        *lead, _ = input.shape
        start = offset if offset >= 0 else -offset * size
        used = start + (n - 1) * (size + 1) + 1
        pads = [(0, 0, 0)] * len(lead) + [(start, size * size - used, size)]
        flat = lax.pad(input, jnp.zeros((), input.dtype), pads)
        matrix = flat.reshape(*lead, size, size)
    else:
        matrix = jnp.zeros((*input.shape[:-1], size, size), input.dtype)
    return jnp.moveaxis(matrix, (-2, -1), (a, b))


@op(layout=contiguous_layout, grad_fn="DiagEmbedBackward0", saves=(), out=False)
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Vectors as diagonals of matrices."""
    wrap_dim(dim1, input.ndim + 1 if input.ndim else 1)
    return embedded(input, offset, dim1, dim2)


def taken_diagonal(input: Array, offset: int) -> Array:
    rows, columns = input.shape
    length = diagonal_length(rows, columns, offset)
    if not length:
        return jnp.zeros((0,), input.dtype)
    start = offset if offset >= 0 else -offset * columns
    end = start + (length - 1) * (columns + 1) + 1
    return lax.slice(input.reshape(-1), (start,), (end,), (columns + 1,))


def _diag_node(input: Any, diagonal: int = 0) -> str:
    vector = len(input.shape) == 1
    return "DiagEmbedBackward0" if vector else "DiagonalBackward0_copy"


@op(
    grad_fn=_diag_node,
    saves=(),
    out="exact",
    castable=(
        "diag: result type {want.scalar_name} can't be cast to the desired out= type "
        "{have.scalar_name}"
    ),
)
def diag(input: Array, diagonal: int = 0) -> Array:
    """The diagonal of a matrix, or the matrix with a vector as its diagonal."""
    if input.ndim == 1:
        return embedded(input, diagonal, 0, 1)
    if input.ndim == 2:
        return taken_diagonal(input, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")


@op(grad_fn="DiagEmbedBackward0", saves=(), out=False)
def diagflat(input: Array, offset: int = 0) -> Array:
    """All elements as the diagonal of a matrix."""
    return embedded(input.reshape(-1), offset, 0, 1)
