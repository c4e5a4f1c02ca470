"""Where `vmap` begins and ends: a dimension that becomes a level, and back."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from torchshim._core.op import Array, View, op


def _without(shape: Any, strides: Any, offset: int, dim: int, level: int) -> Any:
    rest = [d for d in range(len(shape)) if d != dim]
    return tuple(shape[d] for d in rest), tuple(strides[d] for d in rest), offset


def _all_examples(base: Any, new: Any, dim: int, level: int) -> Any:
    return jnp.moveaxis(new, 0, dim)


@op(
    view=View(_without, _all_examples),
    grad_fn="AliasBackward0",
    saves=(),
    method=False,
    namespaces=(),
    curved=False,
    level="result",
)
def _vmap_enter(input: Array, dim: int, level: int) -> Array:
    """One example of a batch: `dim` becomes the level."""
    return jnp.moveaxis(input, dim, 0)


@op(
    grad_fn="",
    saves=(),
    method=False,
    namespaces=(),
    out=False,
    curved=False,
    level="input",
)
def _vmap_leave(input: Array, dim: int, level: int) -> Array:
    """All examples as one batch: the level becomes `dim`."""
    return jnp.moveaxis(input, 0, dim)


@op(
    grad_fn="SumBackward1",
    saves=(),
    method=False,
    namespaces=(),
    out=False,
    curved=False,
    level="input",
)
def _vmap_sum(input: Array, level: int) -> Array:
    """The sum over all examples."""
    return input.sum(0)


@op(
    grad_fn="AliasBackward0",
    saves=(),
    differentiable=("input",),
    method=False,
    namespaces=(),
    out=False,
    curved=False,
)
def _vmap_as(input: Array, like: Array) -> Array:
    """The same value for each example that `like` has."""
    return input
