"""Recurrent networks with weights of integers over whole sequences.

As in `recurrent`, but the input is rounded by a scale that all of it gives, and hidden
states step by step, by a scale that the sequences running in that step give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from torchshim._core.op import Array, op
from torchshim._ops._recurrence import GRU, LSTM, Cell, State, scan
from torchshim._ops.matmul import PRECISION
from torchshim._ops.quantized_products import all_steps, is_exact, scaled
from torchshim._ops.recurrent import _layer

_INNER: dict[str, Any] = {
    **{"namespaces": (), "method": False, "out": False},
    **{"differentiable": False, "saves": ()},
}

Linear = Callable[[Array], Array]


def _linear(
    weight: Array, scales: Array, bias: Array | None, reach: int, reduce_range: bool
) -> Linear:
    """A linear layer of numbers that are rounded by a scale which they give.

    `weight`: steps, which are at most `reach`.
    """

    def linear(x: Array) -> Array:
        steps, scale = all_steps(x, reduce_range)
        kind = jnp.float32 if is_exact(steps.shape[-1], reach) else jnp.float64
        parts = steps.astype(kind), weight.T.astype(kind)
        sums = jnp.matmul(*parts, precision=PRECISION)
        return scaled(sums, scale, scales, bias, -1)

    return linear


def _all(
    cell: Cell,
    x: Array,
    batch_sizes: Array | None,
    states: State,
    of_input: Linear,
    of_hidden: Linear,
    reverse: bool,
) -> State:
    """All steps: the outputs, and the states after the last."""

    def run(
        cell: Cell,
        reverse: bool,
        gates: Array,
        weight: Any,
        bias: Any,
        states: State,
        running: Array | None,
    ) -> tuple[State, Array]:
        def turn(carry: State, given: Any) -> tuple[State, Array]:
            parts, runs = given
            hidden = carry[0] if runs is None else jnp.where(runs, carry[0], 0)
            product = jnp.split(of_hidden(hidden), cell.gates, axis=-1)
            new, _ = cell.step(carry, parts, product)
            if runs is not None:
                pairs = zip(new, carry, strict=True)
                new = tuple(jnp.where(runs, a, b) for a, b in pairs)
            return new, new[0]

        parts = jnp.split(gates, cell.gates, axis=-1)
        return scan(turn, states, (parts, running), reverse)

    given = cell, of_input(x), None, None, batch_sizes, states, reverse, x.dtype
    return _layer(*given, run)


@op(**_INNER)
def quantized_lstm_layer(
    input: Array,
    batch_sizes: Array | None,
    hx: Array,
    cx: Array,
    w_ih: Array,
    w_hh: Array,
    scales_ih: Array,
    scales_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reach: int,
    reduce_range: bool,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    """One LSTM layer: the outputs, the last hidden state, the last cell state."""
    of_input = _linear(w_ih, scales_ih, b_ih, reach, reduce_range)
    of_hidden = _linear(w_hh, scales_hh, b_hh, reach, reduce_range)
    states, layers = (hx, cx), (of_input, of_hidden)
    out, hy, cy = _all(LSTM, input, batch_sizes, states, *layers, reverse)
    return out, hy, cy


@op(**_INNER)
def quantized_gru_layer(
    input: Array,
    batch_sizes: Array | None,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    scales_ih: Array,
    scales_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reach: int,
    reduce_range: bool,
    reverse: bool,
) -> tuple[Array, Array]:
    """One layer of gated recurrent units: the outputs, the last hidden state."""
    of_input = _linear(w_ih, scales_ih, b_ih, reach, reduce_range)
    of_hidden = _linear(w_hh, scales_hh, b_hh, reach, reduce_range)
    out, hy = _all(GRU, input, batch_sizes, (hx,), of_input, of_hidden, reverse)
    return out, hy
