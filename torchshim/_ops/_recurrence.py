"""Steps of recurrent layers as one loop, and their tangents as another.

Left to JAX, the loop's gradient would save what each function within a step needs,
piece by piece, and add up the gradient of the weights in every step. Here what a step's
tangents are multiplied with is computed for all steps at once, outside of the loop,
and so is what tangents of the weights give: transposed, one product for all steps.
Measured in `docs/compilation.md`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero

from torchshim._core.op import Array
from torchshim._ops.matmul import PRECISION

State = tuple[Array, ...]
Parts = Sequence[Array]


class Cell(NamedTuple):
    """A kind of step. Shapes are (N, H) in a step, (L, N, H) for all of them."""

    gates: int
    # States, what the input gives to each gate and what the hidden state gives: the new
    # states, and values for `factors`.
    step: Callable[[State, Parts, Parts], tuple[State, State]]
    # States before and after each step, and its values: what tangents are multiplied
    # with.
    factors: Callable[[State, State, State], State]
    # Tangents of states, of what all gates are given from outside of the loop and of
    # what the hidden state gives them, and the factors: tangents of the new states.
    tangent: Callable[[State, Array, Array, State], State]
    # What the tangents of weight and bias give, as if it came from outside.
    entering: Callable[[Array, State], Array] = lambda given, values: given


def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """`x @ weight.T + bias`."""
    y = jnp.matmul(x, weight.T, precision=PRECISION)
    return y if bias is None else y + bias


def scan(
    turn: Callable[[State, Any], tuple[State, Any]],
    states: State,
    given: Any,
    reverse: bool,
) -> tuple[State, Any]:
    """`lax.scan`, but for a single step, a decoder's: XLA takes half as long for it."""
    if jax.tree.leaves(given)[0].shape[0] != 1:
        return lax.scan(turn, states, given, reverse=reverse)
    states, output = turn(states, jax.tree.map(lambda x: x[0], given))
    return states, jax.tree.map(lambda x: x[None], output)


def plain_steps(
    cell: Cell,
    reverse: bool,
    gates: Array,
    weight: Array,
    bias: Array | None,
    states: State,
    running: Array | None,
) -> tuple[State, Array]:
    """All steps: the states after the last, and the hidden states after each.

    `gates`: what the inputs give to the gates, of shape (L, N, gates * H). `weight` and
    `bias` make of the hidden state what is added. Where `running`, of shape (L, N, 1),
    is false, the states are kept. Differentiated by JAX, as they are written.
    """
    operands = gates, weight, bias, states, running
    states, (after, _) = _values(cell, reverse, operands)
    return states, after[0]


#: `plain_steps` with the tangents of this page: the cell must not close over arrays.
steps = jax.custom_jvp(plain_steps, nondiff_argnums=(0, 1))


def _values(
    cell: Cell, reverse: bool, operands: Any
) -> tuple[State, tuple[State, State]]:
    """The states after the last step; those after each, and each step's values."""
    gates, weight, bias, states, running = operands

    def turn(carry: State, given: Any) -> tuple[State, tuple[State, State]]:
        parts, runs = given
        product = linear(carry[0], weight, bias)
        new, values = cell.step(carry, parts, jnp.split(product, cell.gates, axis=-1))
        new = _kept(runs, new, carry)
        return new, (new, values)

    # An array for each gate: where XLA takes several pieces out of one slice of an
    # array, it does not compute in vectors.
    parts = jnp.split(gates, cell.gates, axis=-1)
    return scan(turn, states, (parts, running), reverse)


def _kept(runs: Array | None, new: State, old: State) -> State:
    if runs is None:
        return new
    return tuple(jnp.where(runs, a, b) for a, b in zip(new, old, strict=True))


@functools.partial(steps.defjvp, symbolic_zeros=True)
def _tangents(cell: Cell, reverse: bool, primals: Any, tangents: Any) -> Any:
    gates, weight, _, states, running = primals
    last, (after, values) = _values(cell, reverse, primals)
    before = tuple(
        jnp.concatenate([x[1:], s[None]] if reverse else [s[None], x[:-1]])
        for s, x in zip(states, after, strict=True)
    )
    factors = cell.factors(before, after, values)
    d_gates, d_weight, d_bias, d_states, _ = jax.tree.map(
        lambda t: None if isinstance(t, SymbolicZero) else t,
        tangents,
        is_leaf=lambda t: isinstance(t, SymbolicZero),
    )
    given = jnp.zeros_like(gates)
    if d_weight is not None:
        given = linear(before[0], d_weight)
    if d_bias is not None:
        given += d_bias
    if d_weight is not None or d_bias is not None:
        given = cell.entering(given, values)
    if d_gates is not None:
        given += d_gates
    d_states = tuple(
        jnp.zeros_like(s) if d is None else d
        for s, d in zip(states, d_states, strict=True)
    )

    def turn(carry: State, given: Any) -> tuple[State, Array]:
        entering, factors, runs = given
        new = cell.tangent(carry, entering, linear(carry[0], weight), factors)
        new = _kept(runs, new, carry)
        return new, new[0]

    d_last, d_out = scan(turn, d_states, (given, factors, running), reverse)
    return (last, after[0]), (d_last, d_out)


