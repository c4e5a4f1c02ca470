"""Linear layers and convolutions of quantized tensors, and of weights alone.

The steps of input and weight (codes less that of zero) are small integers. Their
products are added up in a dtype of floating point that holds all the sums.
https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/qlinear.cpp
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim._core import dtypes
from torchshim._core.layout import channels_last, channels_last_3d
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._ops.quantized_products import is_exact
from torchshim._quantized.construct import quantize_per_tensor_dynamic
from torchshim._quantized.packed import (
    Conv2dWeight,
    Conv3dWeight,
    ConvWeight,
    LinearWeight,
    check_bias,
    expect,
    operator,
    single,
)
from torchshim._quantized.tensor import (
    PerChannel,
    PerTensor,
    decoded,
    encoded,
    is_quantized,
    per_tensor,
    quantized,
)

_QUINT8 = dtypes.NAMES["quint8"]


def check_backend(x: Any, name: str, wanted: bool = True) -> None:
    """NotImplementedError for a tensor that is not as wanted: quantized, or not."""
    if is_quantized(x) != wanted:
        backend = "QuantizedCPU" if is_quantized(x) else "CPU"
        kind = "a quantized tensor" if wanted else "a tensor that is not quantized"
        raise NotImplementedError(
            f"Could not run '{name}' with arguments from the '{backend}' backend: it "
            f"takes {kind}"
        )


def input_steps(x: Any, text: str) -> tuple[Any, PerTensor]:
    """The steps of an input in float32, and its scheme; raises for other dtypes."""
    if x.dtype is not _QUINT8:
        raise RuntimeError(f"{text} QUInt8 but got {x.dtype.scalar_name}")
    scheme = per_tensor(x)
    return x._v.float() - scheme.zero_point, scheme


# Linear -------------------------------------------------------------------------------


def check_weight(weight: Any, name: str) -> None:
    """Raises for a weight that is not quantized as those of layers are."""
    check_backend(weight, f"quantized::{name}")
    if weight.dtype is not dtypes.NAMES["qint8"]:
        raise RuntimeError(
            f"expected scalar type QInt8 but found {weight.dtype.scalar_name}"
        )
    if isinstance(weight._scheme, PerChannel) and weight._scheme.floats:
        raise RuntimeError("Unsupported qscheme: per_channel_affine_float_qparams")


_TWO = (
    "The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional."
)


@operator("linear_prepack")
def linear_prepack(W: Any, B: Any = None) -> LinearWeight:
    """The weight and the bias of a linear layer, for `linear`."""
    check_weight(W, "linear_prepack")
    if W.dim() != 2:
        raise RuntimeError(_TWO)
    return LinearWeight(single(W), check_bias(B, W.shape[0], "N"))


@operator("linear_unpack", "linear_unpack_fp16")
def linear_unpack(W_prepack: Any) -> tuple[Any, Any]:
    """The weight and the bias that a packed weight was made of."""
    return expect(
        W_prepack, LinearWeight, "quantized::linear_unpack", "W_prepack"
    ).unpack()


def _sums(steps: Any, weight: Any) -> Any:
    """The exact products of steps of an input and of a weight."""
    if is_exact(steps.shape[-1], weight.reach):
        return fns.linear(steps, weight.steps())
    return fns.linear(steps.double(), weight.steps().double())


def _check_columns(x: Any, weight: Any) -> None:
    if x.dim() < 2:
        raise RuntimeError(
            "The dimension of input tensor should be larger than or equal to 2"
        )
    if x.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            f"The number of rows in the packB should be equal to K: {x.shape[-1]}"
        )


def _linear(relu: bool) -> Callable[..., Any]:
    name = "quantized::linear_relu" if relu else "quantized::linear"

    def linear(X: Any, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Any:
        """A linear layer of a quantized tensor, by the scale of the result."""
        check_backend(X, name)
        packed = expect(W_prepack, LinearWeight, name, "W_prepack")
        weight = packed.packed
        if weight is None:
            raise RuntimeError(f"{name} needs a weight that was packed as qint8")
        with untracked():
            steps, given = input_steps(X, "Expected input data type")
            _check_columns(X, packed._tensor)
            out = PerTensor(float(Y_scale_i), int(Y_zero_point_i))
            parts = weight.scales, packed._bias, given.scale, *out, -1, relu
            return quantized(fns.requantized(_sums(steps, weight), *parts), out)

    return linear


operator("linear")(_linear(False))
operator("linear_relu")(_linear(True))


def check_engine(name: str) -> None:
    """RuntimeError unless the engine is oneDNN, which alone has some operators."""
    engine = torchshim.backends.quantized.engine
    if engine != "onednn":
        raise RuntimeError(
            f"Didn't find engine for operation quantized::{name}"
            f"{'' if name.endswith('.') else ' '}{engine.upper()}"
        )


def _activated(
    x: Any, packed: Any, scheme: PerTensor, name: str, activation: Callable[[Any], Any]
) -> Any:
    """A linear layer whose result goes through a function before it is rounded."""
    check_engine(name)
    check_backend(x, f"quantized::{name}")
    packed = expect(packed, LinearWeight, f"quantized::{name}", "W_prepack")
    with untracked():
        steps, given = input_steps(x, "Expected input data type")
        _check_columns(x, packed._tensor)
        scale = x._v.new_tensor(given.scale, dtype=dtypes.float32)
        parts = packed.packed.scales, packed._bias, -1, False
        made = fns.quantized_sums(_sums(steps, packed.packed), scale, *parts)
        return quantized(encoded(activation(made), scheme, x.dtype), scheme)


@operator("linear_leaky_relu")
def linear_leaky_relu(
    X: Any, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int, negative_slope: float
) -> Any:
    """A linear layer and a leaky ReLU of a quantized tensor; the engine is oneDNN."""
    scheme = PerTensor(float(Y_scale_i), int(Y_zero_point_i))

    def activation(x: Any) -> Any:
        return x.where(x > 0, x * negative_slope)

    return _activated(X, W_prepack, scheme, "linear_leaky_relu", activation)


@operator("linear_tanh")
def linear_tanh(X: Any, W_prepack: Any, Y_scale_i: float, Y_zero_point_i: int) -> Any:
    """A linear layer and tanh of a quantized tensor; the engine is oneDNN."""
    scheme = PerTensor(float(Y_scale_i), int(Y_zero_point_i))
    return _activated(X, W_prepack, scheme, "linear_tanh", lambda x: x.tanh())


def dynamic_sums(
    x: Any, weight: Any, bias: Any, reduce_range: bool, relu: bool = False
) -> Any:
    """A linear layer of numbers that are rounded by a scale which they give."""
    steps, scale = fns.quantized_steps(x, reduce_range)
    sums = _sums(steps, weight)
    return fns.quantized_sums(sums, scale, weight.scales, bias, -1, relu)


def check_floats(x: Any) -> None:
    """RuntimeError for a tensor of another dtype than float32."""
    if x.dtype is not dtypes.float32:
        raise RuntimeError(
            f"expected scalar type Float but found {x.dtype.scalar_name}"
        )


def float_linear(
    x: Any, packed: LinearWeight, reduce_range: bool, relu: bool = False
) -> Any:
    """A linear layer of numbers, with a packed weight of codes or of halves."""
    check_floats(x)
    _check_columns(x, packed._tensor)
    with untracked():
        if packed.packed is None:
            made = half_linear(packed, x)
            return made.relu() if relu else made
        given = packed.packed, packed._bias
        return dynamic_sums(x.detach(), *given, bool(reduce_range), relu)


def _linear_dynamic(relu: bool, halves: bool) -> Callable[..., Any]:
    kinds = "_relu" if relu else "", "_fp16" if halves else ""
    name = "quantized::linear{}_dynamic{}".format(*kinds)

    def linear_dynamic(X: Any, W_prepack: Any, reduce_range: bool = False) -> Any:
        """A linear layer of numbers with a packed weight, of codes or of halves."""
        check_backend(X, name, False)
        packed = expect(W_prepack, LinearWeight, name, "W_prepack")
        return float_linear(X, packed, reduce_range, relu)

    return operator(name.partition("::")[2])(linear_dynamic)


# Halves -------------------------------------------------------------------------------

_LARGEST_HALF = 65504.0


def _halved(weight: Any) -> Any:
    with untracked():
        held = weight.detach().nan_to_num(nan=-_LARGEST_HALF)
        held = held.clamp(-_LARGEST_HALF, _LARGEST_HALF)
        return held.half().float()


@operator("linear_prepack_fp16")
def linear_prepack_fp16(W: Any, B: Any = None) -> LinearWeight:
    """A weight that is rounded to float16, and the bias, for `linear_dynamic_fp16`."""
    if W.dim() != 2:
        raise RuntimeError(_TWO)
    return LinearWeight(_halved(W), B)


def half_linear(packed: LinearWeight, x: Any) -> Any:
    """A linear layer with a weight of halves."""
    return fns.linear(x.detach(), packed._tensor, packed._bias)


for _relu in (False, True):
    for _halves in (False, True):
        _linear_dynamic(_relu, _halves)


@operator("linear_dynamic_fp16_unpacked_weight")
def linear_dynamic_fp16_unpacked_weight(X: Any, weight: Any, bias: Any) -> Any:
    """As `linear_dynamic_fp16`, with a weight of float32."""
    with untracked():
        return half_linear(linear_prepack_fp16(weight, bias), X)


def _linear_between(relu: bool) -> Callable[..., Any]:
    def linear(X: Any, X_scale: float, X_zero_point: int, W_prepack: Any) -> Any:
        """A linear layer of numbers that are rounded by a scale given, in float32."""
        packed = expect(W_prepack, LinearWeight, "quantized::linear", "W_prepack")
        _check_columns(X, packed._tensor)
        with untracked():
            scale = np.float32(X_scale)
            codes = (X.detach() * float(np.float32(1) / scale)).round() + X_zero_point
            sums = _sums(codes.clamp(0, 255) - X_zero_point, packed.packed)
            by = X.new_tensor(float(scale))
            parts = packed.packed.scales, packed._bias, -1, relu
            return fns.quantized_sums(sums, by, *parts)

    return linear


operator("linear_with_input_q_dq_qweight_dq_output_fp32")(_linear_between(False))
operator("linear_with_input_q_dq_qweight_dq_relu_output_fp32")(_linear_between(True))

# Convolutions -------------------------------------------------------------------------


def _ints(values: Any, dims: int) -> list[int]:
    return [values] * dims if isinstance(values, int) else list(values)


_PARTS = ("stride", "padding", "output_padding", "dilation")


def _packed(
    name: str,
    dims: int,
    transpose: bool,
    weight: Any,
    bias: Any,
    parts: Sequence[Any],
    groups: int,
) -> ConvWeight:
    made = Conv3dWeight if dims == 3 else Conv2dWeight
    wide = max(dims, 2)
    check_weight(weight, name)
    lists = [_ints(each, dims) for each in parts]
    if dims == 1:
        if weight.dim() == 3:
            weight = weight.unsqueeze(2)
        fill = (1, 0, 0, 1)
        lists = [[n, *each[-1:]] for n, each in zip(fill, lists, strict=True)]
    if weight.dim() != wide + 2:
        raise RuntimeError(f"Weights are expected to have {wide + 2} dimensions")
    for each, what in zip(lists, _PARTS, strict=True):
        if len(each) == wide:
            continue
        if what == "padding":
            raise RuntimeError(
                "Specify front/top/left padding only. end/bottom/right padding "
                "assumed to be equal to front/top/left"
            )
        what = what.replace("_", " ")
        raise RuntimeError(
            f"{what} should contain {wide} elements for {wide}D convolution."
        )
    if transpose and isinstance(weight._scheme, PerChannel):
        raise RuntimeError(
            "Per Channel Quantization is currently disabled for transposed conv"
        )
    channels = weight.shape[1] * groups if transpose else weight.shape[0]
    bias = check_bias(bias, channels, "K")
    stride, padding, output_padding, dilation = lists
    return made(
        single(weight, transpose),
        bias,
        stride,
        padding,
        output_padding,
        dilation,
        groups,
        transpose,
    )


def _packing(dims: int, transpose: bool, name: str) -> None:
    if transpose:

        def pack_transposed(
            weight: Any,
            bias: Any,
            stride: Any,
            padding: Any,
            output_padding: Any,
            dilation: Any,
            groups: int,
        ) -> ConvWeight:
            """The weight, the bias and the arguments of a transposed convolution."""
            parts = stride, padding, output_padding, dilation
            return _packed(name, dims, True, weight, bias, parts, groups)

        operator(name)(pack_transposed)
        return

    def pack(
        weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> ConvWeight:
        """The weight, the bias and the arguments of a convolution."""
        parts = stride, padding, 0, dilation
        return _packed(name, dims, False, weight, bias, parts, groups)

    operator(name)(pack)


for _n in (1, 2, 3):
    _packing(_n, False, f"conv{_n}d_prepack")
    _packing(_n, True, f"conv_transpose{_n}d_prepack")
_packing(2, False, "conv_prepack")


def _unpacking(dims: int) -> Callable[..., Any]:
    def unpack(packed_weights: Any) -> tuple[Any, Any]:
        """The weight and the bias of a packed convolution."""
        name = f"quantized::conv{dims}d_unpack"
        packed = expect(packed_weights, ConvWeight, name, "packed_weights")
        weight, bias = packed.unpack()
        return (weight.squeeze(2) if dims == 1 else weight), bias

    return unpack


for _n in (1, 2, 3):
    operator(f"conv{_n}d_unpack", f"conv_transpose{_n}d_unpack")(_unpacking(_n))
operator("conv_unpack")(_unpacking(2))


def _asking(part: str) -> Callable[..., Any]:
    def ask(packed_weights: Any) -> Any:
        """An argument of a packed convolution."""
        name = f"quantized::conv2d_{part}"
        packed = expect(packed_weights, ConvWeight, name, "packed_weights")
        found = getattr(packed, part)()
        return int(found) if part == "transpose" else found

    return ask


for _part in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
    for _n in (2, 3):
        operator(f"conv{_n}d_{_part}", f"conv_transpose{_n}d_{_part}")(_asking(_part))


@operator("conv2d_unpack_sizes")
def conv2d_unpack_sizes(packed_weights: Any) -> Any:
    """The sizes of weight and bias of a packed convolution, and its arguments."""
    weight, bias = packed_weights.unpack()
    sizes = list(weight.shape), None if bias is None else list(bias.shape)
    parts = packed_weights.stride(), packed_weights.padding()
    return *sizes, *parts, packed_weights.dilation(), packed_weights.groups()


def _convolved(packed: ConvWeight, steps: Any) -> Any:
    """The exact convolution of steps of an image and of a weight.

    Where float32 does not hold the sums, the weight is cut into pieces of 4 bits: XLA
    for the CPU convolves nothing else as fast.
    """
    weight, kernel = packed.packed, packed.packed.steps()
    terms = kernel.numel() // kernel.shape[0]
    if packed._transpose:
        terms = kernel.numel() // (kernel.shape[1] * packed._groups)
    if is_exact(terms, weight.reach):
        return _plain(packed, steps, kernel)
    if is_exact(terms, 16):
        high = (kernel / 16).floor()
        low = _plain(packed, steps, kernel - high * 16)
        return _plain(packed, steps, high).double() * 16 + low
    return _plain(packed, steps.double(), kernel.double())


def _plain(packed: ConvWeight, x: Any, kernel: Any) -> Any:
    name = f"conv{'_transpose' if packed._transpose else ''}{packed._dims}d"
    options: list[Any] = [packed._stride, packed._padding]
    if packed._transpose:
        options += [packed._output_padding, packed._groups, packed._dilation]
    else:
        options += [packed._dilation, packed._groups]
    return getattr(fns, name)(x, kernel, None, *options)


def _image(x: Any, packed: Any, name: str, dims: int) -> tuple[Any, ConvWeight]:
    """The images of a call and its packed weight; RuntimeError for other sizes."""
    kind = Conv3dWeight if dims == 3 else Conv2dWeight
    found = expect(packed, kind, f"quantized::{name}", "packed_weight")
    wide = max(dims, 2)
    if dims == 1:
        x = x.unsqueeze(2)
    if x.dim() != wide + 2:
        raise RuntimeError(
            f"quantized::conv{wide}d(): Expected activation tensor to have {wide + 2} "
            f"dimensions, got {x.dim()}"
        )
    weight = found._tensor
    inputs = weight.shape[0] if found._transpose else weight.shape[1] * found._groups
    if x.shape[1] != inputs:
        sizes = [weight.shape[0], *weight.shape[2:], weight.shape[1]]
        rest = ", ".join(map(str, [*x.shape[1:], inputs][:-1]))
        raise RuntimeError(
            f"[QConv{wide}D] Given groups={found._groups}, weight of size "
            f"{', '.join(map(str, sizes))}, expected input (NCHW) {x.shape[0]}, {rest} "
            f"to have {inputs} channels, but got {x.shape[1]} channels instead"
        )
    return x, found


def arranged(made: Any, dims: int) -> Any:
    """A result with the channels last in memory, as PyTorch's kernels write it."""
    if dims == 1:
        return made.contiguous(memory_format=channels_last).squeeze(2)
    kept = channels_last if dims == 2 else channels_last_3d
    return made.contiguous(memory_format=kept)


