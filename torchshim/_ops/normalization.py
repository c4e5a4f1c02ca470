"""Normalization by batch, layer, group or neighbours."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.dtypes import get_default_dtype
from torchshim._core.op import POSITIVE, Array, Scalar, op
from torchshim._ops import _shapes
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    check_fixed,
    refuse,
    refuse_half,
    widened,
    without_derivative,
)
from torchshim._ops._formats import batch_layout, channels_layout
from torchshim._ops._normalization_checks import (
    check_batch_norm,
    check_mixed,
    check_normalized,
    warn_of_mixed,
)
from torchshim._ops.activation import floating_only
from torchshim._ops.view_geometry import size_at

# The one number of an operator's that varies.
_EPS = {"eps": POSITIVE}


def standardized(x: Array, axes: tuple[int, ...], eps: float) -> Array:
    """`x` with mean 0 and variance 1 over some axes.

    Its derivative needs two sums; differentiating the formula as written needs more.
    """

    def deviation(x: Array) -> tuple[Array, Array]:
        centred = x - jnp.mean(x, axis=axes, keepdims=True)
        variance = jnp.mean(centred * centred, axis=axes, keepdims=True)
        return centred, jax.lax.rsqrt(variance + eps)

    @jax.custom_jvp
    def value(x: Array) -> Array:
        centred, inverse = deviation(x)
        return centred * inverse

    @value.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        (x,), (dx,) = primals, tangents
        out = value(x)
        _, inverse = deviation(x)
        centred = dx - jnp.mean(dx, axis=axes, keepdims=True)
        along = jnp.mean(out * dx, axis=axes, keepdims=True)
        return out, inverse * (centred - out * along)

    return value(x)


def _scaled(x: Array, weight: Any, bias: Any, shape: tuple[int, ...]) -> Array:
    if weight is not None:
        x = x * widened(weight).reshape(shape)
    if bias is not None:
        x = x + widened(bias).reshape(shape)
    return x


def _channels(x: Any) -> tuple[int, ...]:
    return tuple(s if i == 1 else 1 for i, s in enumerate(x.shape))


def _but(x: Any, *kept: int) -> tuple[int, ...]:
    return tuple(i for i in range(x.ndim) if i not in kept)


def _private(grad_fn: str, **options: Any) -> Any:
    options = {"namespaces": (), "method": False, "out": False, **options}
    return op(grad_fn=grad_fn, **options)


@_private(
    "NativeBatchNormBackward0",
    saves=("input", "weight", "computed"),
    layout=batch_layout,
    one_node=True,
    varies=_EPS,
)
def batch_norm_train(
    input: Array, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    """Every channel with mean 0 and variance 1 over the batch, then scaled."""
    check_batch_norm(input, weight=weight, bias=bias)
    out = standardized(widened(input), _but(input, 1), eps)
    return _scaled(out, weight, bias, _channels(input)).astype(input.dtype)


@_private("NotImplemented", saves=())
@without_derivative("aten::batch_norm_update_stats")
def batch_statistics(
    input: Array, running_mean: Array | None, running_var: Array | None
) -> tuple[Array, Array]:
    """The mean of every channel over the batch, and its variance."""
    if input.ndim < 2:
        size_at(input.shape, 1)  # raises
    if not input.size:
        raise RuntimeError(
            "input tensor must have at least one element, but got input_sizes = "
            f"{list(input.shape)}"
        )
    refuse("batch_norm_update_stats_cpu", input, BOOL + INT + COMPLEX)
    check_batch_norm(input, running_mean=running_mean, running_var=running_var)
    x = widened(input)
    axes = _but(input, 1)
    given = [r for r in (running_mean, running_var) if r is not None]
    dtype = given[0].dtype if given else input.dtype
    return x.mean(axes).astype(dtype), x.var(axes).astype(dtype)


def _running_typecheck(
    input: Any, weight: Any, bias: Any, mean: Any, var: Any, eps: Any
) -> None:
    check_fixed("native_batch_norm", running_mean=mean, running_var=var)


@_private(
    "NativeBatchNormBackward0",
    saves=("input", "weight", "running_mean", "running_var"),
    differentiable=("input", "weight", "bias"),
    layout=batch_layout,
    one_node=True,
    varies=_EPS,
    typecheck=_running_typecheck,
)
def batch_norm_eval(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    eps: float,
) -> Array:
    """Every channel shifted and scaled by running statistics."""
    check_batch_norm(
        input,
        weight=weight,
        bias=bias,
        running_mean=running_mean,
        running_var=running_var,
    )
    shape = _channels(input)
    inverse = 1 / jnp.sqrt(widened(running_var) + eps)
    out = (widened(input) - widened(running_mean).reshape(shape)) * inverse.reshape(
        shape
    )
    return _scaled(out, weight, bias, shape).astype(input.dtype)


def _check_running(running: Array, input: Array, name: str) -> None:
    check_batch_norm(input, **{name: running})


@_private("", differentiable=False, saves=(), inplace=True)
def update_mean(
    running: Array, input: Array, momentum: Scalar, by_sample: bool
) -> Array:
    """A running mean moved towards that of a batch (or of each of its samples)."""
    _check_running(running, input, "running_mean")
    return _moved(running, jnp.mean(widened(input), axis=_but(input, 1)), momentum)


@_private("", differentiable=False, saves=(), inplace=True)
def update_var(
    running: Array, input: Array, momentum: Scalar, by_sample: bool
) -> Array:
    """As `update_mean`, the unbiased variance."""
    _check_running(running, input, "running_var")
    x = widened(input)
    axes = _but(x, 0, 1) if by_sample else _but(x, 1)
    count = math.prod(x.shape[i] for i in axes)
    centred = x - jnp.mean(x, axis=axes, keepdims=True)
    biased = jnp.mean(centred * centred, axis=axes)
    var = biased * (count / max(count - 1, 1)) if count != 1 else biased * jnp.nan
    return _moved(running, var.mean(0) if by_sample else var, momentum)


def _moved(running: Array, value: Array, momentum: Any) -> Array:
    m = jnp.asarray(momentum, jnp.float64).astype(value.dtype)
    return (m * value + (1 - m) * running.astype(value.dtype)).astype(running.dtype)


@_private(
    "ViewBackward0",
    saves=("input", "weight", "running_mean", "running_var"),
    differentiable=("input", "weight", "bias"),
    one_node=True,
    varies=_EPS,
    typecheck=_running_typecheck,
)
def instance_norm_eval(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_var: Array,
    eps: float,
) -> Array:
    """`batch_norm_eval`, in PyTorch's graph another node."""
    return batch_norm_eval(input, weight, bias, running_mean, running_var, eps)