# -- kinds ----------------------------------------------------------------------------


def _lstm_step(states: State, of_input: Parts, of_hidden: Parts) -> tuple[State, State]:
    cell = states[1]
    enter, forget, new, leave = map(jnp.add, of_input, of_hidden)
    enter, forget, leave = map(jax.nn.sigmoid, (enter, forget, leave))
    new = jnp.tanh(new)
    cell = forget * cell + enter * new
    return (leave * jnp.tanh(cell), cell), (enter, forget, new, leave)


def _lstm_factors(before: State, after: State, values: State) -> State:
    enter, forget, new, leave = values
    shown = jnp.tanh(after[1])
    return (
        new * enter * (1 - enter),
        before[1] * forget * (1 - forget),
        enter * (1 - new * new),
        shown * leave * (1 - leave),
        forget,
        leave * (1 - shown * shown),
    )


def _lstm_tangent(
    states: State, entering: Array, of_hidden: Array, factors: State
) -> State:
    enter, forget, new, leave = jnp.split(entering + of_hidden, 4, axis=-1)
    by_enter, by_forget, by_new, by_leave, by_before, by_cell = factors
    cell = by_before * states[1] + by_enter * enter + by_forget * forget + by_new * new
    return by_cell * cell + by_leave * leave, cell


LSTM = Cell(4, _lstm_step, _lstm_factors, _lstm_tangent)


def _gru_step(states: State, of_input: Parts, of_hidden: Parts) -> tuple[State, State]:
    (hidden,) = states
    reset = jax.nn.sigmoid(of_input[0] + of_hidden[0])
    update = jax.nn.sigmoid(of_input[1] + of_hidden[1])
    new = jnp.tanh(of_input[2] + of_hidden[2] * reset)
    return ((hidden - new) * update + new,), (reset, update, new, of_hidden[2])


def _gru_factors(before: State, after: State, values: State) -> State:
    reset, update, new, of_hidden = values
    by_new = (1 - update) * (1 - new * new)
    by_reset = by_new * of_hidden * reset * (1 - reset)
    by_update = (before[0] - new) * update * (1 - update)
    return by_reset, by_update, by_new, reset, update


def _gru_entering(given: Array, values: State) -> Array:
    reset, update, new = jnp.split(given, 3, axis=-1)
    return jnp.concatenate([reset, update, new * values[0]], axis=-1)


def _gru_tangent(
    states: State, entering: Array, of_hidden: Array, factors: State
) -> State:
    by_reset, by_update, by_new, reset, by_before = factors
    inner = jnp.split(of_hidden, 3, axis=-1)
    outer = jnp.split(entering, 3, axis=-1)
    hidden = by_before * states[0] + by_new * (outer[2] + reset * inner[2])
    hidden += by_reset * (outer[0] + inner[0]) + by_update * (outer[1] + inner[1])
    return (hidden,)


GRU = Cell(3, _gru_step, _gru_factors, _gru_tangent, _gru_entering)


def _elman(
    activation: Callable[[Array], Array], derivative: Callable[[Array], Array]
) -> Cell:
    def step(states: State, of_input: Parts, of_hidden: Parts) -> tuple[State, State]:
        return (activation(of_input[0] + of_hidden[0]),), ()

    def factors(before: State, after: State, values: State) -> State:
        return (derivative(after[0]),)

    def tangent(
        states: State, entering: Array, of_hidden: Array, factors: State
    ) -> State:
        return (factors[0] * (entering + of_hidden),)

    return Cell(1, step, factors, tangent)


ELMAN = {
    "tanh": _elman(jnp.tanh, lambda y: 1 - y * y),
    "relu": _elman(jax.nn.relu, lambda y: (y > 0).astype(y.dtype)),
}
