"""Values rounded as quantization would round them, for training that knows of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.checks import Check
from torchshim._core.op import Array, Scalar, op
from torchshim._ops._common import check_fixed, is_tensor
from torchshim._ops._formats import first_layout

_OUTSIDE = "`zero_point` must be between `quant_min` and `quant_max`."


def faked(
    x: Array, scale: Any, zero: Array, least: int, most: int, wraps: bool
) -> tuple[Array, Array]:
    """Rounded to multiples of the scale within a range, and where it is within it.

    Gradients pass there. Where PyTorch turns numbers into integers before it compares
    them (`wraps`), those that are none become the least.
    """
    wide = jnp.promote_types(x.dtype, jnp.float32)
    inverse = (jnp.float32(1) / scale.astype(jnp.float32)).astype(wide)
    scaled = x.astype(wide) * inverse
    if jnp.issubdtype(zero.dtype, jnp.floating):
        number = jnp.round(scaled + zero.astype(wide))
    else:
        number = jnp.round(scaled) + zero.astype(wide)
    inside = (number >= least) & (number <= most)
    if wraps:
        number = jnp.where(jnp.abs(number) < 2.0**63, number, least)
    held = jnp.clip(jnp.where(jnp.isnan(number), least, number), least, most)
    steps = (held - zero.astype(wide)).astype(jnp.float32)
    made = (steps * scale.astype(jnp.float32)).astype(x.dtype)
    return _passing(x, made, inside), inside


@jax.custom_jvp
def _passing(x: Array, made: Array, inside: Array) -> Array:
    return made


@_passing.defjvp
def _passing_jvp(primals: Any, tangents: Any) -> Any:
    (x, made, inside), (dx, _, _) = primals, tangents
    return _passing(x, made, inside), jnp.where(inside, dx, 0)


def _check_call(
    input: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> None:
    kernel = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams"
    check_fixed(kernel, scale=scale, zero_point=zero_point)
    _check_range(input, zero_point, quant_min, quant_max, "tensor_cachemask_kernel")


def _check_range(
    input: Any, zero_point: Any, quant_min: int, quant_max: int, kernel: str
) -> None:
    if quant_min > quant_max:
        raise RuntimeError(
            "`quant_min` should be less than or         equal to `quant_max`."
        )
    if not is_tensor(zero_point) and not quant_min <= zero_point <= quant_max:
        raise RuntimeError(_OUTSIDE)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(
            f'"fake_quantize_{kernel}_type_handling" not implemented for '
            f"'{input.dtype.scalar_name}'"
        )


@op(
    public="fake_quantize_per_tensor_affine",
    name="fake_quantize_by_tensors",
    overload=True,
    method=False,
    grad_fn="FakeQuantizePerTensorAffineCachemaskTensorQparamsBackward0",
    differentiable=("input",),
    layout=first_layout,
    out=False,
    curved=False,
    typecheck=_check_call,
)
def by_tensors(
    input: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int
) -> Array:
    """As `by_numbers`, with tensors of one element."""
    zero = zero_point.reshape(()).astype(jnp.int32)
    return faked(input, scale.reshape(()), zero, quant_min, quant_max, False)[0]


@op(
    public="fake_quantize_per_tensor_affine",
    name="fake_quantize_by_numbers",
    overload=True,
    method=False,
    grad_fn="FakeQuantizePerTensorAffineCachemaskBackward0",
    saves=("intermediate",),
    differentiable=("input",),
    layout="preserve",
    out=False,
    curved=False,
    typecheck=_check_call,
)
def by_numbers(
    input: Array, scale: Scalar, zero_point: int, quant_min: int, quant_max: int
) -> Array:
    """`input` rounded to multiples of `scale`, from `quant_min` to `quant_max` of them.

    Gradients pass where nothing was cut off.
    """
    return by_tensors(
        input, jnp.asarray(scale), jnp.asarray(zero_point), quant_min, quant_max
    )


def _check_channels(
    input: Any,
    scale: Any,
    zero_point: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    learned: bool = False,
) -> None:
    """What PyTorch refuses; zero points that are learned are of any dtype."""
    kernel = "fake_quantize_per_channel_affine_cachemask"
    if not learned:
        check_fixed(kernel, scale=scale, zero_point=zero_point)
    kinds = (
        ("Scale", scale, "Float or BFloat16", ("float32", "bfloat16")),
        ("Zero-point", zero_point, "Int32, Float or Half", _ZERO_DTYPES),
    )
    for name, given, wanted, dtypes in kinds[: 1 if learned else 2]:
        if given.dtype.name not in dtypes:
            raise RuntimeError(
                f"{name} must be {wanted}, found {given.dtype.scalar_name}"
            )
    for name, given in (("scale", scale), ("zero point", zero_point)):
        if len(given.shape) != 1:
            raise RuntimeError(f"{name} should be a 1-D tensor")
    if scale.shape != zero_point.shape:
        raise RuntimeError("scale and zero-point need to have the same dimensions")
    ndim = len(input.shape)
    if not -ndim <= axis < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {axis})"
        )
    if scale.shape[0] != input.shape[axis]:
        raise RuntimeError(
            "dimensions of scale and zero-point are not consistent with input tensor"
        )
    if axis < 0:
        raise RuntimeError("`axis` must be between 0 and number of dimensions of input")
    _check_range(input, zero_point, quant_min, quant_max, "channel_cachemask_cpu")


_ZERO_DTYPES = ("int32", "float32", "float16")


def _zero_points(
    input: Array, scale: Array, zero_point: Array, axis: int, least: int, most: int
) -> list[Check]:
    if not jnp.issubdtype(zero_point.dtype, jnp.integer):
        return []
    outside = (zero_point < least) | (zero_point > most)
    return [Check(outside.any(), RuntimeError, _OUTSIDE)]


@op(
    method=False,
    grad_fn="FakeQuantizePerChannelAffineCachemaskBackward0",
    differentiable=("input",),
    layout=first_layout,
    out=False,
    curved=False,
    typecheck=_check_channels,
    checks=_zero_points,
)
def fake_quantize_per_channel_affine(
    input: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> Array:
    """As `fake_quantize_per_tensor_affine`, with scales for each index of `axis`."""
    shape = [1] * input.ndim
    shape[axis] = -1
    scale, zero = scale.reshape(shape), zero_point.reshape(shape)
    return faked(input, scale, zero, quant_min, quant_max, True)[0]


# Scales that are learned --------------------------------------------------------------


def _learnable_call(
    input: Any,
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    grad_factor: float,
) -> None:
    for given in (scale, zero_point):
        if not given.shape:
            raise IndexError("select() cannot be applied to a 0-dim tensor.")
    _check_range(input, zero_point, quant_min, quant_max, "tensor_cachemask_kernel")


@jax.custom_jvp
def _learned(
    x: Array, scale: Array, zero: Array, least: int, most: int, factor: Array
) -> Array:
    rounded = jnp.round(jnp.clip(zero, least, most)).astype(jnp.int32)
    return faked(x, scale, rounded, least, most, zero.ndim > 0)[0]


@_learned.defjvp
def _learned_jvp(primals: Any, tangents: Any) -> Any:
    """Of the scale and zero point: what moves where something was cut off, or rounded.

    https://arxiv.org/abs/1902.08153
    """
    x, scale, zero, least, most, factor = primals
    dx, dscale, dzero, *_ = tangents
    held = jnp.clip(zero, least, most)
    # PyTorch's gradient of one zero point rounds it in another way than the function.
    if zero.ndim:
        rounded = jnp.round(held)
    else:
        rounded = jnp.trunc(jnp.clip(zero + 0.5, least, most))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    number = jnp.round(wide * (1 / scale) + rounded)
    inside = (number >= least) & (number <= most)
    cut = jnp.where(number < least, least, most) - rounded
    made = (jnp.clip(number, least, most) - rounded) * scale
    by_scale = jnp.where(inside, (made - wide) / scale, cut)
    by_zero = jnp.where(inside, 0, -scale)
    moved = jnp.where(inside, dx, 0)
    moved = moved + (dscale * by_scale + dzero * by_zero) * factor
    out = _learned(x, scale, zero, least, most, factor)
    return out, moved.astype(out.dtype)


_LEARNABLE: dict[str, Any] = {
    "method": False,
    "differentiable": ("input", "scale", "zero_point"),
    "layout": first_layout,
    "curved": False,
    "out": False,
}


@op(
    grad_fn="FakeQuantizeLearnablePerTensorAffineBackward0",
    typecheck=_learnable_call,
    **_LEARNABLE,
)
def _fake_quantize_learnable_per_tensor_affine(
    input: Array,
    scale: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Array:
    """As `fake_quantize_per_tensor_affine`, with gradients of the scale and zero point.

    Those are multiplied by `grad_factor`.
    """
    scale, zero = scale[0], zero_point[0].astype(jnp.float32)
    return _learned(input, scale, zero, quant_min, quant_max, jnp.float32(grad_factor))


def _learnable_channels(
    input: Any,
    scale: Any,
    zero_point: Any,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float,
) -> None:
    _check_channels(input, scale, zero_point, axis, quant_min, quant_max, learned=True)


@op(
    grad_fn="FakeQuantizeLearnablePerChannelAffineBackward0",
    typecheck=_learnable_channels,
    **_LEARNABLE,
)
def _fake_quantize_learnable_per_channel_affine(
    input: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Array:
    """As `_fake_quantize_learnable_per_tensor_affine`, for each index of `axis`."""
    shape = [1] * input.ndim
    shape[axis] = -1
    scale, zero = scale.reshape(shape), zero_point.reshape(shape).astype(jnp.float32)
    return _learned(input, scale, zero, quant_min, quant_max, jnp.float32(grad_factor))
