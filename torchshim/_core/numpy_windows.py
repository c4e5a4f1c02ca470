"""What JAX's primitives do with windows of arrays, in NumPy: see `numpy_rules`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from torchshim._core.numpy_rules import Function, NoRule, product, rule
from torchshim._core.numpy_shapes import padded

# Elements of windows that are copied at once, as the rows of a matrix.
_COPIED = 4_000_000


@rule("conv_general_dilated")
def _convolution(eqn: Any) -> Function:
    params, made = eqn.params, eqn.outvars[0].aval
    if any(v.aval.dtype != made.dtype for v in eqn.invars):
        raise NoRule
    numbers = params["dimension_numbers"]
    x, kernel = (
        [aval.shape[d] for d in spec]
        for aval, spec in zip(
            (v.aval for v in eqn.invars),
            (numbers.lhs_spec, numbers.rhs_spec),
            strict=True,
        )
    )
    count, outputs, *places = (made.shape[d] for d in numbers.out_spec)
    channels, window = kernel[1], kernel[2:]
    # Channels, or examples, of which each part goes with its own part of the outputs.
    groups, batches = params["feature_group_count"], params["batch_group_count"]
    parts = max(groups, batches)
    config = [
        (low, high, between - 1)
        for (low, high), between in zip(
            params["padding"], params["lhs_dilation"], strict=True
        )
    ]
    pad = padded(x, [(0, 0, 0), (0, 0, 0), *config])
    area, inner = math.prod(places), channels * math.prod(window)
    turn = max(1, _COPIED // max(1, parts * area * inner))
    back = np.argsort(numbers.out_spec)

    def convolve(given: Any, weight: Any) -> Any:
        given = pad(np.transpose(given, numbers.lhs_spec), given.dtype.type(0))
        matrices = np.reshape(
            np.transpose(weight, numbers.rhs_spec), (parts, outputs // parts, inner)
        )
        matrices = np.swapaxes(matrices, 1, 2)
        example, channel, *along = given.strides
        part = example * count if batches > 1 else channel * channels
        seen = as_strided(
            given,
            (parts, count, *places, channels, *window),
            (
                part,
                example,
                *(s * n for s, n in zip(along, params["window_strides"], strict=True)),
                channel,
                *(s * n for s, n in zip(along, params["rhs_dilation"], strict=True)),
            ),
            writeable=False,
        )
        found = np.empty((count, parts, outputs // parts, area), given.dtype)
        for first in range(0, count, turn):
            some = seen[:, first : first + turn]
            rows = np.reshape(some, (parts, some.shape[1] * area, inner))
            made_of = np.reshape(
                product(rows, matrices), (parts, -1, area, outputs // parts)
            )
            found[first : first + turn] = np.transpose(made_of, (1, 0, 3, 2))
        return np.transpose(np.reshape(found, (count, outputs, *places)), back)

    return convolve if made.size and inner else _zeros(made)


def _zeros(aval: Any) -> Function:
    return lambda *given: np.zeros(aval.shape, aval.dtype)


class _Windows:
    """The windows of an operand, as one piece of it for each place in a window."""

    def __init__(self, operand: Any, params: Any, places: Sequence[int]) -> None:
        rank = operand.ndim
        between = params.get("base_dilation") or (1,) * rank
        config = [
            (low, high, apart - 1)
            for (low, high), apart in zip(params["padding"], between, strict=True)
        ]
        self.window = params["window_dimensions"]
        self.steps = params["window_strides"]
        self.apart = params.get("window_dilation") or (1,) * rank
        self.places = places
        self.pad = padded(operand.shape, config)

    def pieces(self) -> Iterator[tuple[slice, ...]]:
        for place in itertools.product(*map(range, self.window)):
            yield tuple(
                slice(at * apart, at * apart + (n - 1) * step + 1, step)
                for at, apart, n, step in zip(
                    place, self.apart, self.places, self.steps, strict=True
                )
            )


def _least(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _most(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def _windowed(combine: Function, start: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def make(eqn: Any) -> Function:
        operand, made = eqn.invars[0].aval, eqn.outvars[0].aval
        if operand.dtype == np.bool_:
            raise NoRule
        windows = _Windows(operand, eqn.params, made.shape)
        fill = operand.dtype.type(start(operand.dtype))

        def reduce(x: Any) -> Any:
            x = windows.pad(x, fill)
            found = np.full(made.shape, fill)
            for piece in windows.pieces():
                combine(found, x[piece], out=found)
            return found

        return reduce if made.size else _zeros(made)

    return make


rule("reduce_window_sum")(_windowed(np.add, lambda dtype: 0))
rule("reduce_window_max")(_windowed(np.maximum, _least))
rule("reduce_window_min")(_windowed(np.minimum, _most))


def _chosen(eqn: Any, operand: Any) -> tuple[Any, Any]:
    """What chooses one element of each window, and what is never chosen."""
    name = eqn.params["select_prim"].name
    if name not in ("ge", "le") or operand.dtype.kind != "f":
        raise NoRule
    keeps: Any = np.greater_equal if name == "ge" else np.less_equal
    return keeps, operand.dtype.type(-np.inf if name == "ge" else np.inf)


@rule("select_and_scatter_add")
def _select_and_scatter_add(eqn: Any) -> Function:
    source, operand = (v.aval for v in eqn.invars)
    windows = _Windows(operand, eqn.params, source.shape)
    keeps, fill = _chosen(eqn, operand)
    inside = tuple(
        slice(low, low + n)
        for (low, _), n in zip(eqn.params["padding"], operand.shape, strict=True)
    )

    def scatter(given: Any, x: Any) -> Any:
        x = windows.pad(x, fill)
        best: Any = None
        chosen = np.zeros(source.shape, np.int64)
        for k, piece in enumerate(windows.pieces()):
            if best is None:
                best = x[piece]
                continue
            kept = keeps(best, x[piece])
            best = np.where(kept, best, x[piece])
            chosen = np.where(kept, chosen, k)
        found = np.zeros_like(x)
        for k, piece in enumerate(windows.pieces()):
            found[piece] += np.where(chosen == k, given, given.dtype.type(0))
        return found[inside]

    return scatter
