"""Convolutions as one product of matrices, where an image is small or a kernel is.

XLA for the CPU swaps the two where the kernel has more elements than the image (it
compares them before padding), and has nothing but a plain loop nest for what comes of
that: 10 to 100 times slower than its usual kernel. Deep layers of a network for small
images are of this kind, and gradients of layers without padding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

Ints = tuple[int, ...]

# Kernels of so many elements are written out, and intermediate values may have so many.
_WRITTEN_OUT, _INTERMEDIATE = 64, 1 << 24
# Of so many weights and so few rows, bringing the weights into another order, as XLA
# does, takes longer than the product.
_WEIGHTS, _ROWS = 1 << 17, 64
# From so many places on a product for each example is faster than one for all, for
# which XLA would have to bring the examples together.
_PLACES = 512


def is_swapped(space: Sequence[int], kernel: Sequence[int]) -> bool:
    """Whether XLA would swap image and kernel, without groups."""
    return math.prod(kernel) > math.prod(space)


def of_large_kernel(
    lhs: Any, rhs: Any, params: Mapping[str, Any], places: Ints, mirrored: Any
) -> Any:
    """A convolution of small images as a product; None where XLA's may be as good.

    `mirrored`: the kernel that `rhs` is the mirror image of, if it is known to be.
    """
    numbers = params["dimension_numbers"]
    examples, channels, *space = (lhs.shape[d] for d in numbers.lhs_spec)
    outputs, _, *kernel = (rhs.shape[d] for d in numbers.rhs_spec)
    size = math.prod(kernel)
    swapped = is_swapped(space, kernel)
    rows, elements = examples * math.prod(places), examples * math.prod(space)
    unstrided = max(params["window_strides"]) == 1
    if mirrored is not None and unstrided and _in_tiles(space, kernel, params):
        if size > 1 or max(params["lhs_dilation"]) > 1:
            return _tiled(lhs, mirrored, params, places)
    if size > _WRITTEN_OUT or not (swapped or rhs.size >= _WEIGHTS):
        return None
    if mirrored is not None and unstrided:
        if swapped or elements <= _ROWS:
            if elements * outputs * size <= _INTERMEDIATE:
                return _spread(lhs, mirrored, params, places)
    elif rows <= _ROWS and rows * channels * size <= _INTERMEDIATE:
        return _gathered(lhs, rhs, params, places)
    return None


def pointwise(lhs: Any, rhs: Any, params: Mapping[str, Any], places: Ints) -> Any:
    """A convolution whose kernel has one element; None where XLA is as good."""
    steps, numbers = params["window_strides"], params["dimension_numbers"]
    if math.prod(places) < _PLACES:
        return None
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(rhs, numbers.rhs_spec)
    around, dilated = _around(params), max(params["lhs_dilation"]) > 1
    if not dilated:  # zeros that come first would be multiplied
        x = _strided(lax.pad(x, x.dtype.type(0), around), steps)
    examples, channels, *space = x.shape
    w = jnp.broadcast_to(w.reshape(-1, channels), (examples, w.shape[0], channels))
    x = x.reshape(examples, channels, -1)
    out = lax.dot_general(w, x, (((2,), (1,)), ((0,), (0,))))
    out = out.reshape(*out.shape[:2], *space)
    if dilated:
        out = _strided(lax.pad(out, out.dtype.type(0), around), steps)
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def whole(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> Any:
    """A kernel as large as the image, such as the gradient of a pointwise one.

    None where XLA is as good, or where the kernel meets anything but the image.
    """
    numbers = params["dimension_numbers"]
    # Channels first: examples, where it is such a gradient, as they lie in memory.
    (a, b, *space), (c, d, *kernel) = numbers.lhs_spec, numbers.rhs_spec
    x, w = jnp.transpose(lhs, (b, a, *space)), jnp.transpose(rhs, (d, c, *kernel))
    plain = all(p == (0, 0) for p in params["padding"])
    size = math.prod(x.shape[2:])
    if x.shape[2:] != w.shape[2:] or not plain or size < _PLACES:
        return None
    if 4 * x.shape[1] * w.shape[1] > size * (x.shape[1] + w.shape[1]):
        return None  # the sums are larger than what is summed
    x, w = x.reshape(*x.shape[:2], size), w.reshape(*w.shape[:2], size)
    each = lax.dot_general(x, w, (((2,), (2,)), ((0,), (0,))))
    out = jnp.sum(each, 0)
    out = out.reshape(*out.shape, *(1,) * len(space))
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def _around(params: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    """How an image is padded, its examples and channels included."""
    around = zip(params["padding"], params["lhs_dilation"], strict=True)
    return [(0, 0, 0)] * 2 + [(low, high, t - 1) for (low, high), t in around]


def _strided(x: Any, steps: Sequence[int]) -> Any:
    if max(steps) == 1:
        return x
    return lax.slice(x, (0,) * x.ndim, x.shape, (1, 1, *steps))


def _in_tiles(
    space: Sequence[int], kernel: Sequence[int], params: Mapping[str, Any]
) -> bool:
    """Whether no two elements of the image meet the kernel at one place."""
    between, spans = params["lhs_dilation"], params["rhs_dilation"]
    sizes = zip(space, kernel, between, spans, strict=True)
    return all((n == 1 or t >= k) and s == 1 for n, k, t, s in sizes)


def _tiled(lhs: Any, kernel: Any, params: Mapping[str, Any], places: Ints) -> Any:
    """As `_spread`, where nothing is to be added: patches, single elements."""
    numbers = params["dimension_numbers"]
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(kernel, numbers.rhs_spec)
    space, sizes, n = x.shape[2:], w.shape[2:], x.ndim - 2
    products = lax.dot_general(x, w, (((1,), (1,)), ((), ())))
    # What is between two tiles; of a single one nothing.
    gaps = [
        max(0, t - k) if size > 1 else 0
        for t, k, size in zip(params["lhs_dilation"], sizes, space, strict=True)
    ]
    around = [(0, 0, 0)] * (n + 2) + [(0, gap, 0) for gap in gaps]
    products = lax.pad(products, x.dtype.type(0), around)
    order = itertools.chain.from_iterable((1 + d, n + 2 + d) for d in range(n))
    out = jnp.transpose(products, (0, n + 1, *order))
    whole = [out.shape[2 + 2 * d] * out.shape[3 + 2 * d] for d in range(n)]
    out = out.reshape(len(x), w.shape[0], *whole)
    out = at_places(out, sizes, params, places)
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def at_places(
    whole: Any, kernel: Sequence[int], params: Mapping[str, Any], places: Ints
) -> Any:
    """The places asked for of all that a kernel in mirror image reaches."""
    config = [(0, 0, 0)] * 2
    for (low, _), k, place, full in zip(
        params["padding"], kernel, places, whole.shape[2:], strict=True
    ):
        start = low - (k - 1)
        config.append((start, place - start - full, 0))
    return lax.pad(whole, whole.dtype.type(0), config)


def _spread(lhs: Any, kernel: Any, params: Mapping[str, Any], places: Ints) -> Any:
    """Each element of the image times the whole kernel, added where it belongs.

    `kernel` is the mirror image of the convolution's.
    """
    numbers, spans = params["dimension_numbers"], params["rhs_dilation"]
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(kernel, numbers.rhs_spec)
    space, sizes, n = x.shape[2:], w.shape[2:], x.ndim - 2
    # (examples, *space, outputs, *kernel)
    products = lax.dot_general(x, w, (((1,), (1,)), ((), ())))
    out: Any = None
    for k in itertools.product(*map(range, sizes)):
        part = jnp.moveaxis(products[(slice(None),) * (n + 2) + k], -1, 1)
        config = [(0, 0, 0)] * 2
        for d, (low, _) in enumerate(params["padding"]):
            step = params["lhs_dilation"][d]
            start = low - (sizes[d] - 1 - k[d]) * spans[d]
            end = places[d] - start - ((space[d] - 1) * step + 1)
            config.append((start, end, step - 1))
        part = lax.pad(part, part.dtype.type(0), config)
        out = part if out is None else out + part
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def _gathered(lhs: Any, rhs: Any, params: Mapping[str, Any], places: Ints) -> Any:
    """What the kernel meets at each place as the row of a matrix."""
    numbers = params["dimension_numbers"]
    steps, spans = params["window_strides"], params["rhs_dilation"]
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(rhs, numbers.rhs_spec)
    x = lax.pad(x, x.dtype.type(0), _around(params))
    met = []
    for k in itertools.product(*map(range, w.shape[2:])):
        starts = [i * span for i, span in zip(k, spans, strict=True)]
        ends = [
            start + (place - 1) * step + 1
            for start, place, step in zip(starts, places, steps, strict=True)
        ]
        ends, strides = [*x.shape[:2], *ends], (1, 1, *steps)
        met.append(lax.slice(x, (0, 0, *starts), ends, strides))
    # (examples, *places, channels, kernel)
    rows = jnp.moveaxis(jnp.stack(met, -1), 1, -2)
    rows = rows.reshape(-1, math.prod(w.shape[1:]))
    out = lax.dot_general(rows, w.reshape(len(w), -1), (((1,), (1,)), ((), ())))
    out = jnp.moveaxis(out.reshape(len(x), *places, len(w)), -1, 1)
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)