@_private(
    "ViewBackward0",
    saves=("input", "weight", "computed"),
    one_node=True,
    varies=_EPS,
)
def instance_norm_train(
    input: Array, weight: Array | None, bias: Array | None, eps: float
) -> Array:
    """Every channel of every sample with mean 0 and variance 1, then scaled."""
    check_batch_norm(input, weight=weight, bias=bias)
    out = standardized(widened(input), _but(input, 0, 1), eps)
    return _scaled(out, weight, bias, _channels(input)).astype(input.dtype)


# Layers and groups -------------------------------------------------------------------


def _layer_norm_typecheck(input: Any, normalized_shape: Any, *rest: Any) -> None:
    if isinstance(normalized_shape, int):
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of "
            "ints, not int"
        )


@op(
    grad_fn="NativeLayerNormBackward0",
    saves=("input", "weight", "bias", "computed"),
    namespaces=("nn.functional",),
    method=False,
    out=False,
    typecheck=_layer_norm_typecheck,
    shape=_shapes.normalized,
    one_node=True,
    varies=_EPS,
)
def layer_norm(
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
) -> Array:
    """The last dimensions with mean 0 and variance 1, then scaled."""
    check_mixed(input, weight, bias)
    check_normalized(input, normalized_shape, ", ", weight=weight, bias=bias)
    floating_only(input, "LayerNormKernelImpl")
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    out = standardized(widened(input), axes, eps)
    return _scaled(out, weight, bias, tuple(normalized_shape)).astype(input.dtype)


def _rms_node(input: Any, *rest: Any) -> str:
    return "ToCopyBackward0" if input.dtype.itemsize == 2 else "MulBackward0"


