"""Copies of what views show: `permute_copy` is `permute` in memory of its own.

Each has the function of the view's operator and the name of its node with `_copy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core.linearize import is_forward
from torchshim._core.meta import contiguous_strides
from torchshim._core.op import REGISTRY, Array, Indices, op
from torchshim._core.promotion import cast
from torchshim._ops import splits, view_memory, views
from torchshim._ops._common import without_derivative
from torchshim._ops._formats import first_layout

assert splits and view_memory and views


def _node(of_view: str | Callable[..., str] | None) -> str | Callable[..., str]:
    if callable(of_view):
        return lambda *args: f"{of_view(*args)}_copy"
    return f"{of_view}_copy"


def _declare(view: str, public: bool) -> None:
    of = REGISTRY[view]
    assert of.view is not None
    geometry = of.view.geometry

    def check(input: Any, *args: Any) -> None:
        # What a view refuses, its geometry does.
        if of.typecheck is not None:
            of.typecheck(input, *args)
        shape = tuple(input.shape)
        # Where no view shows what `view_copy` gives, it rearranges the elements.
        strides = contiguous_strides(shape) if view == "view" else input.strides
        geometry(shape, strides, 0, *args)

    op(
        of.fn,
        name=f"{view}_copy",
        grad_fn=_node(of.grad_fn),
        saves=(),
        method=False,
        namespaces=("torch",) if public else (),
        typecheck=check,
        out="exact" if of.results == "tensor" else False,
        unfollowed=True,
    )
    REGISTRY[f"{view}_copy"].module = __name__


for _view in (
    "alias",
    "diagonal",
    "expand",
    "permute",
    "squeeze",
    "t",
    "transpose",
    "unfold",
    "unsqueeze",
):
    _declare(_view, True)
# Their public functions are in `_functions/view_copies.py`.
for _view in ("split_pieces", "split_sizes", "unbind_rows", "view"):
    _declare(_view, False)


@op(
    grad_fn="NotImplemented",
    saves=(),
    inplace=True,
    method=False,
    namespaces=(),
    out=False,
)
def unfollowed(input: Array, value: Array, name: Any) -> Array:
    """The value, in place of `input`; its gradient is that of no operator."""

    @without_derivative(f"aten::{name}")
    def taken(input: Array, value: Array) -> Array:
        return jnp.broadcast_to(value.astype(input.dtype), input.shape)

    return taken(input, value)


@op(
    grad_fn=lambda input, starts, plan, node: node,
    saves=(),
    method=False,
    namespaces=(),
    out=False,
)
def piece_copy(input: Array, starts: Indices, plan: Any, node: Any) -> Array:
    """Integers and slices in one step, as a copy; `node` names what it is of."""
    return views.slice_piece(input, starts, plan)


@op(
    grad_fn="AsStridedBackward0_copy",
    saves=(),
    method=False,
    namespaces=(),
    out=False,
)
def strided_copy(
    input: Array, size: Any, stride: Any, storage_offset: int, source: Any
) -> Array:
    """`strided_view` as a copy."""
    return REGISTRY["strided_view"].fn(input, size, stride, storage_offset, source)


@op(
    grad_fn=lambda input, src, starts, plan, name: (
        f"{name.title().replace('_', '')}Backward0"
    ),
    saves=(),
    real_gradients=lambda input, src, starts, plan, name: name,
    part=True,
    layout=first_layout,
    method=False,
    namespaces=(),
    out=False,
)
def piece_scatter(
    input: Array, src: Array, starts: Indices, plan: Any, name: Any
) -> Array:
    """The input with `src` in the place of what integers and slices pick."""
    return views.write_piece(input, cast(src, input.dtype), starts, plan)


@op(
    grad_fn="DiagonalScatterBackward0",
    saves=(),
    layout=first_layout,
    method=False,
    namespaces=(),
)
def diagonal_written(
    input: Array, src: Array, offset: int, dim1: int, dim2: int
) -> Array:
    """The input with `src` in the place of a diagonal."""
    view = REGISTRY["diagonal"].view
    assert view is not None
    return view.write(input, cast(src, input.dtype), offset, dim1, dim2)


@op(
    grad_fn="AsStridedScatterBackward0",
    saves=(),
    layout=first_layout,
    method=False,
    namespaces=(),
)
def strided_scatter(
    input: Array, src: Array, size: Any, stride: Any, storage_offset: int, source: Any
) -> Array:
    """The input with `src` in the place of one of its strided views."""
    places = view_memory.positions(
        (input.shape, *source), (size, stride, storage_offset)
    )
    assert places is not None
    # For each element of the input which of `src` replaces it; -1: none.
    chosen = np.full(input.size, -1)
    chosen[places.reshape(-1)] = np.arange(places.size)
    chosen = chosen.reshape(input.shape)
    replaced = chosen >= 0

    def place(new: Array, rest: Array) -> Array:
        if not places.size:
            return rest
        return jnp.where(replaced, new.reshape(-1)[np.maximum(chosen, 0)], rest)

    @jax.custom_jvp
    def written(base: Array, new: Array) -> Array:
        return place(new, base)

    @written.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        if is_forward():
            return written(*primals), place(tangents[1], tangents[0])
        # PyTorch gives the input the gradient of the elements that were replaced.
        along_base, along_new = tangents
        along = jnp.where(replaced, along_base, 0)
        return written(*primals), along + place(along_new, jnp.zeros_like(along))

    return written(input, cast(src, input.dtype))
