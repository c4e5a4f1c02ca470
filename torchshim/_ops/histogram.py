"""Histograms with a fixed number of bins."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.checks import Check, packed_floats
from torchshim._core.op import Array, op
from torchshim._ops._common import quotient, without_derivative
from torchshim._ops._reducing import is_complex, not_implemented, wide
from torchshim._ops.creation import spaced


def _check_bins(bins: int) -> None:
    if bins <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
        )


def ends(x: Array) -> tuple[Array, Array]:
    """The range of the data; one around it where it is a point."""
    if not x.size:
        return jnp.zeros((), x.dtype), jnp.ones((), x.dtype)
    return opened(jnp.min(x), jnp.max(x), 0.5)


def opened(low: Array, high: Array, by: float) -> tuple[Array, Array]:
    """The range, or one around it where it is a point."""
    point = low == high
    return jnp.where(point, low - by, low), jnp.where(point, high + by, high)


def counted(
    x: Array, at: Array, inside: Array, bins: int, weight: Array | None
) -> Array:
    """The sum of the weights in each bin; the last bin is closed."""
    at = jnp.clip(at, 0, bins - 1)
    one = jnp.ones((), x.dtype) if weight is None else weight
    return jnp.zeros(bins, x.dtype).at[at].add(jnp.where(inside, one, 0))


def not_finite(name: str, x: Array) -> Check:
    """A check that the range of some numbers has ends."""
    low, high = jnp.min(x), jnp.max(x)
    bad = ~(jnp.isfinite(low) & jnp.isfinite(high))
    return Check(
        bad, RuntimeError, f"{name} [{{two}}] is not finite", packed_floats(low, high)
    )


def _finite(
    input: Array, bins: int = 100, min: float = 0, max: float = 0
) -> list[Check]:
    if min != max or not input.size or not jnp.issubdtype(input.dtype, jnp.floating):
        return []
    name = "torch.histc: range of"
    undefined = jnp.isnan(input).any()
    found = [Check(undefined, RuntimeError, f"{name} [-nan, -nan] is not finite")]
    if input.dtype.itemsize > 2:
        # Of infinities alone, PyTorch's search begins at the largest number there is.
        most = jnp.finfo(input.dtype).max
        for end, bad in (
            (f"[{most:g}, inf]", jnp.min(input) == math.inf),
            (f"[-inf, {-most:g}]", jnp.max(input) == -math.inf),
        ):
            found.append(Check(bad, RuntimeError, f"{name} {end} is not finite"))
    return [*found, not_finite(name, input)]


def _finite_bins(input: Array, bins: Any, range: Any, *others: Any) -> list[Check]:
    if range is not None or not input.size:
        return []
    return [not_finite("torch.histogramdd: dimension 0's range", input)]


def check_range(low: float, high: float, dim: int) -> None:
    """Refuses a range without ends, or whose ends are not in order."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {dim}'s range [{low:g}, {high:g}] is not "
            "finite"
        )
    if low > high:
        raise RuntimeError(
            "torch.histogramdd: min should not exceed max, but got min "
            f"{low:g} max {high:g} for dimension {dim}"
        )


@op(
    differentiable=False,
    saves=(),
    checks=_finite,
    out=(
        "torch.histogram: input tensor and hist tensor should have the "
        "same dtype, but got input {want.cpp_name} and hist {have.cpp_name}"
    ),
)
def histc(input: Array, bins: int = 100, min: float = 0, max: float = 0) -> Array:
    """How many elements fall into each of `bins` equal parts of a range."""
    _check_bins(bins)
    if not (math.isfinite(min) and math.isfinite(max)):
        raise RuntimeError(f"torch.histc: range of [{min:g}, {max:g}] is not finite")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    if is_complex(input):
        raise not_implemented("aminmax_cpu" if min == max else "histogram_cpu", input)
    if not jnp.issubdtype(input.dtype, jnp.floating):
        kernel = "linspace_cpu" if input.dtype == bool else "histogram_cpu"
        raise not_implemented(kernel, input)
    x = input.reshape(-1)
    if min == max:
        low, high = ends(x)
        if x.size:
            low, high = opened(jnp.min(x), jnp.max(x), 1)
    else:
        low, high = jnp.asarray(min, x.dtype), jnp.asarray(max, x.dtype)
    w, low, high = wide(x), wide(low), wide(high)
    at = quotient((w - low) * bins, high - low).astype(jnp.int64)
    return counted(x, at, (w >= low) & (w <= high), bins, None)


