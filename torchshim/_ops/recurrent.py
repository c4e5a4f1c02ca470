"""Recurrent networks over whole sequences: one layer in one direction an operator.

The steps are one `jax.lax.scan` (`_recurrence`): neither the program nor the time to
compile it grows with the length of the sequence. A packed batch
(`nn.utils.rnn.PackedSequence`) has its rows spread over steps and sequences; sequences
that have ended keep their state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.op import Array, Arrays, Scalar, op
from torchshim._ops._common import broadcast_shapes, scalar_name
from torchshim._ops._recurrence import (
    ELMAN,
    GRU,
    LSTM,
    Cell,
    State,
    linear,
    plain_steps,
    steps,
)
from torchshim._ops._reducing import wide

# What oneDNN computes an LSTM of in PyTorch.
ONEDNN = dtypes.float32, dtypes.bfloat16


def _check(input: Array, states: State, w_ih: Array, w_hh: Array) -> None:
    for x, weight in ((input, w_ih), (states[0], w_hh)):
        if x.dtype != weight.dtype:
            raise RuntimeError(
                "mat1 and mat2 must have the same dtype, but got "
                f"{scalar_name(x)} and {scalar_name(weight)}"
            )
        if x.shape[-1] != weight.shape[1]:
            rows = x.size // x.shape[-1] if x.shape[-1] else 0
            raise RuntimeError(
                "mat1 and mat2 shapes cannot be multiplied "
                f"({rows}x{x.shape[-1]} and {weight.shape[1]}x{weight.shape[0]})"
            )


def _layer(
    cell: Cell,
    gates: Array,
    weight: Array,
    bias: Array | None,
    batch_sizes: Array | None,
    states: State,
    reverse: bool,
    dtype: Any,
    run: Any = steps,
) -> State:
    """All steps: the outputs, and the states after the last.

    `gates`: what the inputs give to the gates, of shape (L, N, gates) or packed.
    """
    if batch_sizes is None:
        for state in states:
            if state.shape[0] != gates.shape[1]:
                raise RuntimeError(
                    f"output with shape {list(state.shape)} doesn't match the "
                    f"broadcast shape {[gates.shape[1], *state.shape[1:]]}"
                )
        states, outputs = run(cell, reverse, gates, weight, bias, states, None)
        return tuple(x.astype(dtype) for x in (outputs, *states))

    total, batch = gates.shape[0], states[0].shape[0]
    ends = jnp.cumsum(batch_sizes)
    starts = ends - batch_sizes
    row = jnp.arange(batch)
    spread = gates[jnp.clip(starts[:, None] + row, 0, max(total - 1, 0))]
    running = (row < batch_sizes[:, None])[..., None]
    states, outputs = run(cell, reverse, spread, weight, bias, states, running)
    place = jnp.arange(total)
    at = jnp.cumsum(jnp.zeros_like(place).at[ends].add(1, mode="drop"))
    outputs = outputs[at, place - starts[at]]
    return tuple(x.astype(dtype) for x in (outputs, *states))


def _node(packed: str, dense: str) -> Callable[..., str]:
    def name(input: Any, batch_sizes: Any, *rest: Any) -> str:
        return dense if batch_sizes is None else packed

    return name


def _lstm_node(input: Any, batch_sizes: Any, *rest: Any) -> str:
    # What oneDNN computes in PyTorch is one node.
    if batch_sizes is not None:
        return "CatBackward0"
    whole = input.dtype in ONEDNN and input.shape[1]
    return "MkldnnRnnLayerBackward0" if whole and rest[6] is None else "StackBackward0"


_INNER: dict[str, Any] = {"namespaces": (), "method": False}


@op(
    grad_fn=_lstm_node,
    differentiable=(
        *("input", "hx", "cx", "w_ih", "w_hh"),
        *("b_ih", "b_hh", "w_hr"),
    ),
    edges=("input", "hx", "cx", "w_ih", "b_ih", "w_hh", "b_hh", "w_hr"),
    **_INNER,
)
def lstm_layer(
    input: Array,
    batch_sizes: Array | None,
    hx: Array,
    cx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    w_hr: Array | None,
    reverse: bool,
) -> tuple[Array, Array, Array]:
    """One LSTM layer: the outputs, the last hidden state, the last cell state."""
    _check(input, (hx, cx), w_ih, w_hh)
    dtype = input.dtype
    bias = None if b_ih is None or b_hh is None else wide(b_ih) + wide(b_hh)
    gates = linear(wide(input), wide(w_ih), bias)
    states = wide(hx), wide(cx).astype(wide(hx).dtype)
    cell, run = LSTM, steps
    if w_hr is not None:
        project = wide(w_hr)

        def step(states: State, *gates: Any) -> tuple[State, State]:
            (hidden, cell), values = LSTM.step(states, *gates)
            return (linear(hidden, project), cell), values

        cell, run = LSTM._replace(step=step), plain_steps
    given = gates, wide(w_hh), None, batch_sizes, states, reverse, dtype
    out, hy, cy = _layer(cell, *given, run)
    return out, hy, cy


@op(
    grad_fn=_node("CatBackward0", "StackBackward0"),
    differentiable=("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh"),
    edges=("b_hh", "w_hh", "b_ih", "w_ih", "hx", "input"),
    **_INNER,
)
def gru_layer(
    input: Array,
    batch_sizes: Array | None,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reverse: bool,
) -> tuple[Array, Array]:
    """One layer of gated recurrent units: the outputs, the last hidden state."""
    _check(input, (hx,), w_ih, w_hh)
    own = None if b_hh is None else wide(b_hh)
    gates = linear(wide(input), wide(w_ih), None if b_ih is None else wide(b_ih))
    given = gates, wide(w_hh), own, batch_sizes, (wide(hx),), reverse, input.dtype
    out, hy = _layer(GRU, *given)
    return out, hy


@op(
    grad_fn=_node("CatBackward0", "StackBackward0"),
    differentiable=("input", "hx", "w_ih", "w_hh", "b_ih", "b_hh"),
    edges=("b_hh", "w_hh", "b_ih", "w_ih", "hx", "input"),
    **_INNER,
)
def elman_layer(
    input: Array,
    batch_sizes: Array | None,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array | None,
    b_hh: Array | None,
    reverse: bool,
    nonlinearity: str,
) -> tuple[Array, Array]:
    """One layer of an Elman network: the outputs, the last hidden state."""
    _check(input, (hx,), w_ih, w_hh)
    bias = None if b_ih is None or b_hh is None else wide(b_ih) + wide(b_hh)
    gates = linear(wide(input), wide(w_ih), bias)
    given = gates, wide(w_hh), None, batch_sizes, (wide(hx),), reverse, input.dtype
    out, hy = _layer(ELMAN[nonlinearity], *given)
    return out, hy


# -- packing --------------------------------------------------------------------------


@op(
    grad_fn="PackPaddedSequenceBackward0",
    saves=("steps", "rows"),
    differentiable=("input",),
    **_INNER,
)
def pack_rows(input: Array, steps: Array, rows: Array) -> Array:
    """The rows (step, sequence) of padded sequences one after the other."""
    return input[steps, rows]


@op(
    grad_fn="CopySlices",
    saves=("source", "filled"),
    differentiable=("data",),
    **_INNER,
)
def spread_rows(
    data: Array, source: Array, filled: Array, padding_value: Scalar
) -> Array:
    """Packed rows at their places in a padded tensor, with padding elsewhere."""
    out = data[source]
    filled = filled.reshape(filled.shape + (1,) * (out.ndim - filled.ndim))
    return jnp.where(filled, out, jnp.asarray(padding_value).astype(data.dtype))


@op(grad_fn="CopySlices", saves=(), differentiable=("sequences",), **_INNER)
def pad_rows(
    sequences: Arrays, batch_first: bool, padding_value: Scalar, left: bool
) -> Array:
    """Sequences of several lengths side by side, with padding before or after."""
    first = sequences[0]
    if not first.ndim:
        raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    length = max(len(x) for x in sequences)
    value = jnp.asarray(padding_value).astype(first.dtype)
    padded = []
    for x in sequences:
        shape = (len(x), *first.shape[1:])
        missing = (length - len(x), 0) if left else (0, length - len(x))
        if x.shape != shape:
            wide = broadcast_shapes(shape, x.shape)
            if wide != shape:
                raise RuntimeError(
                    f"output with shape {list(shape)} doesn't match the broadcast "
                    f"shape {list(wide)}"
                )
            x = jnp.broadcast_to(x, shape)
        edges = [missing] + [(0, 0)] * (x.ndim - 1)
        padded.append(jnp.pad(x.astype(first.dtype), edges, constant_values=value))
    return jnp.stack(padded, 0 if batch_first else 1)
