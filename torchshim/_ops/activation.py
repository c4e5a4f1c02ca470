"""Activation functions of neural networks.

Derivatives follow from the branches of `where`; at a kink PyTorch takes the branch
whose condition holds there, so the comparisons below are its.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.meta import elementwise_strides
from torchshim._core.op import ANY, POSITIVE, Array, Scalar, op
from torchshim._core.promotion import DEFAULT, element
from torchshim._ops._common import (
    is_known,
    no_floats,
    quotient,
    rounded,
    scalar_name,
)
from torchshim._ops._formats import first_layout
from torchshim._ops.views import wrap_dim

_SQRT_HALF = 0.7071067811865476
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def floating_only(x: Any, kernel: str) -> None:
    """Raises PyTorch's error of a kernel that knows floating point alone."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{scalar_name(x)}'"
        )


def _private(
    grad_fn: str,
    inplace: Any = False,
    saves: tuple[str, ...] = ("input",),
    inplace_gradient_check: Any = None,
    **rest: Any,
) -> Any:
    """An operator that a Python function of `nn.functional` stands before."""
    return op(
        promote=DEFAULT,
        grad_fn=grad_fn,
        saves=saves,
        inplace=inplace,
        inplace_gradient_check=inplace_gradient_check,
        namespaces=(),
        method=False,
        out=False,
        **rest,
    )


def _from_result(grad_fn: str) -> dict[str, Any]:
    """The in-place form of what PyTorch differentiates by the result then."""
    return {"grad_fn": grad_fn, "saves": ("result",)}


def not_in_place(name: str, more: str = "") -> Any:
    """Refuses the gradient of what was computed in place with a negative slope.

    PyTorch's is computed from the result, which does not tell the operand's sign then.
    """

    def check(input: Any, slope: float) -> None:
        if slope < 0:
            raise RuntimeError(
                f"In-place {name} backward calculation is triggered with a negative "
                "slope which is not supported. This is caused by calling in-place "
                "forward function with a negative slope, please call out-of-place "
                "version instead." + more
            )

    return check


LEAKY_IN_PLACE = not_in_place(
    "leakyReLu",
    " File an issue at https://github.com/pytorch/pytorch if you do require supporting "
    "in-place leakRelu backward calculation with negative slope",
)


@op(
    promote=DEFAULT,
    grad_fn="ReluBackward0",
    saves=("result",),
    inplace=True,
    out=False,
)
def relu(input: Array) -> Array:
    """The positive part of each element."""
    if input.dtype == jnp.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    if jnp.iscomplexobj(input):
        raise NotImplementedError("clamp is not supported for complex types")
    # Zeros keep their sign, and get no gradient.
    low = jnp.where(input < 0, jnp.zeros_like(input), input)
    return jnp.where(input <= 0, jax.lax.stop_gradient(low), input)


@_private(
    "LeakyReluBackward0",
    inplace=_from_result("LeakyReluBackward1"),
    inplace_gradient_check=LEAKY_IN_PLACE,
    varies={"negative_slope": POSITIVE},
)
def leaky_relu(input: Array, negative_slope: float = 0.01) -> Array:
    """Each element, the negative ones times a slope."""
    floating_only(input, "leaky_relu_cpu")
    return jnp.where(input > 0, input, input * element(negative_slope, input.dtype))


def _elu(input: Array, alpha: float, scale: float, input_scale: float) -> Array:
    low = input <= 0
    below = jnp.where(low, input, 0) * input_scale
    return jnp.where(low, jnp.expm1(below) * (alpha * scale), input * scale)


@_private(
    "EluBackward0",
    inplace=_from_result("EluBackward1"),
    inplace_gradient_check=not_in_place("elu"),
    varies={"alpha": POSITIVE},
)
def elu(input: Array, alpha: float = 1.0) -> Array:
    """Each element, the negative ones as `alpha * expm1(x)`."""
    floating_only(input, "elu_cpu")
    return _elu(input, element(alpha, input.dtype), 1.0, 1.0)


@_private("EluBackward0", inplace=_from_result("EluBackward1"))
def selu(input: Array) -> Array:
    """`elu` scaled so that mean and variance keep through layers."""
    floating_only(input, "elu_cpu")
    return _elu(input, _SELU_ALPHA, _SELU_SCALE, 1.0)


@_private(
    "CeluBackward0",
    inplace=_from_result("CeluBackward1"),
    inplace_gradient_check=not_in_place("elu"),
    varies={"alpha": POSITIVE},
)
def celu(input: Array, alpha: float = 1.0) -> Array:
    """Each element, the negative ones as `alpha * expm1(x / alpha)`."""
    if is_known(alpha) and alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    floating_only(input, "elu_cpu")
    return _elu(input, element(alpha, input.dtype), 1.0, 1.0 / alpha)


