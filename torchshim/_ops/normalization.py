"""Normalization by batch, layer, group or length, and distances."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.dtypes import get_default_dtype
from torchshim._core.op import ANY, ORDER, POSITIVE, Array, Scalar, op
from torchshim._core.promotion import DEFAULT
from torchshim._ops import _shapes
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    broadcast_shapes,
    check_fixed,
    is_known,
    refuse,
    refuse_half,
    scalar_name,
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
from torchshim._ops.arithmetic import check_difference
from torchshim._ops.matmul import PRECISION
from torchshim._ops.norm import p_norm
from torchshim._ops.view_geometry import size_at
from torchshim._ops.views import wrap_dim

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


# Distances ---------------------------------------------------------------------------


@op(
    promote=DEFAULT,
    grad_fn="SumBackward1",
    saves=("x1", "x2", "intermediate"),
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    layout=lambda shape, operands: None,
    varies=_EPS,
)
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-08) -> Array:
    """The cosine of the angle between vectors along a dimension."""
    if not jnp.issubdtype(x1.dtype, jnp.floating):
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{scalar_name(x1)}"
        )
    if is_known(eps) and not eps >= 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    shape = broadcast_shapes(x1.shape, x2.shape)
    x1, x2 = jnp.broadcast_to(x1, shape), jnp.broadcast_to(x2, shape)
    axis = wrap_dim(dim, len(shape))
    axes = (axis,) if shape else ()

    def unit(x: Array) -> Array:
        # The bound takes no part in the derivative.
        size = p_norm(x, 2, axes)
        bounded = size + jax.lax.stop_gradient(eps - size)
        return x / jnp.where(size >= eps, size, bounded)

    return (unit(x1) * unit(x2)).sum(axes)


@op(
    grad_fn="NormBackward1",
    saves=("intermediate", "result"),
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    layout=lambda shape, operands: None,
    typecheck=lambda x1, x2, *rest: check_difference(x1, x2, 1),
    varies={"p": ORDER, "eps": ANY},
)
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Array:
    """The norm of the difference of vectors along the last dimension."""
    broadcast_shapes(x1.shape, x2.shape)
    z = x1 - x2
    if not jnp.issubdtype(z.dtype, jnp.inexact):
        z = z.astype(get_default_dtype().np)
    z = z + jnp.asarray(eps, z.dtype)
    kind, z = z.real.dtype, widened(z)
    out = p_norm(z, p, (z.ndim - 1,)) if z.ndim else jnp.abs(z)
    return (out if keepdim or not z.ndim else out.squeeze(-1)).astype(kind)


_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": True,
    "donot_use_mm_for_euclid_dist": False,
}


def _cdist_node(x1: Any, x2: Any, p: float, compute_mode: str) -> str:
    by_product = _MODES.get(compute_mode)
    if by_product is None:
        by_product = max(x1.shape[-2], x2.shape[-2]) > 25
    return "ViewBackward0" if by_product and p == 2 else "CdistBackward0"


@op(
    grad_fn=_cdist_node,
    saves=("x1", "x2", "result"),
    method=False,
    out=False,
    varies={"p": ORDER},
)
def cdist(
    x1: Array,
    x2: Array,
    p: float = 2.0,
    compute_mode: str = "use_mm_for_euclid_dist_if_necessary",
) -> Array:
    """The distance of each row of one matrix from each row of another."""
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    both = (("X1", x1), ("X2", x2))
    for name, x in both:
        if x.ndim < 2:
            raise RuntimeError(
                f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            "X1 and X2 must have the same number of columns. X1: "
            f"{x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    for name, x in both:
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: "
                f"{scalar_name(x)}"
            )
    if is_known(p) and not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype != x2.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x1)} but found {scalar_name(x2)}"
        )
    batch = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    a = widened(jnp.broadcast_to(x1, batch + x1.shape[-2:]))
    b = widened(jnp.broadcast_to(x2, batch + x2.shape[-2:]))
    by_product = _MODES[compute_mode]
    if by_product is None:
        by_product = max(a.shape[-2], b.shape[-2]) > 25
    if is_known(p) and p == 2 and by_product and a.shape[-1]:
        out = _euclidean(a, b)
    else:
        if a.size and b.size:
            refuse_half("cdist", x1)
        out = _distance(a[..., :, None, :] - b[..., None, :, :], p)
    return out.astype(x1.dtype)


def _distance(z: Array, p: float) -> Array:
    if not is_known(p) or p != math.inf:
        return p_norm(z, p, (z.ndim - 1,)).squeeze(-1)
    return _largest(z)


@jax.custom_jvp
def _largest(z: Array) -> Array:
    return jnp.max(jnp.abs(z), -1, initial=0)


@_largest.defjvp
def _largest_jvp(primals: Any, tangents: Any) -> Any:
    # Each of several largest differences gets the whole gradient, unless it is 0.
    (z,), (dz,) = primals, tangents
    largest = _largest(z)
    hit = (jnp.abs(z) == largest[..., None]) | jnp.isnan(z)
    return largest, (jnp.where(hit, jnp.sign(z), 0) * dz).sum(-1)


def _euclidean(a: Array, b: Array) -> Array:
    """Distances by one product of matrices; their derivative is 0 where they are."""

    def distance(a: Array, b: Array) -> Array:
        cross = jnp.einsum("...ik,...jk->...ij", a, b, precision=PRECISION)
        squares = (a * a).sum(-1)[..., :, None] + (b * b).sum(-1)[..., None, :]
        return jnp.sqrt(jnp.maximum(squares - 2 * cross, 0))

    @jax.custom_jvp
    def value(a: Array, b: Array) -> Array:
        return distance(a, b)

    @value.defjvp
    def slope(primals: Any, tangents: Any) -> Any:
        (a, b), (da, db) = primals, tangents
        out = value(a, b)
        inner = (
            (a * da).sum(-1)[..., :, None]
            + (b * db).sum(-1)[..., None, :]
            - jnp.einsum("...ik,...jk->...ij", da, b, precision=PRECISION)
            - jnp.einsum("...ik,...jk->...ij", a, db, precision=PRECISION)
        )
        zero = out == 0
        return out, jnp.where(zero, 0, inner / jnp.where(zero, 1, out))

    return value(a, b)


@op(
    grad_fn="PdistBackward0",
    saves=("input", "result"),
    namespaces=("torch", "nn.functional"),
    method=False,
    out=False,
    varies={"p": ORDER},
)
def pdist(input: Array, p: float = 2) -> Array:
    """The distance of each pair of rows."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not jnp.issubdtype(input.dtype, jnp.floating):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if is_known(p) and not p >= 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.shape[0]
    if n > 1 and input.size:
        refuse_half("pdist", input)
    first, second = jnp.triu_indices(n, 1)
    return _distance(input[first] - input[second], p)
