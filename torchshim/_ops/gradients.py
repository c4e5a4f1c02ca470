"""What the backward walk itself computes: copies, casts and sums of gradients."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.checks import Check
from torchshim._core.naming import UNSEEN
from torchshim._core.op import Array, Arrays, op
from torchshim._core.promotion import converted


@op(
    name="_gradient_copy",
    grad_fn="CopyBackwards",
    edges=(None, "input"),
    saves=(),
    method=False,
    out=False,
    namespaces=(),
)
def _gradient_copy(input: Array) -> Array:
    """The same values under another identity."""
    return input


@op(
    name="_gradient_cast",
    grad_fn="ToCopyBackward0",
    saves=(),
    method=False,
    out=False,
    namespaces=(),
)
def _gradient_cast(input: Array, dtype: dtypes.dtype) -> Array:
    """A gradient in the dtype of the value it belongs to."""
    if jnp.iscomplexobj(input) and not dtype.is_complex:
        input = input.real
    return input.astype(dtype.np)


@op(
    name="_gradient_sum",
    grad_fn="SumBackward1",
    saves=(),
    method=False,
    out=False,
    namespaces=(),
)
def _gradient_sum(input: Array, shape: tuple[int, ...]) -> Array:
    """A gradient summed down to the shape that was broadcast."""
    lead = input.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i
        for i, size in enumerate(shape)
        if size == 1 and input.shape[lead + i] != 1
    )
    return jnp.sum(input, axis=axes).reshape(shape)


@op(
    name="_gradient_zeros",
    differentiable=False,
    method=False,
    out=False,
    namespaces=(),
)
def _gradient_zeros(shape: tuple[int, ...], dtype: dtypes.dtype, device: Any) -> Array:
    """Zeros that stand in for a gradient that did not arrive."""
    return jnp.zeros(shape, dtype.np)


@op(
    name="_gradient_ones",
    differentiable=False,
    method=False,
    out=False,
    namespaces=(),
)
def _gradient_ones(shape: tuple[int, ...], dtype: dtypes.dtype, device: Any) -> Array:
    """The gradient of a scalar with respect to itself."""
    return jnp.ones(shape, dtype.np)


@op(
    name="_gradient_basis",
    differentiable=False,
    method=False,
    out=False,
    namespaces=(),
)
def _gradient_basis(
    shape: tuple[int, ...], rows: int, shift: int, dtype: dtypes.dtype, device: Any
) -> Array:
    """Rows of an identity matrix, each of a shape: the 1 of row i is at i + shift."""
    columns = math.prod(shape)
    rows_of_ones = jnp.eye(rows, columns, shift, bool)
    return converted(rows_of_ones, dtype.np).reshape(rows, *shape)


@op(
    name="_with_history_of",
    grad_fn=UNSEEN,
    differentiable=("source",),
    saves=(),
    method=False,
    out=False,
    namespaces=(),
)
def _with_history_of(input: Array, source: Array) -> Array:
    """A value that came another way, whose gradient is that of `source`."""
    return _value_of(input, source)


@jax.custom_jvp
def _value_of(input: Array, source: Array) -> Array:
    return input


_value_of.defjvp(lambda primals, tangents: (primals[0], tangents[1]))


def _as_it_was(input: Any, before: Any, text: str) -> list[Check]:
    alike = (input == before) | ((input != input) & (before != before))
    return [Check(~jnp.all(alike), NotImplementedError, text)]


@op(
    name="_unless_changed",
    grad_fn=UNSEEN,
    differentiable=("input",),
    saves=(),
    method=False,
    out=False,
    namespaces=(),
    checks=_as_it_was,
)
def _unless_changed(input: Array, before: Array, text: str) -> Array:
    """What a memory holds by now; an error where that is not what it held before."""
    return input


@op(
    name="_recompute_input",
    grad_fn=UNSEEN,
    differentiable=("input",),
    saves=(),
    method=False,
    out=False,
    namespaces=(),
)
def _recompute_input(input: Array, after: Arrays) -> Array:
    """The same value, of which XLA does not know that it is the same.

    What is computed from it again is so neither merged with the first time, which would
    keep that alive, nor done before `after` is there.
    """
    return jax.lax.optimization_barrier((input, list(after)))[0]
