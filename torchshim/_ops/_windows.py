"""Windows of arrays: their largest elements, and where these are.

A window is taken one dimension after another: a small one as slices that are compared,
one after the other; larger ones that lie side by side as a dimension of their own;
large ones that overlap out of those of half their size. So is its gradient, which
XLA's `reduce_window` does slowly on a CPU. Of equal elements the first counts as the
largest, the last if they are NaN, as in PyTorch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array

Ints = tuple[int, ...]
# (kernel, stride, padding, dilation) of a dimension.
Window = tuple[int, int, int, int]


def windows_of(
    size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> list[Window]:
    """The windows of each dimension.

    Kernels end where those of the first window have left the input, however large.
    """
    return [
        (min(k, -(-(n + p) // d)), s, p, d)
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    ]


def slices(
    x: Array, axis: int, kernel: int, stride: int, dilation: int, out: int
) -> list[Array]:
    """For each place in the kernel, what it sees along a dimension."""
    return [
        lax.slice_in_dim(
            x, k * dilation, k * dilation + (out - 1) * stride + 1, stride, axis
        )
        for k in range(kernel)
    ]


def stretched(x: Array, axis: int, window: Window, out: int, fill: Any) -> Array:
    """`x` padded so that every window lies inside."""
    kernel, stride, padding, dilation = window
    need = (out - 1) * stride + dilation * (kernel - 1) + 1
    right = max(0, need - padding - x.shape[axis])
    if not padding and not right:
        return x
    pads = [(0, 0)] * x.ndim
    pads[axis] = (padding, right)
    return jnp.pad(x, pads, constant_values=fill)


def larger_of(
    best: Array, at: Array | None, other: Array, its: Array | None
) -> tuple[Array, Array | None]:
    """The larger of two elements, the first of equal ones, and its place."""
    take = other > best
    if jnp.issubdtype(best.dtype, jnp.floating):
        take = take | jnp.isnan(other)
    if at is None or its is None:
        return jnp.where(take, other, best), None
    take = take | ((at < 0) & (its >= 0))  # anything is larger than padding
    return jnp.where(take, other, best), jnp.where(take, its, at)


def _lowest(dtype: Any) -> Any:
    if jnp.issubdtype(dtype, jnp.floating):
        return -jnp.inf
    return jnp.iinfo(dtype).min


def positions_in(input: Array, n: int) -> Array:
    """The flat places of the elements in the last dimensions."""
    size = input.shape[-n:]
    flat = np.arange(math.prod(size), dtype=np.int64).reshape(size)
    return jnp.broadcast_to(flat, input.shape)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _largest(x: Array, axis: int) -> tuple[Array, Array]:
    """The largest elements along a dimension, which stays with size 1, and where."""
    best, place = x.max(axis, keepdims=True), _along(x, axis)
    found = x == best
    if jnp.issubdtype(x.dtype, jnp.floating):
        lost = jnp.isnan(best)
        found = jnp.where(lost, jnp.isnan(x), found)
        place = jnp.where(lost, -place, place)  # of several the last
    place = jnp.where(found, place, x.shape[axis])
    return best, jnp.abs(place.min(axis, keepdims=True))


@_largest.defjvp
def _largest_jvp(axis: int, primals: Any, tangents: Any) -> Any:
    (x,), (dx,) = primals, tangents
    best, place = _largest(x, axis)
    return (best, place), (
        _chosen(dx, place, axis),
        np.zeros(place.shape, jax.dtypes.float0),
    )


def _along(x: Array, axis: int) -> Array:
    return lax.broadcasted_iota(np.int32, x.shape, axis % x.ndim)


def _chosen(x: Array, place: Array, axis: int) -> Array:
    """The elements at such places; their gradient needs no scatter."""
    found = jnp.where(_along(x, axis) == place, x, 0)
    return found.sum(axis, keepdims=True, dtype=x.dtype)


def largest_in_rows(x: Array, at: Array, axis: int) -> tuple[Array, Array]:
    """The largest elements along a dimension, which goes, and their places in `at`."""
    best, place = _largest(x, axis)
    return best.squeeze(axis), _chosen(at, place, axis).squeeze(axis)


def in_rows(x: Array, axis: int, out: int, kernel: int) -> Array:
    """A dimension as so many windows, one behind the other, and what is in each."""
    x = lax.slice_in_dim(x, 0, out * kernel, axis=axis)
    return x.reshape((*x.shape[:axis], out, kernel, *x.shape[axis + 1 :]))


def rows(
    x: Array, axis: int, kernel: int, stride: int, dilation: int, out: int
) -> Array:
    """A dimension as windows of any kind, and what is in each."""
    if kernel == stride and dilation == 1:
        return in_rows(x, axis, out, kernel)
    return jnp.stack(slices(x, axis, kernel, stride, dilation, out), axis + 1)


def _pair_at(x: Array, axis: int, distance: int) -> tuple[Array, Array]:
    """All pairs of elements at a distance, the first ones and the second ones."""
    length = x.shape[axis] - distance
    first = lax.slice_in_dim(x, 0, length, axis=axis)
    return first, lax.slice_in_dim(x, distance, distance + length, axis=axis)


def _by_doubling(
    x: Array, at: Array | None, axis: int, window: Window, out: int
) -> tuple[Array, Array | None]:
    """Windows that overlap, out of those of half their size."""
    kernel, stride, _, dilation = window

    def beside(distance: int) -> tuple[Array, Array | None]:
        near, far = _pair_at(x, axis, distance)
        places = (None, None) if at is None else _pair_at(at, axis, distance)
        return larger_of(near, places[0], far, places[1])

    size = 1
    while 2 * size <= kernel:
        x, at = beside(size * dilation)
        size *= 2
    if size < kernel:
        x, at = beside((kernel - size) * dilation)
    [x] = slices(x, axis, 1, stride, 1, out)
    return x, None if at is None else slices(at, axis, 1, stride, 1, out)[0]


# Windows of more elements are not taken one after the other: those that lie side by
# side, and those that overlap.
_BESIDE, _OVER = 2, 4


def are_rows(window: Window, size: int, out: int) -> bool:
    """Whether windows, no small ones, lie side by side in a dimension of this size."""
    kernel, stride, padding, dilation = window
    apart = (kernel == stride or out == 1) and not padding and dilation == 1
    return kernel > _BESIDE and apart and out * kernel <= size


def largest(
    input: Array,
    windows: Sequence[Window],
    out: Ints,
    at: Array | None,
) -> tuple[Array, Array | None]:
    """The largest element of each window, and what `at` has for it."""
    x, n = input, len(windows)
    for i in reversed(range(n)):
        axis = x.ndim - n + i
        kernel, stride, _, dilation = windows[i]
        if are_rows(windows[i], x.shape[axis], out[i]):
            x = in_rows(x, axis, out[i], kernel)
            if at is None:
                x = _largest(x, axis + 1)[0].squeeze(axis + 1)
            else:
                at = in_rows(at, axis, out[i], kernel)
                x, at = largest_in_rows(x, at, axis + 1)
            continue
        x = stretched(x, axis, windows[i], out[i], _lowest(x.dtype))
        if at is not None:
            at = stretched(at, axis, windows[i], out[i], -1)
        if kernel > _OVER:
            x, at = _by_doubling(x, at, axis, windows[i], out[i])
            continue
        parts = slices(x, axis, kernel, stride, dilation, out[i])
        places: list[Any] = [None] * kernel
        if at is not None:
            places = slices(at, axis, kernel, stride, dilation, out[i])
        x, at = parts[0], places[0]
        for other, its in zip(parts[1:], places[1:], strict=True):
            x, at = larger_of(x, at, other, its)
    return x, at