def _histogram(
    input: Array, edges: Array, at: Array, weight: Array | None, density: bool
) -> tuple[Array, Array]:
    x = input.reshape(-1)
    if weight is not None:
        same = weight.shape == input.shape
        check_weight(input, weight, same, [x.size, 1], [weight.size])
        weight = weight.reshape(-1)
    inside = (x >= edges[0]) & (x <= edges[-1])
    out = counted(x, at, inside, edges.shape[0] - 1, weight)
    if density:
        out = out / (jnp.sum(out) * jnp.diff(edges))
    return out, edges


def cpp_name(x: Array) -> str:
    """The dtype's name in C, as PyTorch writes it here."""
    return dtypes.from_array_dtype(x.dtype).cpp_name


def check_weight(
    input: Array, weight: Array, fits: bool, points: list[int], weights: list[int]
) -> None:
    """Refuses weights of another shape or dtype; the last two are shapes to be told."""
    if not fits:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same "
            "shape as the input tensor excluding its innermost dimension, but got "
            f"input with shape {points} and weight with shape {weights}"
        )
    if weight.dtype != input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight "
            "tensor should have the same dtype, but got "
            f"input({cpp_name(input)}), and weight({cpp_name(weight)})"
        )


def check_edges(input: Array, edges: Array, dim: int) -> None:
    """Refuses edges of another dtype than that of the points, or that are no line."""
    if edges.dtype != input.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same "
            f"dtype, but got input with dtype {cpp_name(input)} and bins for dimension "
            f"{dim} with dtype {cpp_name(edges)}"
        )
    if edges.ndim != 1:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have one dimension, but got "
            f"{edges.ndim} dimensions in the bins tensor for dimension {dim}"
        )
    if not edges.size:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have at least 1 element, but got "
            f"0 elements in the bins tensor for dimension {dim}"
        )


def _before(edges: Array, x: Array, right: bool) -> Array:
    """The bin whose left edge is the last not above `x`."""
    return jnp.searchsorted(edges, x, side="right" if right else "left") - 1


def check_dtype(input: Array, kernel: str) -> None:
    """Refuses what PyTorch's kernel does not cover."""
    if input.dtype not in (jnp.float32, jnp.float64):
        raise not_implemented(kernel, input)


_OTHER_DTYPES = tuple(
    f"torch.histogram: input tensor and {name} tensor should have the same dtype, but "
    f"got input {{want.cpp_name}} and {name} {{have.cpp_name}}{where}"
    for name, where in (("hist", ""), ("bin_edges", " for dimension 0"))
)


@op(
    name="histogram.edges",
    public="histogram",
    overload=True,
    grad_fn="NotImplemented",
    saves=(),
    named_result=("hist", "bin_edges"),
    out=_OTHER_DTYPES,
)
def histogram_edges(
    input: Array, bins: Array, *, weight: Array | None = None, density: bool = False
) -> tuple[Array, Array]:
    """How many elements (or what weight) fall between given edges."""
    check_edges(input, bins, 0)
    check_dtype(input, "histogram_cpu")

    @without_derivative("aten::histogram")
    def between(input: Array, bins: Array, weight: Array | None) -> Any:
        at = _before(bins, input.reshape(-1), True)
        return _histogram(input, bins, at, weight, density)

    return between(input, bins, weight)


@op(
    name="histogram.bins",
    public="histogram",
    overload=True,
    grad_fn="NotImplemented",
    saves=(),
    checks=_finite_bins,
    named_result=("hist", "bin_edges"),
    out=_OTHER_DTYPES,
)
def histogram_bins(
    input: Array,
    bins: int = 100,
    *,
    range: Any = None,
    weight: Array | None = None,
    density: bool = False,
) -> tuple[Array, Array]:
    """How many elements (or what weight) fall into equal parts of a range."""
    check_dtype(input, "histogramdd")
    _check_bins(bins)
    if range is not None:
        if len(range) != 2:
            raise RuntimeError(
                "torch.histogramdd: for a 1-dimensional histogram range should have 2 "
                f"elements, but got {len(range)}"
            )
        check_range(range[0], range[1], 0)

    @without_derivative("aten::histogram")
    def within(input: Array, weight: Array | None) -> Any:
        x = input.reshape(-1)
        if range is None:
            low, high = ends(x)
        else:
            low, high = opened(
                jnp.asarray(range[0], x.dtype), jnp.asarray(range[1], x.dtype), 0.5
            )
        edges = linspace(low, high, bins + 1)
        return _histogram(input, edges, _before(edges, x, True), weight, density)

    return within(input, weight)


def linspace(low: Array, high: Array, number: int) -> Array:
    """Edges of equal parts of a range, both ends exact: those of `torch.linspace`."""
    return spaced(jnp, low, high, number, low.dtype)
