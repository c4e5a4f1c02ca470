"""The largest elements of windows, by each of the ways, against one loop in NumPy."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import numpy as np
import pytest

from torchshim._ops import _windows
from torchshim._ops.adaptive_pooling import (
    _MANY,
    _bins,
    adaptive_avg_pool1d,
    adaptive_max_pool2d,
)

# Size, kernel, stride, padding and dilation of a dimension.
Dimension = tuple[int, int, int, int, int]

# Small windows, large ones side by side (with a rest, one alone), large ones that
# overlap, gaps, padding.
DIMENSIONS: list[Dimension] = [
    *((6, 2, 2, 0, 1), (7, 3, 2, 1, 1), (12, 4, 4, 0, 1), (14, 4, 4, 0, 1)),
    *((9, 9, 9, 0, 1), (9, 9, 2, 0, 1), (13, 5, 1, 2, 1), (13, 7, 3, 3, 1)),
    *((16, 6, 2, 1, 2), (10, 5, 7, 2, 1), (12, 8, 1, 0, 1), (11, 5, 5, 2, 1)),
]


def _values(shape: tuple[int, ...], kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if kind == "equal":
        return rng.integers(0, 3, shape).astype(np.float32)
    x = rng.normal(size=shape).astype(np.float32)
    if kind == "lost":
        x[rng.random(shape) < 0.15] = np.nan
        x[rng.random(shape) < 0.15] = -np.inf
    return x


def _out(dimension: Dimension) -> int:
    size, kernel, stride, padding, dilation = dimension
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _expected(x: np.ndarray, places: list[list[list[int]]]) -> tuple[Any, Any]:
    """The first of the largest in each window, or the last NaN; its flat place."""
    n = len(places)
    out = tuple(map(len, places))
    value = np.empty(x.shape[: x.ndim - n] + out, x.dtype)
    at = np.empty(value.shape, np.int64)
    rows = x.reshape(-1, *x.shape[x.ndim - n :])
    for k, where in itertools.product(range(len(rows)), np.ndindex(out)):
        best: Any = None
        for point in itertools.product(*(places[d][i] for d, i in enumerate(where))):
            element = rows[k][point]
            if best is None or element > best[0] or np.isnan(element):
                best = element, np.ravel_multi_index(point, rows[k].shape)
        value.reshape(-1, *out)[(k, *where)], at.reshape(-1, *out)[(k, *where)] = best
    return value, at


def _seen(dimension: Dimension) -> list[list[int]]:
    size, kernel, stride, padding, dilation = dimension
    starts = (i * stride - padding for i in range(_out(dimension)))
    return [
        [p for k in range(kernel) if 0 <= (p := start + k * dilation) < size]
        for start in starts
    ]


# Compiled once for the kinds of values.
_adaptive_largest = jax.jit(adaptive_max_pool2d, static_argnums=1)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _largest(x: Any, windows: Any, out: Any, with_places: bool) -> Any:
    places = _windows.positions_in(x, len(out)) if with_places else None
    return _windows.largest(x, list(windows), out, places)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _derivatives(x: Any, windows: Any, out: Any, weight: Any, tangent: Any) -> Any:
    def function(x: Any) -> Any:
        return _windows.largest(x, list(windows), out, None)[0]

    return jax.vjp(function, x)[1](weight)[0], jax.jvp(function, (x,), (tangent,))[1]


@pytest.mark.parametrize("kind", ["plain", "equal", "lost"])
@pytest.mark.parametrize("first", DIMENSIONS)
def test_largest(first: Dimension, kind: str) -> None:
    second = DIMENSIONS[(DIMENSIONS.index(first) + 5) % len(DIMENSIONS)]
    sizes, *rest = zip(first, second, strict=True)
    x = _values((2, *sizes), kind)
    windows = tuple(_windows.windows_of(sizes, *rest))
    out = _out(first), _out(second)
    value, at = _expected(x, [_seen(first), _seen(second)])
    with jax.enable_x64(True):
        found, places = _largest(x, windows, out, True)
        alone, none = _largest(x, windows, out, False)
    assert none is None
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(places, at)
    np.testing.assert_array_equal(alone, value)


@pytest.mark.parametrize("kind", ["plain", "equal", "lost"])
@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_gradients_go_to_the_places(dimension: Dimension, kind: str) -> None:
    x = _values((3, dimension[0]), kind)
    windows = tuple(_windows.windows_of(*((v,) for v in dimension)))
    out = (_out(dimension),)
    _, at = _expected(x, [_seen(dimension)])
    weight = np.arange(1.0, 1 + at.size).reshape(at.shape).astype(np.float32)
    expected = np.zeros_like(x)
    np.add.at(expected, (np.arange(3)[:, None], at), weight)
    pulled, pushed = _derivatives(x, windows, out, weight, expected)
    np.testing.assert_array_equal(pulled, expected)
    np.testing.assert_array_equal(pushed, np.take_along_axis(expected, at, 1))


@pytest.mark.parametrize("kind", ["plain", "equal", "lost"])
@pytest.mark.parametrize(
    ("size", "out"), [(12, 4), (13, 5), (7, 1), (5, 8), (50, _MANY + 5), (6, 6)]
)
def test_adaptive(size: int, out: int, kind: str) -> None:
    x = _values((2, 3, 4, size), kind)
    places = [
        [list(range(a, b)) for a, b in _bins(n, m)] for n, m in ((4, 3), (size, out))
    ]
    value, at = _expected(x, places)
    with jax.enable_x64(True):
        found, where = _adaptive_largest(x, (3, out))
    np.testing.assert_array_equal(found, value)
    np.testing.assert_array_equal(where, at)


@pytest.mark.parametrize(("size", "out"), [(12, 4), (13, 5), (5, 8), (99, _MANY + 5)])
def test_adaptive_means(size: int, out: int) -> None:
    x = _values((2, 3, size), "plain")
    expected = [x[..., a:b].mean(-1) for a, b in _bins(size, out)]
    found = jax.jit(lambda x: adaptive_avg_pool1d(x, out))(x)
    np.testing.assert_allclose(found, np.stack(expected, -1), rtol=1e-5, atol=1e-6)
    # What is not finite stays in its windows.
    x[..., 1], x[..., -1] = np.inf, np.nan
    expected = [x[..., a:b].mean(-1) for a, b in _bins(size, out)]
    found = jax.jit(lambda x: adaptive_avg_pool1d(x, out))(x)
    np.testing.assert_allclose(found, np.stack(expected, -1), rtol=1e-5, atol=1e-6)
