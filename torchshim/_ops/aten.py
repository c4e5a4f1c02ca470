"""Operators that PyTorch's own functions and compilers call, not programs.

They are documented by their schemas alone:
https://github.com/pytorch/pytorch, aten/src/ATen/native/native_functions.yaml
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.dtypes import dtype as DType
from torchshim._core.dtypes import from_array_dtype, get_default_dtype
from torchshim._core.op import Array, Arrays, OptArrays, Scalar, op
from torchshim._core.promotion import DEFAULT
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    INT,
    is_integral,
    kind,
    refuse,
    without_derivative,
)
from torchshim._ops._formats import channels_layout, first_layout
from torchshim._ops._reducing import wide
from torchshim._ops.activation import LEAKY_IN_PLACE, gelu, mish, not_in_place, silu
from torchshim._ops.embedding import frequencies
from torchshim._ops.indexing import (
    added,
    advanced_shape,
    from_end,
    is_integer,
    scalar_for,
    scalar_name,
)
from torchshim._ops.normalization import group_norm
from torchshim._ops.softmax import softmax_input, softmax_of
from torchshim._ops.view_geometry import wrap_dim

_ATEN = ("ops.aten",)

# Softmax ------------------------------------------------------------------------------


def _softmax_axis(
    name: str, grad_output: Array, output: Array, dim: int, input_dtype: DType
) -> int:
    """The dimension, checked as the dtypes are."""
    half = grad_output.dtype == jnp.float32 and input_dtype.name == "float16"
    if half or output.dtype != grad_output.dtype:
        found = "Half" if half else scalar_name(output)
        raise RuntimeError(
            f"expected scalar type {scalar_name(grad_output)} but found {found}"
        )
    axis = wrap_dim(dim, grad_output.ndim)
    if kind(output) in BOOL + INT + COMPLEX:
        last = "lastdim_" if axis == max(output.ndim, 1) - 1 else ""
        raise NotImplementedError(
            f'"{name}_{last}kernel_impl" not implemented for '
            f"'{from_array_dtype(output.dtype).scalar_name}'"
        )
    return axis


@op(
    name="_softmax_backward_data",
    grad_fn="SoftmaxBackwardDataBackward0",
    method=False,
    out=False,
)
def softmax_backward_data(
    grad_output: Array, output: Array, dim: int, input_dtype: DType
) -> Array:
    """The gradient of `softmax`, from its result."""
    axis = _softmax_axis("softmax_backward", grad_output, output, dim, input_dtype)
    y, t = wide(output), wide(grad_output)
    yt = y * t
    total = jnp.sum(yt, axis=axis if y.ndim else None, keepdims=True)
    return (yt - y * total).astype(grad_output.dtype)


@op(
    name="_safe_softmax",
    grad_fn="SafeSoftmaxBackward0",
    saves=("result",),
    method=False,
    out=False,
)
def safe_softmax(input: Array, dim: int, dtype: DType | None = None) -> Array:
    """`softmax`, which is 0 where all elements are -inf."""
    x, axis = softmax_input("softmax", input, dim, dtype)
    w = wide(x)
    return _safe_softmax(w, axis if w.ndim else None).astype(x.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _safe_softmax(x: Array, axis: int | None) -> Array:
    hidden = jnp.all(x == -jnp.inf, axis=axis, keepdims=True)
    return jnp.where(hidden, 0, softmax_of(x, axis))


@_safe_softmax.defjvp
def _safe_softmax_derivative(axis: Any, primals: Any, tangents: Any) -> Any:
    # As that of softmax: by the result.
    y, (t,) = _safe_softmax(*primals, axis), tangents
    yt = y * t
    return y, yt - y * jnp.sum(yt, axis=axis, keepdims=True)


# Indexing -----------------------------------------------------------------------------


def _clamped(input: Array, indices: OptArrays) -> tuple[Any, ...]:
    """Where the indices point to, moved into the tensor."""
    for index in indices:
        if index is not None and not is_integer(index):
            kind_of = scalar_name(index)
            raise RuntimeError(
                f"_unsafe_masked_index found unexpected index type {kind_of}"
            )
    advanced_shape(input.shape, indices)
    found: list[Any] = []
    for d, index in enumerate(indices):
        n = input.shape[d]
        if index is None:
            found.append(slice(None))
        else:
            found.append(from_end(jnp.clip(index, -n, n - 1), n))
    return tuple(found)


@op(
    name="_unsafe_masked_index",
    grad_fn="UnsafeMaskedIndexBackward0",
    saves=("mask", "indices"),
    differentiable=("input",),
    method=False,
    out=False,
)
def unsafe_masked_index(
    input: Array, mask: Array, indices: OptArrays, fill: Scalar
) -> Array:
    """`input[indices]`, replaced by `fill` where the mask is not set."""
    where = _clamped(input, indices)
    filler = scalar_for(fill, input.dtype)
    if not input.size:
        shape = advanced_shape(input.shape, indices)
        return jnp.broadcast_to(filler, shape)
    found = input[where]
    return jnp.where(jnp.broadcast_to(mask, found.shape), found, filler)


@op(
    name="_unsafe_masked_index_put_accumulate",
    grad_fn="UnsafeMaskedIndexPutAccumulateBackward0",
    saves=("mask", "indices"),
    differentiable=("input", "values"),
    layout=first_layout,
    method=False,
    out=False,
)
def unsafe_masked_index_put_accumulate(
    input: Array, mask: Array, indices: OptArrays, values: Array
) -> Array:
    """The input with the values that the mask keeps added at the indices."""
    where = _clamped(input, indices)
    if not input.size:
        return input
    kept = jnp.where(mask, values, jnp.zeros((), values.dtype))
    return added(input, where, kept)


# Pieces -------------------------------------------------------------------------------


@op(
    name="_chunk_cat",
    grad_fn="NotImplemented",
    saves=(),
    method=False,
    out=True,
)
def chunk_cat(tensors: Arrays, dim: int, num_chunks: int) -> Array:
    """Tensors cut into chunks along a dimension; those of one number joined, flat.

    A dimension that the number of chunks does not divide is filled with zeros.
    """
    name = "_chunk_cat expects"
    if not tensors:
        raise RuntimeError(f"{name} a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError(f"{name} positive num_chunks")
    if not all(x.size for x in tensors):
        raise RuntimeError(f"{name} non-empty tensor")
    first = tensors[0]
    if any(x.dtype != first.dtype for x in tensors):
        raise RuntimeError(f"{name} all input tensors with the same dtype")
    if all(x.ndim == first.ndim for x in tensors):
        dim = wrap_dim(dim, first.ndim)
    else:
        if dim < 0:
            raise RuntimeError(
                f"{name} non-negative dim when input tensors have different ndims"
            )
        if any(dim >= x.ndim for x in tensors):
            raise RuntimeError(f"{name} dim < ndim for all input tensors")
    before = first.shape[:dim]
    if any(x.shape[:dim] != before for x in tensors):
        raise RuntimeError(
            f"{name} same sizes of 0,...,dim-1 dimensions for all tensors"
        )

    @without_derivative("aten::_chunk_cat")
    def joined(tensors: Arrays) -> Array:
        rows = []
        for x in tensors:
            missing = -x.shape[dim] % num_chunks
            pads = [(0, missing if d == dim else 0) for d in range(x.ndim)]
            size = (x.shape[dim] + missing) * math.prod(x.shape[dim + 1 :])
            chunks = (*before, num_chunks, size // num_chunks)
            rows.append(jnp.pad(x, pads).reshape(chunks))
        return jnp.concatenate(rows, axis=dim + 1)

    return joined(tuple(tensors))


# Layers -------------------------------------------------------------------------------


def _check_group_norm(input: Any, *rest: Any) -> None:
    if not input.contiguous:
        raise RuntimeError(
            "Expected X.is_contiguous(memory_format) to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an "
            "enhancement request to PyTorch.)"
        )


@op(
    grad_fn="NativeGroupNormBackward0",
    saves=("input", "weight"),
    method=False,
    out=False,
    typecheck=_check_group_norm,
)
def native_group_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> tuple[Array, Array, Array]:
    """`group_norm`, with the means and the inverse standard deviations."""
    out = group_norm(input, group, weight, bias, eps)
    x = wide(input).reshape(N, group, C // group * HxW)
    mean = x.mean(-1)
    variance = jnp.mean(jnp.square(x - mean[..., None]), axis=-1)
    dtype = input.dtype if weight is None else weight.dtype
    inverse = jax.lax.rsqrt(variance + eps)
    return out, mean.astype(dtype), inverse.astype(dtype)


@op(
    grad_fn="MaxPool2DWithIndicesBackwardBackward0",
    saves=("indices",),
    differentiable=("grad_output", "self"),
    namespaces=_ATEN,
    method=False,
    layout=lambda shape, operands: channels_layout(shape, operands[1:]),
    out=False,
)
def max_pool2d_with_indices_backward(
    grad_output: Array,
    self: Array,
    kernel_size: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    ceil_mode: bool,
    indices: Array,
) -> Array:
    """The gradient of `max_pool2d`: each element added where the largest stood."""
    refuse("max_pool2d_backward", grad_output, BOOL + INT + COMPLEX)
    lead, size = self.shape[:-2], math.prod(self.shape[-2:])
    count = math.prod(lead)
    rows = jnp.arange(count)[:, None]
    flat = jnp.zeros((count, size), grad_output.dtype)
    places = indices.reshape(count, -1)
    flat = flat.at[rows, places].add(grad_output.reshape(count, -1), mode="drop")
    return flat.reshape(self.shape)


@op(
    grad_fn="NativeDropoutBackward0",
    saves=("mask",),
    differentiable=("input",),
    namespaces=(),
    method=False,
    layout="preserve",
    out=False,
    real_gradients="native_dropout",
)
def native_dropout_kept(input: Array, mask: Array, scale: Scalar) -> Array:
    """What the mask of `native_dropout` keeps, larger for it."""
    return input * mask.astype(input.dtype) * scalar_for(scale, input.dtype)


@op(
    grad_fn="NativeDropoutBackwardBackward0",
    saves=("grad_output", "mask"),
    curved=False,
    differentiable=("grad_output",),
    namespaces=_ATEN,
    method=False,
    layout="preserve",
    out=False,
    real_gradients="native_dropout_backward",
)
def native_dropout_backward(grad_output: Array, mask: Array, scale: Scalar) -> Array:
    """The gradient of `native_dropout`."""
    if is_integral(grad_output):
        grad_output = grad_output.astype(get_default_dtype().np)
    kept = grad_output * mask.astype(grad_output.dtype)
    return kept * scalar_for(scale, grad_output.dtype)


# Gradients of activations and losses --------------------------------------------------


def _pulled(function: Any, input: Array, gradient: Array) -> Array:
    """What a gradient of a function's result is for its operand."""
    return jax.vjp(function, input)[1](gradient)[0]


