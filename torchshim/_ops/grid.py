"""Images sampled at the points of a grid, and grids of affine maps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array, op
from torchshim._ops._common import (
    HALF,
    scalar_name,
)
from torchshim._ops.activation import floating_only
from torchshim._ops.creation import spaced
from torchshim._ops.matmul import PRECISION

# The numbers by which PyTorch knows the modes.
_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)


def _check(input: Array, grid: Array, interpolation_mode: int) -> None:
    sizes = (
        f"but got input with sizes {list(input.shape)} and grid with sizes "
        f"{list(grid.shape)}"
    )
    n = input.ndim - 2
    if input.shape[:1] != grid.shape[:1]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, {sizes}"
        )
    if not grid.ndim or grid.shape[-1] != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but "
            f"got grid with sizes {list(grid.shape)}"
        )
    for i, size in enumerate(input.shape[2:], 2):
        if size == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, "
                f"but input has sizes {list(input.shape)} with dimension {i} being "
                "empty"
            )
    if n not in (2, 3) or grid.ndim != input.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {4 if n == 2 else 5}D input and grid with same "
            f"number of dimensions, {sizes}"
        )
    if n == 3 and interpolation_mode == _BICUBIC:
        raise RuntimeError(
            "grid_sampler(): bicubic interpolation only supports 4D input"
        )
    floating_only(
        input, "grid_sampler_2d_cpu_kernel_impl" if n == 2 else "grid_sampler3d_cpu"
    )
    if grid.dtype != input.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(input)} but found {scalar_name(grid)}"
        )


def _inside(x: Array, size: int) -> Array:
    """Clamped to the image, with no gradient from its edge on; NaN becomes 0."""
    high = jnp.asarray(size - 1, x.dtype)
    clamped = jnp.where(x >= high, high, jnp.zeros_like(x))
    return jnp.where((x > 0) & (x < high), x, clamped)


def _reflected(x: Array, size: int, corners: bool) -> Array:
    """Mirrored at the outermost pixels' centres (`corners`) or outer edges."""
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span == 0:
        return jnp.zeros_like(x)
    away = jnp.where(x < low, low - x, x - low)
    flips = lax.stop_gradient(jnp.floor(away / span))
    rest = away - flips * span
    mirrored = jnp.where(flips % 2 == 0, rest + low, span - rest + low)
    return _inside(mirrored, size)


def _padded(x: Array, size: int, padding_mode: int, corners: bool, n: int) -> Array:
    if padding_mode == _BORDER:
        return _inside(x, size)
    if padding_mode == _REFLECTION:
        return _reflected(x, size, corners)
    # What is far away is outside, and fits an integer; in volumes so is what is no
    # number, where PyTorch gives NaN for images.
    near = jnp.abs(x) < 2.0**24
    return jnp.where(near if n == 3 else near | ~jnp.isfinite(x), x, -100.0)


# Of so many channels, those of a pixel are brought together first: XLA gathers and adds
# whole rows two to six times as fast.
_CHANNELS = 8


def _picked(flat: Array, at: Sequence[Array], size: Sequence[int]) -> Array:
    """The pixels at integral coordinates, zero outside of the image."""
    place: Any = 0
    valid: Any = True
    for x, length in zip(at, size, strict=True):
        valid = valid & (x >= 0) & (x <= length - 1)
        place = place * length + jnp.clip(x, 0, length - 1).astype(jnp.int32)

    def pixels(image: Array, index: Array) -> Array:
        if len(image) < _CHANNELS:
            return image[:, index]
        return jnp.moveaxis(image.T[index], -1, 0)

    picked = jax.vmap(pixels)(flat, place)
    return jnp.where(valid[:, None], picked, 0)


def _cubic(t: Array) -> list[Array]:
    """The weights of the four pixels around a point, `t` behind the second."""
    a = -0.75
    far = [((a * s - 5 * a) * s + 8 * a) * s - 4 * a for s in (t + 1, 2 - t)]
    near = [((a + 2) * s - (a + 3)) * s * s + 1 for s in (t, 1 - t)]
    return [far[0], *near, far[1]]


