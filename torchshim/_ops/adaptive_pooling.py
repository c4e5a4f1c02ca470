"""Pooling to a given number of windows, which may be of unequal size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.extent import COUNTS, check_extent, too_many_elements
from torchshim._core.linearize import is_forward
from torchshim._core.op import Array
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    refuse,
    widened,
)
from torchshim._ops._formats import signal_layout
from torchshim._ops._windows import Ints, in_rows, largest_in_rows, positions_in
from torchshim._ops.pooling import WITH_PLACES, average_op, pool_op
from torchshim._ops.reduction import mean

# So many windows are taken one by one, which is faster than by their places.
_MANY = 32

# Windows of unequal size -------------------------------------------------------------


def _bins(size: int, out: int) -> list[tuple[int, int]]:
    at = np.arange(out)  # which has no room where the result has none
    begins, ends = at * size // out, -(-(at + 1) * size // out)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def _adaptive_sizes(pool: str, input: Array, output_size: Any, n: int) -> Ints:
    values = (output_size,) * n if isinstance(output_size, int) else tuple(output_size)
    colon = ":" if "max" in pool else ""
    if input.ndim not in (n + 1, n + 2):
        if n == 1:
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor "
                f"for argument #1 'self' (while checking arguments for {pool})"
            )
        raise RuntimeError(
            f"{pool}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} "
            f"{list(input.shape)}"
        )
    if len(values) != n:
        if n == 1:
            raise RuntimeError(
                f"{pool}() argument 'output_size' should contain one int "
                f"(got {len(values)})"
            )
        if "max" in pool:
            raise RuntimeError(
                f"{pool}(): internal error: output_size.size() must be {n}"
            )
        raise RuntimeError(f"{pool}: output_size must be {n}")
    sizes = tuple(input.shape[i - n] if v is None else v for i, v in enumerate(values))
    if min(sizes) < 0:
        if "max" in pool:
            shape = [*input.shape[:-n], *(1,) * (n == 1), *sizes]
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {min(sizes)}: {shape}"
            )
        # PyTorch averages a signal as an image of one row.
        pool = "adaptive_avg_pool2d" if n == 1 else pool
        inner = ", ".join(map(str, (1, *sizes) if n == 1 else sizes[:2]))
        third = f",{sizes[2]}" if n == 3 else ""
        raise RuntimeError(
            f"{pool}: elements of output_size must be greater than or equal to 0 but "
            f"received {{{inner}{third}}}"
        )
    shape = list(input.shape)
    if pool == "adaptive_avg_pool1d":
        # PyTorch pools in two dimensions.
        pool, shape = "adaptive_avg_pool2d", [*shape[:-1], 1, shape[-1]]
    # Planes may be none where two dimensions are averaged.
    first = len(shape) - 2 if pool == "adaptive_avg_pool2d" else 1
    for i in range(first, len(shape)):
        if not shape[i]:
            raise RuntimeError(
                f"{pool}(): Expected input to have non-zero size for non-batch "
                f"dimensions, but input has sizes {shape} with dimension {i} being "
                "empty"
            )
    _check_room(pool, [*shape[: input.ndim - n], *(1,) * (n == 1), *sizes], input)
    return sizes


def _check_room(pool: str, shape: list[int], input: Array) -> None:
    """Refuses results that do not fit."""
    if "avg" in pool and math.prod(shape) >= COUNTS:
        raise too_many_elements()
    check_extent(shape, input.dtype.itemsize)  # windows are made one by one


def _is_one(n: int, input: Any, output_size: Any) -> bool:
    """Whether there is one window in all."""
    if n == 1:
        return output_size in (1, (1,)) and input.ndim in (2, 3)
    if isinstance(output_size, int):
        return output_size == 1
    sizes = zip(output_size, input.shape[-n:], strict=False)
    return len(output_size) == n and all(
        (a if a is not None else b) == 1 for a, b in sizes
    )


def _nothing(n: int, pool: str, input: Array, sizes: Ints) -> Array:
    """A result without elements, of which PyTorch refuses a gradient."""
    shape = (*input.shape[:-n], *sizes)

    @jax.custom_jvp
    def empty(x: Array) -> Array:
        return jnp.zeros(shape, x.dtype)

    @empty.defjvp
    def tangent(primals: Any, tangents: Any) -> Any:
        if is_forward():
            return empty(*primals), empty(*tangents)
        name, given = pool, list(shape)
        if n == 1:
            name, given = pool.replace("1d", "2d"), [*shape[:-1], 1, shape[-1]]
        first = next(i for i in range(1, len(given)) if not given[i])
        raise RuntimeError(
            f"{name}_backward(): Expected grad_output to have non-zero size for "
            f"non-batch dimensions, but grad_output has sizes {given} with dimension "
            f"{first} being empty"
        )

    return empty(input)


def _in_uneven_rows(x: Array, axis: int, out: int) -> Array:
    """A dimension as windows; a short one has its last element twice."""
    bins = _bins(x.shape[axis], out)
    reach = max(b - a for a, b in bins)
    if out > _MANY:
        places = [np.minimum(np.arange(a, a + reach), b - 1) for a, b in bins]
        return jnp.take(x, np.array(places, np.int64).reshape(out, reach), axis)
    rows = []
    for a, b in bins:
        row = lax.slice_in_dim(x, a, b, axis=axis)
        if b - a < reach:
            last = lax.slice_in_dim(x, b - 1, b, axis=axis)
            row = jnp.concatenate([row, last], axis)
        rows.append(row)
    return jnp.stack(rows, axis)


def _adaptive_avg(n: int, input: Array, output_size: Any) -> Array:
    pool = f"adaptive_avg_pool{n}d"
    if _is_one(n, input, output_size):
        # PyTorch's way, without the checks and in all dtypes.
        return mean(input, tuple(range(-1, -n - 1, -1)), True)
    sizes = _adaptive_sizes(pool, input, output_size, n)
    kernel = "adaptive_avg_pool3d_cpu" if n == 3 else "adaptive_avg_pool2d"
    refuse(kernel, input, BOOL + INT + COMPLEX)
    if 0 in sizes:
        return _nothing(n, pool, input, sizes)
    x = widened(input)
    for i, out in enumerate(sizes):
        axis = x.ndim - n + i
        size = x.shape[axis]
        if out == size:
            continue
        if size % out == 0:
            x = in_rows(x, axis, out, size // out).mean(axis + 1)
        elif out > _MANY:
            counts = np.array([b - a for a, b in _bins(size, out)])
            tail = (1,) * (x.ndim - axis - 1)
            whole = np.arange(counts.max()) < counts[:, None]
            rows = _in_uneven_rows(x, axis, out)
            x = jnp.where(whole.reshape(*whole.shape, *tail), rows, 0)
            x = x.sum(axis + 1) / counts.astype(x.dtype).reshape(-1, *tail)
        else:
            means = [
                lax.slice_in_dim(x, a, b, axis=axis).mean(axis)
                for a, b in _bins(size, out)
            ]
            x = jnp.stack(means, axis)
    return x.astype(input.dtype)


@average_op("SqueezeBackward1", "torch", "nn.functional", layout=signal_layout)
def adaptive_avg_pool1d(input: Array, output_size: int | Ints) -> Array:
    """Means of as many windows as asked for."""
    return _adaptive_avg(1, input, output_size)


def _avg_node(n: int) -> Callable[..., str]:
    def node(input: Any, output_size: Any) -> str:
        ones = _is_one(n, input, output_size)
        return "MeanBackward1" if ones else f"AdaptiveAvgPool{n}DBackward0"

    return node


@pool_op(_avg_node(2))
def adaptive_avg_pool2d(input: Array, output_size: Any) -> Array:
    """Means of as many windows as asked for in each dimension."""
    return _adaptive_avg(2, input, output_size)


@pool_op(_avg_node(3), layout=None)
def adaptive_avg_pool3d(input: Array, output_size: Any) -> Array:
    """Means of as many windows as asked for in each dimension."""
    return _adaptive_avg(3, input, output_size)


def _adaptive_max(n: int, input: Array, output_size: Any) -> tuple[Array, Array]:
    pool = f"adaptive_max_pool{n}d"
    sizes = _adaptive_sizes(pool, input, output_size, n)
    kernel = "adaptive_max_pool2d" if n < 3 else "adaptive_max_pool3d_cpu"
    refuse(kernel, input, BOOL + INT + COMPLEX)
    if 0 in sizes:
        nothing = _nothing(n, pool, input, sizes)
        return nothing, jnp.zeros(nothing.shape, jnp.int64)
    x, at = input, positions_in(input, n)
    for i in reversed(range(n)):
        axis = x.ndim - n + i
        out, size = sizes[i], x.shape[axis]
        if size % out == 0:
            x, at = (in_rows(v, axis, out, size // out) for v in (x, at))
        else:
            x, at = (_in_uneven_rows(v, axis, out) for v in (x, at))
        x, at = largest_in_rows(x, at, axis + 1)
    return x, at


@pool_op("SqueezeBackward1", signal_layout, **WITH_PLACES)
def adaptive_max_pool1d(input: Array, output_size: Any) -> tuple[Array, Array]:
    """The largest elements of as many windows as asked for, and where they stand."""
    return _adaptive_max(1, input, output_size)


@pool_op("AdaptiveMaxPool2DBackward0", **WITH_PLACES)
def adaptive_max_pool2d(input: Array, output_size: Any) -> tuple[Array, Array]:
    """The largest elements of as many windows as asked for, and where they stand."""
    return _adaptive_max(2, input, output_size)


@pool_op("AdaptiveMaxPool3DBackward0", layout=None, **WITH_PLACES)
def adaptive_max_pool3d(input: Array, output_size: Any) -> tuple[Array, Array]:
    """The largest elements of as many windows as asked for, and where they stand."""
    return _adaptive_max(3, input, output_size)
