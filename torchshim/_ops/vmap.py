"""Where `vmap` begins and ends: a dimension that becomes a level, and back."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from torchshim._core.op import Arranged, Array, View, op
from torchshim._core.storage import repeats
from torchshim._ops.view_geometry import memory_size


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


def _around(shape: Any, input: Any, dim: int, level: int) -> Any:
    """The strides of examples that lie one behind the other."""
    example, strides = input
    count = math.prod(example)
    if repeats(example, strides) or memory_size(example, strides, 0) != count:
        return None  # where they lie is not known
    return (*strides[:dim], count or 1, *strides[dim:])


@op(
    grad_fn="",
    saves=(),
    method=False,
    namespaces=(),
    out=False,
    curved=False,
    level="input",
    layout=Arranged(_around),
)
def _vmap_leave(input: Array, dim: int, level: int) -> Array:
    """All examples as one batch: the level becomes `dim`."""
    return jnp.moveaxis(input, 0, dim)


def _with(
    shape: Any, strides: Any, offset: int, dim: int, level: int, size: int, stride: int
) -> Any:
    return (
        (*shape[:dim], size, *shape[dim:]),
        (*strides[:dim], stride, *strides[dim:]),
        offset,
    )


def _example(base: Any, new: Any, dim: int, level: int, size: int, stride: int) -> Any:
    return jnp.moveaxis(new, dim, 0)


@op(
    view=View(_with, _example),
    grad_fn="",
    saves=(),
    method=False,
    namespaces=(),
    curved=False,
    level="input",
)
def _vmap_show(input: Array, dim: int, level: int, size: int, stride: int) -> Array:
    """All examples as one batch, of a view of what has them this far apart."""
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