def _convolution(dims: int, relu: bool, name: str) -> None:
    def conv(qx: Any, packed_weight: Any, *args: Any, **kwargs: Any) -> Any:
        """A convolution of a quantized tensor, by the scale of the result."""
        scale, zero = _result_scheme(args, kwargs)
        check_backend(qx, f"quantized::{name}")
        x, packed = _image(qx, packed_weight, name, dims)
        out = PerTensor(float(scale), int(zero))
        with untracked():
            sums, given = _image_sums(x, packed)
            parts = packed.packed.scales, packed._bias, given.scale, *out, 1, relu
            return quantized(arranged(fns.requantized(sums, *parts), dims), out)

    operator(name)(conv)


def _image_sums(x: Any, packed: ConvWeight) -> tuple[Any, PerTensor]:
    steps, given = input_steps(
        x, "quantized::conv(FBGEMM): Expected activation data type"
    )
    return _convolved(packed, steps), given


def _result_scheme(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Scale and zero point of a call, which may repeat the arguments before them."""
    given = list(args[-2:]) if len(args) in (2, 6) else list(args)
    for name in ("output_scale", "output_zero_point"):
        if name in kwargs:
            given.append(kwargs[name])
    if len(given) != 2:
        raise RuntimeError(
            "a quantized convolution takes an input, a packed weight, output_scale and "
            "output_zero_point"
        )
    return given[0], given[1]


def _convolution_dynamic(dims: int, name: str) -> None:
    def conv_dynamic(qx: Any, packed_weight: Any, reduce_range: bool = False) -> Any:
        """A convolution with a quantized weight; the input is rounded as it comes.

        The result is rounded by the scale of the input, as in PyTorch.
        """
        check_backend(qx, f"quantized::{name}", False)
        check_floats(qx)
        x, packed = _image(qx, packed_weight, name, dims)
        with untracked():
            rounded = quantize_per_tensor_dynamic(x.detach(), _QUINT8, reduce_range)
            sums, out = _image_sums(rounded, packed)
            parts = packed.packed.scales, packed._bias, out.scale, *out, 1, False
            codes = arranged(fns.requantized(sums, *parts), dims)
            return decoded(quantized(codes, out))

    operator(name)(conv_dynamic)


for _n in (1, 2, 3):
    _convolution(_n, False, f"conv{_n}d")
    _convolution(_n, True, f"conv{_n}d_relu")
    _convolution(_n, False, f"conv_transpose{_n}d")
    _convolution_dynamic(_n, f"conv{_n}d_dynamic")
    _convolution_dynamic(_n, f"conv_transpose{_n}d_dynamic")


def _convolution_added(relu: bool) -> None:
    name = "conv2d_add_relu" if relu else "conv2d_add"

    def conv2d_add(
        qx: Any,
        qaccum: Any,
        packed_weight: Any,
        output_scale: float,
        output_zero_point: int,
    ) -> Any:
        """A convolution and a summand, which are quantized; the engine is oneDNN."""
        check_engine("conv2d_add.")
        check_backend(qx, f"quantized::{name}")
        x, packed = _image(qx, packed_weight, name, 2)
        out = PerTensor(float(output_scale), int(output_zero_point))
        with untracked():
            sums, given = _image_sums(x, packed)
            scale = x._v.new_tensor(given.scale, dtype=dtypes.float32)
            parts = packed.packed.scales, packed._bias, 1, False
            made = fns.quantized_sums(sums, scale, *parts) + decoded(qaccum)
            made = arranged(made.relu() if relu else made, 2)
            return quantized(encoded(made, out, qx.dtype), out)

    operator(name)(conv2d_add)


_convolution_added(False)
_convolution_added(True)
