"""Views: other ways to look at the same memory.

Each operator has a geometry (shape, strides and offset, PyTorch's rules, in
`view_geometry`) and a write: the base with the viewed piece replaced.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array, Indices, Shape, View, op
from torchshim._ops import view_geometry as geometry
from torchshim._ops.view_geometry import (
    KEEP,
    PICK,
    Geometry,
    Ints,
    flat_shape,
    infer_size,
    moved,
    permutation,
    split_shape,
    squeezed_dims,
    view_strides,
    wrap_dim,
)

__all__ = ["wrap_dim"]


def _same(shape: Ints, strides: Ints, offset: int) -> Geometry:
    return shape, strides, offset


@op(
    view=View(_same, lambda base, new: new, detached=True),
    differentiable=False,
    saves=(),
)
def detach(input: Array) -> Array:
    """The same memory without the history."""
    return input


@op(
    view=View(_same, lambda base, new: new),
    grad_fn="AliasBackward0",
    saves=(),
    passes=("input",),
    method=False,
    namespaces=(),
)
def alias(input: Array) -> Array:
    """The same memory as a new tensor."""
    return input


# -- shapes ------------------------------------------------------------------------


def _write_reshaped(base: Array, new: Array, *args: Any) -> Array:
    return new.reshape(base.shape)


@op(
    view=View(geometry.viewed, _write_reshaped),
    grad_fn="ViewBackward0",
    saves=(),
    namespaces=(),
)
def view(input: Array, size: Shape) -> Array:
    """The same memory in another shape."""
    return input.reshape(infer_size(size, input.size))


def _reshape_node(input: Any, shape: Ints) -> str:
    strides = getattr(input, "strides", None)
    if strides is None:
        return "ViewBackward0"
    new = infer_size(shape, input.numel)
    fits = view_strides(tuple(input.shape), strides, new)
    if fits is None:
        return "UnsafeViewBackward0"
    return "ViewBackward0" if input.contiguous else "ReshapeAliasBackward0"


@op(
    view=View(geometry.reshaped, _write_reshaped),
    grad_fn=_reshape_node,
    saves=(),
)
def reshape(input: Array, shape: Shape) -> Array:
    """Another shape: a view where the memory allows it, else a copy."""
    return input.reshape(infer_size(shape, input.size))


def _flattened(
    shape: Ints, strides: Ints, offset: int, start_dim: int, end_dim: int
) -> Geometry | None:
    new = flat_shape(shape, start_dim, end_dim)
    return geometry.reshaped(shape, strides, offset, new)


def _flatten_node(input: Any, start_dim: int, end_dim: int) -> str:
    shape = tuple(input.shape)
    return _reshape_node(input, flat_shape(shape, start_dim, end_dim))


@op(
    view=View(_flattened, _write_reshaped),
    grad_fn=_flatten_node,
    saves=(),
)
def flatten(input: Array, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Neighbouring dimensions made one."""
    return input.reshape(flat_shape(input.shape, start_dim, end_dim))


def _unflattened(
    shape: Ints, strides: Ints, offset: int, dim: int, sizes: Ints
) -> Geometry:
    new = split_shape(shape, dim, _sizes(sizes))
    return geometry.viewed(shape, strides, offset, new)


def _sizes(given: Any) -> Ints:
    if not isinstance(given, tuple) or not all(isinstance(n, int) for n in given):
        name = type(given).__name__
        raise TypeError(
            f"unflatten(): argument 'sizes' must be tuple of ints, not {name}"
        )
    return given


def _tuple(value: Any) -> Ints:
    return value if isinstance(value, tuple) else (value,)


@op(
    view=View(_unflattened, _write_reshaped),
    grad_fn="ViewBackward0",
    saves=(),
)
def unflatten(input: Array, dim: int, sizes: tuple[int, ...]) -> Array:
    """One dimension made several."""
    return input.reshape(split_shape(input.shape, dim, _sizes(sizes)))


