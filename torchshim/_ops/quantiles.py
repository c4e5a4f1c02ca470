"""Quantiles, of numbers and of those that are not NaN."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.checks import Check
from torchshim._core.meta import contiguous_strides
from torchshim._core.op import Array, op
from torchshim._ops._common import is_known
from torchshim._ops._reducing import one_axis, take
from torchshim._ops.sorting import order

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(input: Array, q: Array | None, interpolation: str) -> None:
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint "
            f"or nearest, but got {interpolation}"
        )
    if not input.size:
        raise RuntimeError("quantile() input tensor must be non-empty")
    if getattr(q, "ndim", 0) > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if input.dtype not in (jnp.float32, jnp.float64):
        raise RuntimeError(
            "quantile() input tensor must be either float or double dtype"
        )
    if getattr(q, "dtype", input.dtype) != input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")


def _quantile(
    input: Array,
    q: Any,
    dim: int | None,
    keepdim: bool,
    interpolation: str,
    skip_nan: bool,
) -> Array:
    if dim is None:
        x, axis = input.reshape(-1), 0
    else:
        x, axis = one_axis(input, dim)
        x = jnp.moveaxis(x, axis, -1)
    ordered = take(x, order(x, x.ndim - 1), x.ndim - 1)
    nan = jnp.isnan(jax.lax.stop_gradient(x))
    q = jnp.asarray(q, x.dtype)
    number = jnp.sum(~nan, axis=-1, keepdims=True, dtype=x.dtype)
    if skip_nan:
        rank = q.reshape(-1) * jnp.maximum(number - 1, 0)
    else:
        rank = jnp.broadcast_to(
            q.reshape(-1) * (x.shape[-1] - 1), (*x.shape[:-1], q.size)
        )
        # A NaN anywhere is found at the end of the ordered elements.
        rank = jnp.where(number < x.shape[-1], x.shape[-1] - 1, rank)
    low, high = jnp.floor(rank), jnp.ceil(rank)
    if interpolation == "lower":
        rank = low
    elif interpolation == "higher":
        rank = high
    elif interpolation == "nearest":
        rank = jnp.round(rank)
    below = jnp.floor(rank).astype(jnp.int64)
    out = take(ordered, below, x.ndim - 1)
    if interpolation in ("linear", "midpoint"):
        above = jnp.ceil(rank).astype(jnp.int64)
        weight = 0.5 if interpolation == "midpoint" else rank - low
        upper = take(ordered, above, x.ndim - 1)
        # PyTorch's `lerp`: infinite where both ends are not the same infinity.
        span, near = upper - out, jnp.abs(weight) < 0.5
        out = jnp.where(near, out + weight * span, upper - span * (1 - weight))
    out = jnp.moveaxis(out, -1, 0)
    if keepdim and input.ndim:
        if dim is None:
            out = out.reshape((q.size,) + (1,) * input.ndim)
        else:
            out = jnp.expand_dims(out, axis + 1)
    elif dim is not None and not input.ndim:
        out = out.reshape((q.size,))
    return out if q.ndim else out[0]


def _quantile_checks(input: Array, q: Array, *_: Any) -> list[Check]:
    bad = ~((q >= 0) & (q <= 1))
    text = "quantile() q values must be in the range [0, 1]"
    return [Check(bad.any(), RuntimeError, text)]


def _quantile_flows(
    input: Array, q: Array, dim: Any, keepdim: Any, interpolation: str
) -> tuple[str, ...]:
    # The others take elements by whole numbers, which have no derivative.
    return ("input", "q") if interpolation == "linear" else ("input",)


def _check_q_number(q: float) -> None:
    if is_known(q) and not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q:g}")


def _side_by_side(shape: tuple[int, ...], operands: Any) -> Any:
    """The strides of several quantiles: first in the result, innermost in memory."""
    if not operands[1][0]:
        return None
    *rest, first = contiguous_strides((*shape[1:], shape[0]))
    return first, *rest


_QUANTILE: dict[str, Any] = {
    "saves": ("intermediate",),
    "overload": True,
    "grad_fn": "SqueezeBackward4",
    "curved": False,
    "out": "quantile() out tensor must be same dtype as the input tensor",
}
_INSIDE = {"q": (0.0, 1.0)}
# Between two elements the gradient by each is the other's place, that by `q` their
# difference.
_QUANTILES: dict[str, Any] = {
    **_QUANTILE,
    "layout": _side_by_side,
    "curved": {"input": ("q",), "q": ("input",)},
    "differentiable": _quantile_flows,
    "checks": _quantile_checks,
}


@op(name="quantile.scalar", public="quantile", varies=_INSIDE, **_QUANTILE)
def quantile_scalar(
    input: Array,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Array:
    """The `q`-th quantile along a dimension or of all elements."""
    _check_q_number(q)
    _check_quantile(input, None, interpolation)
    return _quantile(input, q, dim, keepdim, interpolation, False)


@op(name="quantile.tensor", public="quantile", **_QUANTILES)
def quantile_tensor(
    input: Array,
    q: Array,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Array:
    """The `q`-th quantiles along a dimension or of all elements."""
    _check_quantile(input, q, interpolation)
    return _quantile(input, q, dim, keepdim, interpolation, False)


@op(name="nanquantile.scalar", public="nanquantile", varies=_INSIDE, **_QUANTILE)
def nanquantile_scalar(
    input: Array,
    q: float,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Array:
    """The `q`-th quantile along a dimension or of all elements, NaNs left out."""
    _check_q_number(q)
    _check_quantile(input, None, interpolation)
    return _quantile(input, q, dim, keepdim, interpolation, True)


@op(name="nanquantile.tensor", public="nanquantile", **_QUANTILES)
def nanquantile_tensor(
    input: Array,
    q: Array,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
) -> Array:
    """The `q`-th quantiles along a dimension or of all elements, NaNs left out."""
    _check_quantile(input, q, interpolation)
    return _quantile(input, q, dim, keepdim, interpolation, True)
