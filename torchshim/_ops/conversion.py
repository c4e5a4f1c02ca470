"""Copies: to another dtype or memory order, and into existing tensors."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from torchshim._core.meta import broadcast_shape
from torchshim._core.op import Array, Operand, op
from torchshim._core.promotion import cast, note_lost_part
from torchshim._ops._common import channels_last_layout, is_tensor

_CLONE: dict[str, Any] = {
    "namespaces": (),
    "method": False,
    "grad_fn": "CloneBackward0",
    "saves": (),
    "passes": ("input",),
}


@op(**_CLONE, layout="preserve")
def clone(input: Array) -> Array:
    """A copy in the same memory order."""
    return input


@op(**_CLONE)
def clone_contiguous(input: Array) -> Array:
    """A copy in row-major order."""
    return input


@op(
    **_CLONE,
    layout=channels_last_layout,
)
def clone_channels_last(input: Array) -> Array:
    """A copy with the channels innermost."""
    return input


@op(namespaces=(), method=False, grad_fn="ToCopyBackward0", saves=(), layout="preserve")
def to_copy(input: Array, dtype: Any) -> Array:
    """A copy in another dtype."""
    return cast(input, dtype.np)


@op(namespaces=(), method=False, grad_fn="ToCopyBackward0", saves=(), layout="preserve")
def to_device(input: Array, device: Any) -> Array:
    """A copy on another device, where it is brought when its program has run."""
    return input


@op(namespaces=(), method=False, grad_fn="ToCopyBackward0", saves=())
def to_copy_contiguous(input: Array, dtype: Any) -> Array:
    """A copy in another dtype, in row-major order."""
    return cast(input, dtype.np)


@op(
    namespaces=(),
    method=False,
    grad_fn="ToCopyBackward0",
    saves=(),
    layout=channels_last_layout,
)
def to_copy_channels_last(input: Array, dtype: Any) -> Array:
    """A copy in another dtype, with the channels innermost."""
    return cast(input, dtype.np)


# In place -----------------------------------------------------------------------------


def _fill_node(input: object, value: object) -> str:
    return "FillBackward1" if hasattr(value, "shape") else "FillBackward0"


def _fill_in_place_node(input: object, value: object) -> str:
    return "FillBackward3" if hasattr(value, "shape") else "FillBackward2"


def _check_fill(input: Any, value: Any) -> None:
    if is_tensor(value) and value.shape:
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{len(value.shape)} dimensions."
        )
    if is_tensor(value):
        note_lost_part(value.dtype, input.dtype)


@op(
    grad_fn=_fill_node,
    saves=(),
    method=False,
    layout="preserve",
    out=False,
    typecheck=_check_fill,
)
def fill(input: Array, value: Operand) -> Array:
    """`input`'s sizes, filled with a number or a 0-dim tensor."""
    if isinstance(value, (bool, int, float)):
        value = number(value, input.dtype)
    return jnp.broadcast_to(cast(value, input.dtype), input.shape)


@op(
    namespaces=(),
    grad_fn=_fill_in_place_node,
    saves=(),
    inplace=True,
    method=False,
    layout="preserve",
    overlaps=True,
    typecheck=_check_fill,
)
def _fill(input: Array, value: Operand) -> Array:
    """What `fill_` records."""
    return fill(input, value)


def number(value: Any, np_dtype: Any) -> Any:
    """A Python number for a cast to a dtype: integers modulo 2**64."""
    if isinstance(value, int) and not isinstance(value, bool):
        return np.array(value & (2**64 - 1), np.uint64).astype(np.int64)
    return value


@op(
    name="zero",
    namespaces=(),
    method=False,
    grad_fn="ZeroBackward0",
    saves=(),
    inplace=True,
    overlaps=True,
)
def zero(input: Array) -> Array:
    """`input`'s sizes, filled with zeros."""
    return jnp.zeros_like(input)


@op(
    name="copy",
    namespaces=(),
    method=False,
    grad_fn="CopyBackwards",
    saves=(),
    passes=("other",),
    inplace=True,
    layout="preserve",
)
def copy(input: Array, other: Operand, non_blocking: bool = False) -> Array:
    """The values of `other`, broadcast, in `input`'s dtype."""
    if isinstance(other, (bool, int, float, complex)):
        other = number(other, input.dtype)
    value = cast(other, input.dtype)
    shape = broadcast_shape([input.shape, value.shape])
    if shape != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape "
            f"{list(shape)}"
        )
    return jnp.broadcast_to(value, shape)


# Values drawn on the host: the old values get no gradient, the new ones are data.
_DRAWS = {
    "uniform": "UniformBackward0",
    "normal": "NormalBackward0",
    "random": "RandomBackward",
    "bernoulli": "BernoulliBackward",
    "exponential": "ExponentialBackward0",
    "geometric": "GeometricBackward0",
    "log_normal": "LogNormalBackward0",
    "cauchy": "CauchyBackward0",
    "poisson": "PoissonBackward0",
}


def _draw(name: str, grad_fn: str) -> None:
    @op(
        name=f"_draw_{name}",
        namespaces=(),
        method=False,
        grad_fn=grad_fn,
        saves=(),
        inplace=True,
        differentiable=("input",),
    )
    def draw(input: Array, values: Array) -> Array:
        """`input` with the values replaced by ones drawn on the host."""
        return values


for _name, _node in _DRAWS.items():
    for _suffix in ("0", "1", "2") if not _node.endswith("0") else ("",):
        _draw(_name + _suffix, _node + _suffix)


def _normal_node(mean: Any, std: Any, values: Any) -> str:
    return f"NormalBackward{is_tensor(mean) + 2 * is_tensor(std)}"


@op(
    name="_draw_normal_of",
    namespaces=(),
    method=False,
    grad_fn=_normal_node,
    saves=(),
    differentiable=("mean", "std"),
    real_gradients="normal",
)
def draw_normal_of(mean: Operand, std: Operand, values: Array) -> Array:
    """Normal numbers drawn on the host; their parameters get no gradient."""
    return values