@op(
    grad_fn=_rms_node,
    saves=("input", "weight", "computed"),
    method=False,
    out=False,
    namespaces=("torch", "nn.functional"),
    shape=_shapes.normalized,
    varies=_EPS,
)
def rms_norm(
    input: Array,
    normalized_shape: tuple[int, ...],
    weight: Array | None = None,
    eps: float | None = None,
) -> Array:
    """The last dimensions divided by their root mean square, then scaled."""
    if input.ndim < len(normalized_shape):
        raise ValueError(
            f"Input tensor must have at least {len(normalized_shape)} dimensions, but "
            f"got {input.ndim}"
        )
    check_normalized(input, normalized_shape, "", weight=weight)
    if not jnp.issubdtype(input.dtype, jnp.inexact):
        floating_only(input, "rms_norm")
    if weight is not None and weight.dtype != input.dtype:
        warn_of_mixed(input, weight)
    x = widened(input)
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    if eps is None:
        eps = float(jnp.finfo(x.dtype).eps)
    # The squares of complex numbers, not of their sizes, as PyTorch has it.
    out = x * jax.lax.rsqrt((x * x).mean(axes, keepdims=True) + eps)
    out = _scaled(out, weight, None, tuple(normalized_shape))
    return out.astype(input.dtype)


@op(
    grad_fn="NativeGroupNormBackward0",
    saves=("input", "weight", "computed"),
    namespaces=(),
    method=False,
    out=False,
    layout=channels_layout,
    varies=_EPS,
)
def group_norm(
    input: Array,
    num_groups: int,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-05,
) -> Array:
    """Groups of channels with mean 0 and variance 1, then scaled by channel."""
    if num_groups <= 0:
        raise RuntimeError(
            f"Expected num groups to be greater than 0, got {num_groups}"
        )
    n, channels = input.shape[:2]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but "
            f"got input of shape {list(input.shape)} and num_groups={num_groups}"
        )
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and (x.ndim != 1 or x.size != channels):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of "
                f"channels in input, but got {name} of shape {list(x.shape)} and input "
                f"of shape {list(input.shape)}"
            )
    check_mixed(input, weight, bias)
    floating_only(input, "GroupNormKernelImpl")
    rest = math.prod(input.shape[2:])
    grouped = widened(input).reshape(n, num_groups, channels // num_groups * rest)
    out = standardized(grouped, (2,), eps).reshape(input.shape)
    return _scaled(out, weight, bias, _channels(input)).astype(input.dtype)


@op(
    layout="preserve",
    grad_fn="DivBackward0",
    saves=("input", "intermediate"),
    namespaces=("nn.functional",),
    method=False,
    out=False,
    varies={"alpha": POSITIVE, "beta": POSITIVE, "k": POSITIVE},
)
def local_response_norm(
    input: Array,
    size: int,
    alpha: float = 0.0001,
    beta: float = 0.75,
    k: float = 1.0,
) -> Array:
    """Each element divided by a power of the squares of its neighbour channels."""
    if input.ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          input (got "
            f"{input.ndim} dimensions)"
        )
    if not input.size:
        return input
    kernel = "avg_pool2d" if input.ndim == 3 else "avg_pool3d_out_frame"
    if input.dtype != jnp.int64:
        floating_only(input, kernel)
    if input.ndim > 3:
        refuse_half(kernel, input)
    if size == 0:
        sizes = "kH: 0 kW: 1" if input.ndim == 3 else "kT: 0 kH: 1 kW: 1"
        raise RuntimeError(f"kernel size should be greater than zero, but got {sizes}")
    x = widened(input)
    pads = [(0, 0)] * input.ndim
    pads[1] = (size // 2, (size - 1) // 2)
    padded = jnp.pad(x * x, pads)
    channels = input.shape[1]
    total = sum(
        jax.lax.slice_in_dim(padded, i, i + channels, axis=1) for i in range(size)
    )
    if jnp.issubdtype(x.dtype, jnp.inexact):
        out = x / (total / size * alpha + k) ** beta
        return out.astype(input.dtype)
    # Of integers PyTorch takes the mean in integers.
    kind = get_default_dtype().np
    mean = jnp.asarray(total // size, kind)
    return x / (mean * alpha + k) ** beta
