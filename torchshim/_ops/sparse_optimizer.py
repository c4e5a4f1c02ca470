"""Update rules for sparse gradients: they move the rows that these name.

Gradients come as indices and values. Indices beyond the parameter count for nothing,
and nothing here depends on how many different ones there are. So a program fits every
batch of as many look-ups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.op import Array, Arrays, Operand, Scalar, op
from torchshim._ops.optimizer import Kind


def _moves(*lists: str) -> Callable[..., Any]:
    return op(
        namespaces=(),
        method=False,
        differentiable=False,
        mutates=("params", *lists),
    )


def _numbered(param: Array, indices: Array) -> tuple[Array, int]:
    """The number of each row that is named, and how many there are.

    What is beyond the parameter has the number of none.
    """
    dims = indices.shape[0]
    sizes = param.shape[:dims]
    count = math.prod(sizes)
    numbers, within = jnp.zeros(indices.shape[1:], jnp.int64), True
    for places, size in zip(indices, sizes, strict=True):
        numbers = numbers * size + places
        within = within & (places < size)
    return jnp.where(within, numbers, count), count


def _coalesced(numbers: Array, values: Array, count: int) -> tuple[Array, Array]:
    """Each number once, with the sum of its values; then numbers of no row."""
    if not numbers.size:
        return numbers, values
    order = jnp.argsort(numbers)
    numbers = numbers[order]
    new = jnp.concatenate([numbers[:1] < 0, numbers[1:] != numbers[:-1]])
    at = jnp.cumsum(new)
    each = jnp.full(numbers.shape, count).at[at].set(numbers)
    return each, jax.ops.segment_sum(values[order], at, numbers.size)


def _each_table(
    rule: Callable[..., Sequence[Array]],
    params: Arrays,
    indices: Arrays,
    values: Arrays,
    *states: Arrays,
) -> tuple[Array, ...]:
    """The results of `rule(kind, gradients, rows of states...)`, put into the tables.

    It gives the change of the parameter's rows, then new rows of states.
    """
    found: list[list[Array]] = []
    for param, places, grads, *own in zip(
        params, indices, values, *states, strict=True
    ):
        kind = Kind(param.dtype)
        numbers, count = _numbered(param, places)
        grads = grads.astype(kind.work)
        if own:
            numbers, grads = _coalesced(numbers, grads, count)
        table, *tables = [t.reshape(count, *grads.shape[1:]) for t in (param, *own)]
        rows = [t.at[numbers].get(mode="fill", fill_value=0) for t in tables]
        change, *news = rule(kind, grads, *(row.astype(kind.work) for row in rows))
        moved = [table.at[numbers].add(change.astype(param.dtype), mode="drop")]
        # Not added: XLA copies a table that it may overwrite before its rows are read.
        for t, new in zip(tables, news, strict=True):
            moved.append(t.at[numbers].set(new.astype(t.dtype), mode="drop"))
        found.append([each.reshape(param.shape) for each in moved])
    return tuple(each for column in zip(*found, strict=True) for each in column)


@_moves()
def sgd_rows_update(
    params: Arrays, indices: Arrays, values: Arrays, lr: Operand, maximize: bool
) -> tuple[Array, ...]:
    """Stochastic gradient descent without momentum."""

    def rule(kind: Kind, grad: Array) -> Any:
        rate = kind.number(lr)
        return ((rate if maximize else -rate) * grad,)

    return _each_table(rule, params, indices, values)


@_moves("sums")
def adagrad_rows_update(
    params: Arrays,
    indices: Arrays,
    values: Arrays,
    sums: Arrays,
    step: Operand,
    lr: Operand,
    lr_decay: Scalar,
    eps: Scalar,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adagrad: steps shrink with the sum of all squared gradients."""
    rate = lr / (1 + (step - 1) * lr_decay)

    def rule(kind: Kind, grad: Array, total: Array) -> Any:
        grad = -grad if maximize else grad
        total = kind.rounded(total + kind.rounded(grad * grad))
        root = kind.rounded(kind.rounded(jnp.sqrt(total)) + kind.number(eps))
        return -kind.number(rate) * kind.rounded(grad / root), total

    return _each_table(rule, params, indices, values, sums)


@_moves("exp_avgs", "exp_avg_sqs")
def adam_rows_update(
    params: Arrays,
    indices: Arrays,
    values: Arrays,
    exp_avgs: Arrays,
    exp_avg_sqs: Arrays,
    step_size: Operand,
    beta1: Scalar,
    beta2: Scalar,
    eps: Scalar,
    maximize: bool,
) -> tuple[Array, ...]:
    """Adam: averages move where there is a gradient."""

    def rule(kind: Kind, grad: Array, average: Array, square: Array) -> Any:
        grad = -grad if maximize else grad
        average = kind.lerp(average, grad, 1 - beta1)
        square = kind.lerp(square, kind.rounded(grad * grad), 1 - beta2)
        root = kind.rounded(jnp.sqrt(square)) + kind.number(eps)
        return -kind.number(step_size) * (average / root), average, square

    return _each_table(rule, params, indices, values, exp_avgs, exp_avg_sqs)