@op(
    promote=DEFAULT,
    grad_fn="GeluBackward0",
    saves=("input",),
    namespaces=("nn.functional",),
    method=False,
    out="same",
)
def gelu(input: Array, *, approximate: str = "none") -> Array:
    """Each element times the normal distribution function of it."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    floating_only(input, "GeluKernelImpl")
    if approximate == "tanh":
        inner = input + 0.044715 * input * input * input
        return 0.5 * input * (1 + jnp.tanh(0.7978845608028654 * inner))
    return input * 0.5 * (1 + jax.lax.erf(input * _SQRT_HALF))


@_private("SiluBackward0", inplace=True, real_gradients="silu")
def silu(input: Array) -> Array:
    """Each element times its sigmoid."""
    if not jnp.iscomplexobj(input):
        floating_only(input, "silu_cpu")
    return input * jax.nn.sigmoid(input)


def _softplus(x: Array) -> Array:
    return jnp.logaddexp(x, jnp.zeros_like(x))


@_private("MishBackward0", inplace=True)
def mish(input: Array) -> Array:
    """Each element times the hyperbolic tangent of its softplus."""
    floating_only(input, "mish_cpu")
    return rounded(lambda x: x * jnp.tanh(_softplus(x)), input)


@op(
    promote=DEFAULT,
    grad_fn="SoftplusBackward0",
    saves=("input",),
    namespaces=("nn.functional",),
    method=False,
    out="same",
    varies={"beta": POSITIVE, "threshold": ANY},
)
def softplus(input: Array, beta: float = 1, threshold: float = 20) -> Array:
    """`log(1 + exp(beta * x)) / beta`; the element itself above a threshold."""
    floating_only(input, "softplus_cpu")
    beta, threshold = element(beta, input.dtype), element(threshold, input.dtype)
    high = input * beta > threshold
    low = jnp.where(high, jnp.zeros_like(input), input * beta)
    return jnp.where(high, input, jnp.log1p(jnp.exp(low)) / beta)


@op(
    promote=DEFAULT,
    grad_fn="LogSigmoidBackward0",
    saves=("input", "computed"),
    layout=lambda shape, operands: None,
    namespaces=("nn.functional",),
    method=False,
    out=("expected scalar type {want.scalar_name} but found {have.scalar_name}"),
)
def logsigmoid(input: Array) -> Array:
    """The logarithm of the sigmoid of each element."""
    floating_only(input, "log_sigmoid_cpu")
    return rounded(lambda x: 0 - _softplus(-x), input)


@_private(
    "HardtanhBackward0",
    inplace=True,
    varies={"min_val": ANY, "max_val": ANY},
    static_for=no_floats,  # whose limits are looked at
)
def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Each element, moved into an interval."""
    if input.dtype == jnp.bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if jnp.iscomplexobj(input):
        raise NotImplementedError("clamp is not supported for complex types")
    if jnp.issubdtype(input.dtype, jnp.unsignedinteger) and min_val < 0:
        raise RuntimeError(
            "cannot do hardtanh on an unsigned type with negative limits"
        )
    limits = [element(v, input.dtype) for v in (min_val, max_val)]
    low, high = (jnp.asarray(v).astype(input.dtype) for v in limits)
    # At the limits zeros keep their sign, and get no gradient.
    limited = jnp.where(input < low, low, jnp.where(input > high, high, input))
    inside = (input > low) & (input < high) | (input != input)
    return jnp.where(inside, input, jax.lax.stop_gradient(limited))


@_private("HardsigmoidBackward0", inplace=True)
def hardsigmoid(input: Array) -> Array:
    """`x / 6 + 1 / 2`, moved into [0, 1]."""
    floating_only(input, "hardsigmoid_cpu")
    inside = (input > -3) & (input < 3)
    sixth = quotient(input + 3, 6)
    # min and max, so that NaN stays, but without a slope.
    outside = jax.lax.stop_gradient(jnp.clip(sixth, 0, 1))
    return jnp.where(inside, sixth, outside)


@_private("HardswishBackward0", inplace=True)
def hardswish(input: Array) -> Array:
    """Each element times its `hardsigmoid`."""
    floating_only(input, "hardswish_cpu")
    low = jnp.where(jnp.abs(input) < 3, input, 0)
    inside = jnp.where(input < 3, quotient(low * (low + 3), 6), input)
    return jnp.where(input <= -3, jax.lax.stop_gradient(input) * 0, inside)