def _gradient_of(name: str, saves: Sequence[str] | None = None) -> Any:
    """Declares the gradient of an element-wise operator: `<name>_backward`."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return op(
        promote=DEFAULT,
        grad_fn=f"{title}BackwardBackward0",
        saves=saves,
        namespaces=_ATEN,
        method=False,
        out=False,
    )


@_gradient_of("threshold", ("self",))
def threshold_backward(grad_output: Array, self: Array, threshold: Scalar) -> Array:
    """The gradient of `threshold`, and of `relu` at threshold 0."""
    return jnp.where(self <= threshold, 0, grad_output)


@_gradient_of("sigmoid")
def sigmoid_backward(grad_output: Array, output: Array) -> Array:
    """The gradient of `sigmoid`, from its result."""
    return grad_output * jnp.conj((1 - output) * output)


@_gradient_of("tanh")
def tanh_backward(grad_output: Array, output: Array) -> Array:
    """The gradient of `tanh`, from its result."""
    return grad_output * jnp.conj(1 - output * output)


@_gradient_of("gelu")
def gelu_backward(
    grad_output: Array, self: Array, *, approximate: str = "none"
) -> Array:
    """The gradient of `gelu`."""
    return _pulled(partial(gelu, approximate=approximate), self, grad_output)


@_gradient_of("silu")
def silu_backward(grad_output: Array, self: Array) -> Array:
    """The gradient of `silu`."""
    return _pulled(silu, self, grad_output)


@_gradient_of("mish")
def mish_backward(grad_output: Array, self: Array) -> Array:
    """The gradient of `mish`."""
    return _pulled(mish, self, grad_output)


@_gradient_of("hardtanh", ("self",))
def hardtanh_backward(
    grad_output: Array, self: Array, min_val: Scalar, max_val: Scalar
) -> Array:
    """The gradient of `hardtanh`: none at the bounds and beyond."""
    return jnp.where((self <= min_val) | (self >= max_val), 0, grad_output)


@_gradient_of("leaky_relu", ("self",))
def leaky_relu_backward(
    grad_output: Array, self: Array, negative_slope: float, self_is_result: bool
) -> Array:
    """The gradient of `leaky_relu`, from its operand or, in place, from its result."""
    if self_is_result:
        LEAKY_IN_PLACE(self, negative_slope)
    return jnp.where(self > 0, grad_output, grad_output * negative_slope)


@_gradient_of("elu")
def elu_backward(
    grad_output: Array,
    alpha: float,
    scale: Scalar,
    input_scale: Scalar,
    is_result: bool,
    self_or_result: Array,
) -> Array:
    """The gradient of `elu`, from its operand or, in place, from its result."""
    x = self_or_result
    if is_result:
        not_in_place("elu")(x, alpha)
    low = jnp.where(x < 0, x, 0)  # PyTorch's has no slope at 0
    if is_result:
        below = input_scale * (low + alpha * scale)
    else:
        below = input_scale * alpha * scale * jnp.exp(low * input_scale)
    return grad_output * jnp.where(x <= 0, below, scale)


@_gradient_of("mse_loss")
def mse_loss_backward(
    grad_output: Array, self: Array, target: Array, reduction: int
) -> Array:
    """The gradient of `mse_loss`; `reduction`: 0 is none, 1 the mean, 2 the sum."""
    difference = 2 * (self - target)
    if reduction == 1:
        difference = difference / difference.size
    return difference * grad_output


@op(
    name="_log_softmax_backward_data",
    grad_fn="LogSoftmaxBackwardDataBackward0",
    namespaces=_ATEN,
    method=False,
    out=False,
)
def log_softmax_backward_data(
    grad_output: Array, output: Array, dim: int, input_dtype: DType
) -> Array:
    """The gradient of `log_softmax`, from its result."""
    axis = _softmax_axis("log_softmax_backward", grad_output, output, dim, input_dtype)
    gradient, shares = wide(grad_output), jnp.exp(wide(output))
    total = jnp.sum(gradient, axis=axis if output.ndim else None, keepdims=True)
    return (gradient - shares * total).astype(grad_output.dtype)


@op(
    grad_fn="EmbeddingDenseBackwardBackward0",
    saves=("indices",),
    namespaces=_ATEN,
    method=False,
    out=False,
)
def embedding_dense_backward(
    grad_output: Array,
    indices: Array,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Array:
    """The gradient of `embedding` for its weight: rows added where they came from."""
    rows = grad_output.reshape(-1, grad_output.shape[-1])
    at = indices.reshape(-1)
    if scale_grad_by_freq:
        counts = frequencies(at, num_weights).astype(rows.dtype)
        rows = rows / counts[:, None]
    rows = jnp.where((at == padding_idx)[:, None], 0, rows)
    zeros = jnp.zeros((num_weights, rows.shape[-1]), wide(rows).dtype)
    return zeros.at[at].add(wide(rows)).astype(rows.dtype)
