"""Sums, products, quotients and powers, element by element."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.checks import Check
from torchshim._core.meta import broadcast_shape, elementwise_strides
from torchshim._core.op import Array, Operand, Scalar, op
from torchshim._core.promotion import (
    DEFAULT,
    INT_TO_FLOAT,
    number,
    real_number,
)
from torchshim._ops import _branches
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    by_second,
    category,
    is_complex,
    is_integral,
    is_tensor,
    kind,
    needs_tensor,
    no_floats,
    quotient,
    refuse,
    without_derivative,
)

# Sums ---------------------------------------------------------------------------------


def _check_alpha(input: Any, other: Any, alpha: Any) -> None:
    result = max(category(input), category(other))
    if isinstance(alpha, bool) and result != dtypes.BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and result < dtypes.FLOATING:
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point "
            "number."
        )
    if isinstance(alpha, complex) and result != dtypes.COMPLEX:
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex "
            "number."
        )


def check_difference(input: Any, other: Any, alpha: Any) -> None:
    check_no_bools(input, other)
    _check_alpha(input, other, alpha)


def check_no_bools(input: Any, other: Any, *_: Any) -> None:
    """Refuses the difference of truth values."""
    bools = (category(input) == dtypes.BOOL) + (category(other) == dtypes.BOOL)
    if bools == 2:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. "
            "Use the `^` or `logical_xor()` operator instead."
        )
    if bools:
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If "
            "you are trying to invert a mask, use the `~` or `logical_not()` operator "
            "instead."
        )


def _check_reflected(input: Any, other: Any, alpha: Any) -> None:
    check_difference(other, input, alpha)
    if is_tensor(other):
        broadcast_shape([tuple(other.shape), tuple(input.shape)])


@jax.custom_jvp
def _by_one(x: Array) -> Array:
    """A complex number by 1 + 0i, which makes both parts NaN where one is not finite.

    In parts, as XLA leaves products with one out.
    """
    return jax.lax.complex(x.real - 0 * x.imag, x.imag + 0 * x.real)


@_by_one.defjvp
def _by_one_jvp(primals: Any, tangents: Any) -> Any:
    return _by_one(*primals), tangents[0]


def _scaled(other: Array, alpha: Any) -> Any:
    if isinstance(alpha, np.ndarray) and alpha == 1:
        # The usual case leaves no trace in the program.
        return _by_one(other) if is_complex(other) else other
    return other & alpha if kind(other) == BOOL else alpha * other


@op(
    promote=DEFAULT,
    grad_fn="AddBackward0",
    saves=(),
    passes=lambda input, other, alpha: ("input", "other") if alpha == 1 else ("input",),
    inplace=True,
    typecheck=_check_alpha,
    fits=("alpha",),
)
def add(input: Array, other: Operand, *, alpha: Scalar = 1) -> Array:
    """`input + alpha * other`, broadcast."""
    return input + _scaled(other, alpha)


@op(
    promote=DEFAULT,
    grad_fn="SubBackward0",
    saves=(),
    passes=("input",),
    inplace=True,
    aliases=("subtract",),
    typecheck=check_difference,
    fits=("alpha",),
)
def sub(input: Array, other: Operand, *, alpha: Scalar = 1) -> Array:
    """`input - alpha * other`, broadcast."""
    return input - _scaled(other, alpha)


@op(
    promote=DEFAULT,
    grad_fn=by_second("Rsub", 0, 1),
    saves=(),
    passes=("other",),
    method=False,
    out=False,
    layout=lambda shape, operands: elementwise_strides(shape, operands[::-1]),
    typecheck=_check_reflected,
    fits=("alpha",),
)
def rsub(input: Array, other: Operand, *, alpha: Scalar = 1) -> Array:
    """`other - alpha * input`, broadcast."""
    return other - _scaled(input, alpha)


# Products -----------------------------------------------------------------------------


@op(
    promote=DEFAULT,
    grad_fn="MulBackward0",
    saves={"input": ("other",), "other": ("input",)},
    inplace=True,
    aliases=("multiply",),
)
def mul(input: Array, other: Operand) -> Array:
    """`input * other`, broadcast."""
    return input & other if kind(input) == BOOL else input * other


@op(
    promote=DEFAULT,
    grad_fn="AddcmulBackward0",
    saves={"tensor1": ("tensor2",), "tensor2": ("tensor1",)},
    passes=("input",),
    inplace=True,
    fits=("value",),
)
def addcmul(
    input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1
) -> Array:
    """`input + value * tensor1 * tensor2`, broadcast."""
    refuse("addcmul_cpu_out", input, BOOL)
    return input + _scaled(tensor1 * tensor2, value)


def _check_addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any) -> None:
    if max(category(tensor1), category(tensor2)) < dtypes.FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  "
            "release addcdiv will perform a true division of tensor1 and tensor2. The "
            "historic addcdiv behavior can be implemented as (input + value * "
            "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and "
            "as (input + value * tensor1 / tensor2) for float inputs. The future "
            "addcdiv behavior is just the latter implementation: (input + value * "
            "tensor1 / tensor2), for all dtypes."
        )


@op(
    promote=DEFAULT,
    grad_fn="AddcdivBackward0",
    saves={
        "input": ("tensor2",),  # (of no use, but PyTorch keeps it)
        "tensor1": ("tensor2",),
        "tensor2": ("tensor1", "tensor2"),
    },
    passes=("input",),
    inplace=True,
    typecheck=_check_addcdiv,
    fits=("value",),
)
def addcdiv(
    input: Array, tensor1: Array, tensor2: Array, *, value: Scalar = 1
) -> Array:
    """`input + value * tensor1 / tensor2`, broadcast."""
    return input + quotient(_scaled(tensor1, value), tensor2)


def _check_lerp(input: Any, end: Any, weight: Any) -> None:
    for name, given in (("end", end), ("weight", weight)):
        # A weight of no dimensions promotes as usual.
        looked = is_tensor(given) and (given.shape or name == "end")
        if looked and given.dtype is not input.dtype:
            raise RuntimeError(
                f"expected dtype {input.dtype.cpp_name} for `{name}` but got dtype "
                f"{given.dtype.cpp_name}"
            )
    broadcast_shape([tuple(x.shape) for x in (input, end, weight) if is_tensor(x)])
    if max(input.dtype.category, category(weight)) < dtypes.FLOATING or (
        not is_tensor(weight) and input.dtype.category < dtypes.FLOATING
    ):
        kernel = "lerp_kernel_tensor" if is_tensor(weight) else "lerp_kernel_scalar"
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'"
        )
    if isinstance(weight, complex) and input.dtype.category != dtypes.COMPLEX:
        real_number(weight, input.dtype.np)
        raise NotImplementedError(
            "lerp of real tensors by a complex number is not supported"
        )


@op(
    promote=DEFAULT,
    grad_fn=lambda input, end, weight: f"LerpBackward{1 if is_tensor(weight) else 0}",
    saves={
        "input": ("weight",),
        "end": ("weight",),
        "weight": ("input", "end"),
    },
    inplace=True,
    typecheck=_check_lerp,
    out=lambda input, end, weight: "same" if getattr(weight, "ndim", 0) else True,
    fits=("weight",),
)
def lerp(input: Array, end: Array, weight: Operand) -> Array:
    """The way from `input` to `end`, walked by the fraction `weight`."""
    span = end - input
    near_start = jnp.abs(weight) < 0.5
    return jnp.where(near_start, input + weight * span, end - span * (1 - weight))


# Quotients ----------------------------------------------------------------------------


def _zero_divisors(input: Any, other: Any, *_: Any) -> list[Check]:
    """Integer division by zero is an error; that of floats is not."""
    for each in (input, other):
        if not (
            is_integral(each)
            if hasattr(each, "dtype")
            else isinstance(each, (bool, int))
        ):
            return []
    if getattr(input, "ndim", 0) and not getattr(other, "ndim", 0):
        own = np.int64 if input.dtype == np.bool_ else input.dtype
        other = number(other, own)  # wraps around
    bad = jnp.any(jnp.asarray(other) == 0)
    if hasattr(input, "size") and input.size == 0:
        return []
    return [Check(bad, RuntimeError, "ZeroDivisionError")]


def _check_divisor(input: Any, other: Any, *_: Any) -> None:
    if is_tensor(other) or not isinstance(other, int) or not input.numel:
        return
    own = input.dtype if input.dtype is not dtypes.bool_ else dtypes.int64
    # Numbers wrap around to the elements' width.
    if own.category == dtypes.INTEGER and not other % (1 << 8 * own.itemsize):
        raise RuntimeError("ZeroDivisionError")


@op(
    promote=INT_TO_FLOAT,
    grad_fn="DivBackward0",
    saves={"input": ("other",), "other": ("input", "other")},
    inplace=True,
    overload=True,
    aliases=("divide", "true_divide"),
)
def div(input: Array, other: Operand) -> Array:
    """`input / other`, broadcast."""
    return quotient(input, other)


def _check_mode(input: Any, other: Any, rounding_mode: Any) -> None:
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
            f"found '{rounding_mode}'"
        )
    _check_divisor(input, other)


@op(
    name="div.mode",
    public="div",
    promote=DEFAULT,
    grad_fn="DivBackward2",
    saves={"input": ("other",), "other": ("input", "other")},
    inplace=True,
    overload=True,
    aliases=("divide",),
    typecheck=_check_mode,
    checks=_zero_divisors,
    checks_for=no_floats,
)
def div_mode(input: Array, other: Operand, *, rounding_mode: str) -> Array:
    """`input / other`, rounded down or towards zero."""
    if rounding_mode == "floor":
        refuse("div_floor_cpu", input, BOOL + COMPLEX)
        return jax.lax.stop_gradient(_floor_quotient(input, other))
    refuse("div_trunc_cpu", input, BOOL + COMPLEX)
    return jax.lax.stop_gradient(_truncated_quotient(input, other))


@op(
    name="div.none",
    public="div",
    promote=INT_TO_FLOAT,
    grad_fn="DivBackward2",
    saves={"input": ("other",), "other": ("input", "other")},
    inplace=True,
    overload=True,
    aliases=("divide",),
)
def div_none(input: Array, other: Operand, *, rounding_mode: None) -> Array:
    """`input / other`: no rounding, said explicitly."""
    return quotient(input, other)


def _truncated_quotient(a: Array, b: Array) -> Array:
    if is_integral(a):
        a, b = both(a, b)
        return jax.lax.div(a, _no_zero(b))
    return jnp.trunc(quotient(a, b))


def both(a: Array, b: Array) -> tuple[Array, Array]:
    a, b = jnp.broadcast_arrays(a, b)
    return a, b


def _no_zero(divisor: Array) -> Array:
    """A divisor of integers whose zeros are ones; `_zero_divisors` tells of them.

    XLA's compiler dies of zeros that it knows of (jaxlib 0.10.2).
    """
    if not is_integral(divisor):
        return divisor
    return jnp.where(divisor == 0, jnp.ones_like(divisor), divisor)


def _floor_quotient(a: Array, b: Array) -> Array:
    """Rounded down; for floats from the exact remainder, as Python divides."""
    a, b = both(a, b)
    b = _no_zero(b)
    remainder = jax.lax.rem(a, b)
    if is_integral(a):
        below = (remainder != 0) & ((remainder < 0) != (b < 0))
        return jax.lax.div(a, b) - below.astype(a.dtype)
    quotient = (a - remainder) / b
    below = (remainder != 0) & ((b < 0) != (remainder < 0))
    quotient = jnp.where(below, quotient - 1, quotient)
    floor = jnp.floor(quotient)
    floor = jnp.where(quotient - floor > 0.5, floor + 1, floor)
    floor = jnp.where(quotient == 0, jnp.copysign(0 * a, a / b), floor)
    return jnp.where(b == 0, a / b, floor)


@op(
    promote=DEFAULT,
    grad_fn="NotImplemented",
    saves=(),
    inplace=True,
    typecheck=_check_divisor,
    checks=_zero_divisors,
    checks_for=no_floats,
    unfollowed=True,
)
@without_derivative("aten::floor_divide")
def floor_divide(input: Operand, other: Operand) -> Array:
    """`input / other` rounded down, broadcast."""
    refuse("div_floor_cpu", input, BOOL + COMPLEX)
    return _floor_quotient(input, other)


def _check_remainder(input: Any, other: Any) -> None:
    needs_tensor("remainder", out=False)(input, other)
    _check_divisor(input, other)


@jax.custom_jvp
def _remainder(a: Array, b: Array) -> Array:
    a, b = both(a, b)
    b = _no_zero(b)
    left = jax.lax.rem(a, b)
    flip = (left != 0) & ((left < 0) != (b < 0))
    return jnp.where(flip, left + b, left)


@_remainder.defjvp
def _remainder_jvp(primals: Any, tangents: Any) -> Any:
    # By the rounded quotient, as PyTorch: NaN where that is.
    (a, b), (da, db) = primals, tangents
    slope = jax.lax.stop_gradient(_floor_quotient(a, b))
    return _remainder(a, b), da - db * slope


def _remainder_node(input: Any, other: Any) -> str:
    if not is_tensor(input):
        return "NotImplemented"
    return f"RemainderBackward{1 if is_tensor(other) else 0}"


@op(
    promote=DEFAULT,
    grad_fn=_remainder_node,
    saves={"other": ("input", "other")},
    inplace=True,
    typecheck=_check_remainder,
    checks=_zero_divisors,
    checks_for=no_floats,
)
def remainder(input: Operand, other: Operand) -> Array:
    """What `floor_divide` leaves: it has the sign of `other`."""
    refuse("remainder_cpu", input, BOOL + COMPLEX)
    return _remainder(input, other)


@op(
    promote=DEFAULT,
    grad_fn=by_second("Fmod", 1, 0),
    saves={"other": ("input", "other")},
    inplace=True,
    typecheck=_check_divisor,
    checks=_zero_divisors,
    checks_for=no_floats,
)
def fmod(input: Array, other: Operand) -> Array:
    """What division rounded towards zero leaves: it has the sign of `input`."""
    refuse("fmod_cpu", input, BOOL + COMPLEX)
    left, right = both(input, other)
    return jax.lax.rem(left, _no_zero(right))


@op(
    promote=INT_TO_FLOAT, grad_fn="ReciprocalBackward0", saves=("result",), inplace=True
)
def reciprocal(input: Array) -> Array:
    """`1 / input`."""
    return 1 / input


# Roots ------------------------------------------------------------------------------


@op(promote=INT_TO_FLOAT, grad_fn="SqrtBackward0", saves=("result",), inplace=True)
def sqrt(input: Array) -> Array:
    """The square root."""
    return _branches.sqrt(input)


@op(promote=INT_TO_FLOAT, grad_fn="RsqrtBackward0", saves=("result",), inplace=True)
def rsqrt(input: Array) -> Array:
    """The reciprocal of the square root."""
    # Not lax.rsqrt, nor what XLA makes that of: it is not rounded once.
    return _branches.reciprocal_root(input)


# Signs --------------------------------------------------------------------------------


def _check_negation(input: Any) -> None:
    if category(input) == dtypes.BOOL:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you "
            "are trying to invert a mask, use the `~` or `logical_not()` operator "
            "instead."
        )


@op(
    promote=DEFAULT,
    grad_fn="NegBackward0",
    saves=(),
    inplace=True,
    aliases=("negative",),
    typecheck=_check_negation,
    out="same",
)
def neg(input: Array) -> Array:
    """`-input`."""
    return -input