def _grid_node(
    input: Any,
    grid: Any,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> str:
    return f"GridSampler{len(input.shape) - 2}DBackward0"


@op(
    grad_fn=_grid_node,
    saves=("input", "grid"),
    method=False,
    out=False,
)
def grid_sampler(
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Array:
    """The values of images at the points of a grid, which spans -1 to 1."""
    _check(input, grid, interpolation_mode)
    x, points = input, grid
    if x.dtype in HALF:
        x, points = x.astype(jnp.float32), points.astype(jnp.float32)
    size = x.shape[2:]
    if 0 in x.shape[:2] or not grid.size:
        return jnp.zeros((*x.shape[:2], *grid.shape[1:-1]), input.dtype)
    flat = x.reshape(*x.shape[:2], -1)
    # The last coordinate of a point belongs to the first spatial dimension.
    coords = []
    for i, length in enumerate(size):
        c = points[..., len(size) - 1 - i]
        scaled = (c + 1) * (length - 1) if align_corners else (c + 1) * length - 1
        coords.append(scaled / 2)

    def pad(c: Array, length: int) -> Array:
        return _padded(c, length, padding_mode, align_corners, len(size))

    if interpolation_mode == _BICUBIC:
        out = _bicubic(flat, coords, size, pad)
    else:
        coords = [pad(c, s) for c, s in zip(coords, size, strict=True)]
        if interpolation_mode == _NEAREST:
            out = _picked(flat, [jnp.round(c) for c in coords], size)
        else:
            out = _linear(flat, coords, size)
    return out.astype(input.dtype)


def _weighted(
    flat: Array,
    at: Sequence[Sequence[Array]],
    weights: Sequence[Sequence[Array]],
    size: Sequence[int],
) -> Array:
    """The sum over all combinations of a pixel and a weight in each dimension."""
    # One gather for all combinations, which stand in the last axis.
    pairs = [list(itertools.product(*each)) for each in (at, weights)]
    places, factors = (
        [jnp.stack(axis, axis=-1) for axis in zip(*pair, strict=True)] for pair in pairs
    )
    weight = functools.reduce(jnp.multiply, factors)
    return jnp.sum(_picked(flat, places, size) * weight[:, None], axis=-1)


def _linear(flat: Array, coords: Sequence[Array], size: Sequence[int]) -> Array:
    lows = [lax.stop_gradient(jnp.floor(c)) for c in coords]
    at = [(low, low + 1) for low in lows]
    weights = [(low + 1 - c, c - low) for c, low in zip(coords, lows, strict=True)]
    return _weighted(flat, at, weights, size)


def _bicubic(
    flat: Array, coords: Sequence[Array], size: Sequence[int], pad: Any
) -> Array:
    lows = [lax.stop_gradient(jnp.floor(c)) for c in coords]
    weights = [_cubic(c - low) for c, low in zip(coords, lows, strict=True)]
    # Coordinates mirrored at outer edges are integral again: truncation is exact.
    at = [
        [lax.stop_gradient(jnp.trunc(pad(low + k, length))) for k in range(-1, 3)]
        for low, length in zip(lows, size, strict=True)
    ]
    return _weighted(flat, at, weights, size)


def _positions(length: int, dtype: Any, align_corners: bool) -> np.ndarray:
    """The places of the pixels of one dimension, rounded as PyTorch rounds them.

    The last bit decides between which pixels a point lies, and so its gradient.
    """
    if length == 1:
        return np.zeros(1, dtype)
    axis = spaced(np, -1, 1, length, dtype)
    if align_corners:
        return axis
    wide = np.promote_types(dtype, np.float32)
    axis = (axis.astype(wide) * wide.type(length - 1)).astype(dtype)
    return (axis.astype(wide) / wide.type(length)).astype(dtype)


@op(
    grad_fn="AffineGridGeneratorBackward0",
    saves=(),
    method=False,
    out=False,
)
def affine_grid_generator(
    theta: Array, size: tuple[int, ...], align_corners: bool
) -> Array:
    """Where affine maps take the pixels of images of a size."""
    n = len(size) - 2
    if theta.dtype in HALF and 1 in size[2:]:
        raise NotImplementedError(
            f"\"tensor_cpu\" not implemented for '{scalar_name(theta)}'"
        )
    if theta.shape[0] != size[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{size[0]}, {n + 1}] but got: [{theta.shape[0]}, {n + 1}]."
        )
    axes = [_positions(length, theta.dtype, align_corners) for length in size[:1:-1]]
    # The first coordinate of a point belongs to the last dimension.
    axes = np.meshgrid(*reversed(axes), indexing="ij")[::-1]
    base = np.stack([*axes, np.ones(size[2:], theta.dtype)], axis=-1)
    points = jnp.einsum(
        "...k,nck->n...c",
        jnp.asarray(base),
        theta,
        precision=PRECISION,
        preferred_element_type=jnp.float32 if theta.dtype in HALF else None,
    )
    return points.astype(theta.dtype)