def _squeezed(shape: Ints, strides: Ints, offset: int, dim: Any = ...) -> Geometry:
    gone = squeezed_dims(shape, dim)
    keep = [d for d in range(len(shape)) if d not in gone]
    return tuple(shape[d] for d in keep), tuple(strides[d] for d in keep), offset


def _squeeze_node(input: Any, dim: Any = ...) -> str:
    if dim is ...:
        return "SqueezeBackward0"
    return "SqueezeBackward2" if isinstance(dim, tuple) else "SqueezeBackward1"


@op(
    view=View(_squeezed, _write_reshaped),
    grad_fn=_squeeze_node,
    saves=(),
    passes=("input",),
)
def squeeze(input: Array, dim: int | tuple[int, ...] = ...) -> Array:  # type: ignore[assignment]
    """Dimensions of size 1 taken out; `...` stands for all of them."""
    return lax.squeeze(input, squeezed_dims(input.shape, dim))


@op(
    view=View(geometry.unsqueezed, _write_reshaped),
    grad_fn="UnsqueezeBackward0",
    saves=(),
)
def unsqueeze(input: Array, dim: int) -> Array:
    """A dimension of size 1 put in."""
    return lax.expand_dims(input, (wrap_dim(dim, input.ndim + 1),))


# -- order of dimensions -----------------------------------------------------------


def _transposed(shape: Ints, strides: Ints, offset: int, d0: int, d1: int) -> Geometry:
    a, b = wrap_dim(d0, len(shape)), wrap_dim(d1, len(shape))
    size, step = list(shape), list(strides)
    if size:
        size[a], size[b] = size[b], size[a]
        step[a], step[b] = step[b], step[a]
    return tuple(size), tuple(step), offset


def _swap(input: Array, d0: int, d1: int) -> Array:
    a, b = wrap_dim(d0, input.ndim), wrap_dim(d1, input.ndim)
    return jnp.swapaxes(input, a, b) if input.ndim else input


_TRANSPOSE = View(_transposed, lambda base, new, d0, d1: _swap(new, d0, d1))


@op(view=_TRANSPOSE, grad_fn="TransposeBackward0", saves=(), aliases=("swapdims",))
def transpose(input: Array, dim0: int, dim1: int) -> Array:
    """Two dimensions swapped."""
    return _swap(input, dim0, dim1)


@op(view=_TRANSPOSE, grad_fn="TransposeBackward0", saves=())
def swapaxes(input: Array, axis0: int, axis1: int) -> Array:
    """Two dimensions swapped, by NumPy's name."""
    return _swap(input, axis0, axis1)


def _turned(shape: Ints, strides: Ints, offset: int) -> Geometry:
    if len(shape) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D"
        )
    return tuple(reversed(shape)), tuple(reversed(strides)), offset


@op(
    view=View(_turned, lambda base, new: new.T),
    grad_fn="TBackward0",
    saves=(),
)
def t(input: Array) -> Array:
    """A matrix with rows and columns swapped."""
    return input.T


def _permuted(shape: Ints, strides: Ints, offset: int, dims: Ints) -> Geometry:
    order = permutation(len(shape), dims)
    return tuple(shape[d] for d in order), tuple(strides[d] for d in order), offset


def _write_permuted(base: Array, new: Array, dims: Ints) -> Array:
    return new.transpose(np.argsort(permutation(base.ndim, dims)))


@op(
    view=View(_permuted, _write_permuted),
    grad_fn="PermuteBackward0",
    saves=(),
)
def permute(input: Array, dims: Shape) -> Array:
    """The dimensions in another order."""
    return input.transpose(permutation(input.ndim, dims))


def _moved(
    shape: Ints, strides: Ints, offset: int, source: Any, destination: Any
) -> Geometry:
    if isinstance(source, int) != isinstance(destination, int):
        raise TypeError("movedim() received an invalid combination of arguments")
    order = moved(len(shape), _tuple(source), _tuple(destination))
    return _permuted(shape, strides, offset, order)