def _check_bounds(input: Any, *bounds: float) -> None:
    """That these can be elements; of half types the body does not know."""
    for each in bounds:
        element(each, dtypes.array_dtype(input.dtype))


@op(
    promote=DEFAULT,
    grad_fn="HardshrinkBackward0",
    saves=("input",),
    namespaces=("torch", "nn.functional"),
    out="same",
    typecheck=_check_bounds,
    varies={"lambd": ANY},
)
def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """Each element, those within `lambd` of 0 made 0."""
    floating_only(input, "hardshrink_cpu")
    inside = (input >= -lambd) & (input <= lambd)
    return jnp.where(inside, jnp.zeros_like(input), input)


def _check_lambda(input: Any, lambd: float) -> None:
    if not input.dtype.is_floating_point:
        return
    most = float(dtypes.finfo(input.dtype).max)
    if not 0 <= lambd <= most:
        raise RuntimeError(
            f"lambda must be in range [0, {most:g}] for input dtype "
            f"{input.dtype.scalar_name}, but found {lambd:g}"
        )


@op(
    promote=DEFAULT,
    grad_fn="SoftshrinkBackward0",
    saves=("input",),
    namespaces=("nn.functional",),
    method=False,
    out="same",
    typecheck=_check_lambda,
    varies={"lambd": POSITIVE},
)
def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """Each element moved towards 0 by `lambd`."""
    floating_only(input, "softshrink_check")
    inside = (input >= -lambd) & (input <= lambd)
    outside = jnp.where(input > lambd, input - lambd, input + lambd)
    return jnp.where(inside, jax.lax.stop_gradient(input) * 0, outside)


@op(
    promote=DEFAULT,
    grad_fn="ThresholdBackward0",
    saves=("input",),
    inplace={"grad_fn": "ThresholdBackward1"},
    overlaps=True,
    name="threshold",
    method=False,
    fits=("threshold", "value"),
    out=False,
)
def threshold(input: Array, threshold: Scalar, value: Scalar) -> Array:
    """Each element above a threshold, a fixed value instead of the others."""
    if input.dtype == jnp.bool_ or jnp.iscomplexobj(input):
        raise NotImplementedError(
            f"\"threshold_cpu\" not implemented for '{scalar_name(input)}'"
        )
    limit, other = jnp.asarray(threshold, input.dtype), jnp.asarray(value, input.dtype)
    return jnp.where(input <= limit, other, input)


@op(
    promote=DEFAULT,
    grad_fn="GluBackward0",
    saves=("input",),
    namespaces=(),
    method=False,
    out=False,
    layout=lambda shape, operands: elementwise_strides(
        shape, [(shape, operands[0][1])]
    ),
)
def glu(input: Array, dim: int = -1) -> Array:
    """One half of a dimension times the sigmoid of the other half."""
    if input.ndim == 0:
        raise RuntimeError(
            "glu does not support scalars because halving size must be even"
        )
    dim = wrap_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size "
            f"{input.shape[dim]}"
        )
    floating_only(input, "glu_cpu")
    a, b = jnp.split(input, 2, dim)
    return a * jax.nn.sigmoid(b)


def _prelu_check(input: Any, weight: Any) -> None:
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            "prelu: Type promoting not supported. Got "
            f"{input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )


@op(
    promote=DEFAULT,
    grad_fn="PreluKernelBackward0",
    saves=("input", "weight"),
    namespaces=("torch", "nn.functional"),
    out=False,
    layout=first_layout,
    typecheck=_prelu_check,
)
def prelu(input: Array, weight: Array) -> Array:
    """Each element, the negative ones times a learnt slope of their channel."""
    if weight.size != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != weight.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter "
                f"numbers = {weight.size} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(
            "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
            f"{weight.ndim}"
        )
    floating_only(input, "prelu_cpu")
    if weight.ndim == 1:
        axis = 1 if input.ndim > 1 else 0
        shape = [weight.size if i == axis else 1 for i in range(input.ndim)]
        weight = weight.reshape(shape)
    return jnp.where(input > 0, input, weight * input)


@op(
    promote=DEFAULT,
    grad_fn="RreluWithNoiseBackward0",
    saves=("input", "noise"),
    layout=lambda shape, operands: None,
    inplace={"grad_fn": "RreluWithNoiseBackward1"},
    namespaces=(),
    method=False,
    out=False,
)
def rrelu_with_noise(input: Array, noise: Array) -> Array:
    """Each element, those that are not positive times their noise."""
    floating_only(input, "rrelu_with_noise_out_cpu")
    return jnp.where(input > 0, input, input * noise)
