"""`histogramdd`: counts of points in boxes of several dimensions."""

from __future__ import annotations

import builtins
import math
from typing import Any

import jax.numpy as jnp

from torchshim._core.checks import Check
from torchshim._core.op import Array, Arrays, op
from torchshim._ops import histogram
from torchshim._ops._common import without_derivative


def _finite(input: Array, bins: Any, range: Any, weight: Any) -> list[Check]:
    if range is not None or not input.size:
        return []
    return [
        histogram.not_finite(f"torch.histogramdd: dimension {i}'s range", input[..., i])
        for i in builtins.range(input.shape[-1])
    ]


@op(
    name="histogramdd_edges",
    grad_fn="NotImplemented",
    saves=(),
    checks=_finite,
    method=False,
    namespaces=(),
)
def histogramdd_edges(
    input: Array, bins: Any, range: Any, weight: Array | None
) -> tuple[Array, ...]:
    """Edges of `bins[i]` equal parts of each dimension of the points.

    They have a history where the weights have one, as in PyTorch.
    """

    @without_derivative("aten::_histogramdd_bin_edges")
    def edges(input: Array, weight: Array | None) -> tuple[Array, ...]:
        return _edges(input, bins, range)

    return edges(input, weight)


def _points(input: Array) -> Array:
    """The points as rows, also those without dimensions."""
    return input.reshape(math.prod(input.shape[:-1]), input.shape[-1])


def _edges(input: Array, bins: Any, range: Any) -> tuple[Array, ...]:
    points = _points(input)
    if range is None and input.size:
        histogram.check_dtype(input, "histogramdd")  # the kernel that finds the range
    edges = []
    for i, number in enumerate(bins):
        if number <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {number} for dimension "
                f"{i}"
            )
        if range is None:
            low, high = histogram.ends(points[:, i])
        else:
            low, high = range[2 * i : 2 * i + 2]
            histogram.check_range(low, high, i)
            low, high = histogram.opened(
                jnp.asarray(low, input.dtype), jnp.asarray(high, input.dtype), 0.5
            )
        edges.append(histogram.linspace(low, high, number + 1))
    return tuple(edges)


@op(
    name="histogramdd_counts",
    grad_fn="NotImplemented",
    saves=(),
    method=False,
    namespaces=(),
)
def histogramdd_counts(
    input: Array, edges: Arrays, weight: Array | None, density: bool, given: str
) -> Array:
    """How many points, or what weight of them, fall into each box.

    `given`: how edges are given, in the name that PyTorch has for this.
    """

    @without_derivative(f"aten::_histogramdd_from_bin_{given}")
    def counts(input: Array, edges: Arrays, weight: Array | None) -> Array:
        return _counts(input, edges, weight, density)

    return counts(input, edges, weight)


def _counts(input: Array, edges: Arrays, weight: Array | None, density: bool) -> Array:
    histogram.check_dtype(input, "histogram_cpu")
    points = _points(input)
    for i, each in enumerate(edges):
        histogram.check_edges(input, each, i)
    if weight is not None:
        shapes = list(input.shape), list(weight.shape)
        same = weight.shape == input.shape[:-1]
        histogram.check_weight(input, weight, same, *shapes)
        weight = weight.reshape(-1)
    sizes = [each.shape[0] - 1 for each in edges]
    place = jnp.zeros(points.shape[0], int)
    inside = jnp.ones(points.shape[0], bool)
    for i, (each, size) in enumerate(zip(edges, sizes, strict=True)):
        x = points[:, i]
        inside &= (x >= each[0]) & (x <= each[-1])
        at = jnp.searchsorted(each, x, side="right") - 1
        place = place * size + jnp.clip(at, 0, max(size - 1, 0))
    if not sizes:  # no box, which PyTorch has a zero for
        inside &= False
    out = histogram.counted(points, place, inside, math.prod(sizes), weight)
    out = out.reshape(sizes)
    if density:
        out = out / jnp.sum(out)
        for i, each in enumerate(edges):
            shape = [-1 if j == i else 1 for j in range(len(sizes))]
            out = out / jnp.diff(each).reshape(shape)
    return out