def _write_moved(base: Array, new: Array, source: Any, destination: Any) -> Array:
    order = moved(base.ndim, _tuple(source), _tuple(destination))
    return _write_permuted(base, new, order)


@op(
    view=View(_moved, _write_moved),
    grad_fn="PermuteBackward0",
    saves=(),
    aliases=("moveaxis",),
)
def movedim(
    input: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...]
) -> Array:
    """Dimensions moved to other places."""
    return input.transpose(moved(input.ndim, _tuple(source), _tuple(destination)))


# -- pieces ------------------------------------------------------------------------


def slice_piece(base: Array, starts: Any, plan: Any) -> Array:
    """What basic indexing reads: one slice, made dynamic by a runtime start."""
    begin, width, steps = _block(base.shape, starts, plan)
    if all(isinstance(b, int) for b in begin):
        ends = [b + w for b, w in zip(begin, width, strict=True)]
        piece = lax.slice(base, begin, ends, steps)
    else:
        piece = lax.dynamic_slice(base, begin, width)
        if any(s > 1 for s in steps):
            piece = lax.slice(piece, (0,) * base.ndim, width, steps)
    return piece.reshape(piece_shape(base.shape, plan))


def write_piece(base: Array, new: Array, starts: Any, plan: Any) -> Array:
    """The base with what basic indexing reads replaced by `new`."""
    begin, width, steps = _block(base.shape, starts, plan)
    new = new.astype(base.dtype)
    if 0 in new.shape:
        return base
    if tuple(width) == base.shape and all(s == 1 for s in steps):
        return new.reshape(base.shape)
    if all(s == 1 for s in steps):
        return lax.dynamic_update_slice(base, new.reshape(width), begin)
    taken = [-(-w // s) for w, s in zip(width, steps, strict=True)]
    spread = [(0, 0, s - 1) for s in steps]
    filled = lax.pad(new.reshape(taken), jnp.zeros((), base.dtype), spread)
    mask = lax.pad(jnp.ones(taken, bool), jnp.zeros((), bool), spread)
    block = lax.dynamic_slice(base, begin, width)
    return lax.dynamic_update_slice(base, jnp.where(mask, filled, block), begin)


def _block(shape: Ints, starts: Any, plan: Any) -> tuple[list[Any], Ints, Ints]:
    """Start, extent and step in each dimension of the base."""
    begin: list[Any] = []
    width: list[int] = []
    steps: list[int] = []
    at = iter(starts)
    for entry in plan:
        if entry is None:
            continue
        if entry == KEEP:
            begin.append(0)
            width.append(shape[len(width)])
            steps.append(1)
        else:
            length, step = (1, 1) if entry == PICK else entry
            begin.append(next(at))
            width.append((length - 1) * step + 1 if length else 0)
            steps.append(step if length > 1 else 1)
    while len(width) < len(shape):
        begin.append(0)
        width.append(shape[len(width)])
        steps.append(1)
    return begin, tuple(width), tuple(steps)


def piece_shape(shape: Ints, plan: Any) -> Ints:
    zeros = (0,) * len(plan)
    return geometry.indexed(shape, (0,) * len(shape), 0, zeros, plan)[0]


def _index_node(input: Any, starts: Any, plan: Any) -> str:
    return geometry.index_node(plan)


def _index_passes(input: Any, starts: Any, plan: Any) -> tuple[str, ...]:
    return ("input",) if geometry.index_node(plan) == "AliasBackward0" else ()


@op(
    view=View(geometry.indexed, write_piece),
    grad_fn=_index_node,
    saves=(),
    passes=_index_passes,
    method=False,
    namespaces=(),
)
def basic_index(input: Array, starts: Indices, plan: Any) -> Array:
    """Integers, slices and new dimensions in one step; see `view_geometry.indexed`."""
    return slice_piece(input, starts, plan)
