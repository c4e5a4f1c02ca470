"""Convolutions in 1 to 3 dimensions.

On a CPU, XLA's own convolution is slow where few input channels meet a small kernel
(its gradients most of all). There the patches are gathered by slicing and multiplied as
one matrix: 3x3 over one channel of 28x28 images 0.20 / 0.17 / 0.27 ms (forward,
gradient of the input, of the weight) against 0.45 / 1.64 / 0.58; over 3 channels of
32x32 images 1.8 / 1.2 / 1.7 against 11.2 / 3.7 / 5.6. With 16 channels both are alike,
with 32 the patches cost seven times as much. So patches are taken up to `_PATCH` values
each, and on other backends never.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from torchshim._core.op import Array, op
from torchshim._core.placement import platform
from torchshim._core.precision import precision
from torchshim._errors import triggered, warn_once
from torchshim._ops._common import HALF
from torchshim._ops._convolution_checks import (
    batched,
    check,
    check_bias_type,
    check_complex,
    check_dimensions,
    check_output_padding,
    check_transposed_size,
    check_types,
)
from torchshim._ops._formats import convolution_layout
from torchshim._ops.matmul import rounded

_PATCH = 64

Ints = tuple[int, ...]


def repeated(value: int | Sequence[int], n: int, name: str) -> Ints:
    """One number for each of `n` dimensions."""
    if isinstance(value, int):
        return (value,) * n
    values = tuple(value)
    if len(values) == 1:
        return values * n
    if len(values) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to "
            f"match the convolution dimensions, but got {name}={list(values)}"
        )
    return values


# How it is lowered -------------------------------------------------------------------


def windows(x: Array, kernel: Ints, stride: Ints, dilation: Ints, out: Ints) -> Any:
    """For each place in the kernel, what it sees: slices of the last dimensions."""
    lead = x.ndim - len(kernel)
    spans = [range(0, k * d, d) for k, d in zip(kernel, dilation, strict=True)]
    found = []
    for index in range(math.prod(kernel)):
        starts = [0] * lead
        for span, k in zip(reversed(spans), reversed(kernel), strict=True):
            starts.insert(lead, span[index % k])
            index //= k
        limits = list(x.shape[:lead]) + [
            s + (o - 1) * step + 1
            for s, o, step in zip(starts[lead:], out, stride, strict=True)
        ]
        found.append(lax.slice(x, starts, limits, (1,) * lead + stride))
    return found


def _by_patches(
    x: Array,
    weight: Array,
    stride: Ints,
    pads: Sequence[tuple[int, int]],
    dilation: Ints,
    groups: int,
) -> Array:
    n, channels, *size = x.shape
    outputs, _, *kernel = weight.shape
    padded = jnp.pad(x, [(0, 0), (0, 0), *pads]) if any(map(any, pads)) else x
    out = tuple(
        (s + a + b - d * (k - 1) - 1) // step + 1
        for s, (a, b), k, d, step in zip(
            size, pads, kernel, dilation, stride, strict=True
        )
    )
    seen = jnp.stack(windows(padded, tuple(kernel), stride, dilation, out), 1)
    places, area = len(seen[0]), math.prod(out)
    per = channels // groups
    patches = seen.reshape(n, places, groups, per, area)
    matrix = jnp.moveaxis(weight.reshape(groups, outputs // groups, per, places), 3, 2)
    if groups == 1:
        flat = patches.reshape(n, places * per, area)
        rows = jnp.broadcast_to(
            matrix.reshape(outputs, places * per), (n, outputs, places * per)
        )
        product = lax.dot_general(
            rows, flat, (((2,), (1,)), ((0,), (0,))), precision=precision.convolution
        )
    else:
        product = jnp.einsum(
            "gokc,nkgca->ngoa", matrix, patches, precision=precision.convolution
        )
    return product.reshape(n, outputs, *out)


def _plain(
    x: Array,
    weight: Array,
    stride: Ints,
    pads: Sequence[tuple[int, int]],
    dilation: Ints,
    groups: int,
    spread: Ints | None = None,
) -> Array:
    letters = "DHW"[3 - len(stride) :]
    wide = jnp.float32 if x.dtype in HALF else None
    if wide is not None and platform() == "cpu":
        x, weight, wide = x.astype(wide), weight.astype(wide), None
    return lax.conv_general_dilated(
        x,
        weight,
        stride,
        pads,
        lhs_dilation=spread,
        rhs_dilation=dilation,
        dimension_numbers=(f"NC{letters}", f"OI{letters}", f"NC{letters}"),
        feature_group_count=groups,
        precision=precision.convolution,
        preferred_element_type=wide,
    )


def _convolved(
    x: Array,
    weight: Array,
    stride: Ints,
    pads: Sequence[tuple[int, int]],
    dilation: Ints,
    groups: int,
) -> Array:
    if jnp.iscomplexobj(x):

        def part(a: Array, b: Array) -> Array:
            return _convolved(a, b, stride, pads, dilation, groups)

        # Three real convolutions do for the four products.
        ac, bd = part(x.real, weight.real), part(x.imag, weight.imag)
        both = part(x.real + x.imag, weight.real + weight.imag)
        return lax.complex(ac - bd, both - ac - bd)
    patch = math.prod(weight.shape[1:])
    small = patch <= _PATCH and groups == 1 and x.dtype not in HALF
    if small and platform() == "cpu" and x.size and weight.size:
        return _by_patches(x, weight, stride, pads, dilation, groups)
    return _plain(x, weight, stride, pads, dilation, groups)


# Operators ---------------------------------------------------------------------------


def _forward(
    name: str,
    n: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: int | Ints,
    padding: int | Ints | str,
    dilation: int | Ints,
    groups: int,
) -> Array:
    if not isinstance(padding, str):
        check_bias_type(input, bias)
    x = batched(input, n, name)
    check_complex(x, weight, bias)
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    k = weight.ndim - 2
    check_dimensions(x, weight, padding)
    steps = repeated(stride, k, "stride")
    if k != n:
        # PyTorch has already one value for each of the input's dimensions.
        repeated((stride,) * n if isinstance(stride, int) else stride, k, "stride")
    spans = repeated(dilation, k, "dilation")
    if padding == "same":
        if any(s != 1 for s in steps):
            raise RuntimeError(
                "padding='same' is not supported for strided convolutions"
            )
        total = [
            d * (size - 1) for d, size in zip(spans, weight.shape[2:], strict=True)
        ]
        pads = [(t // 2, t - t // 2) for t in total]
        around = tuple(max(p) for p in pads)
        if any(before != after for before, after in pads):
            text = (
                "Using padding='same' with even kernel lengths and odd dilation may "
                "require a zero-padded copy of the input be created"
            )
            warn_once(triggered(text, "aten/src/ATen/native/Convolution.cpp:1101"))
    else:
        around = (0,) * k if padding == "valid" else repeated(padding, k, "padding")
        pads = [(p, p) for p in around]
    none = (0,) * k
    check(x, weight, bias, steps, around, spans, groups, False, none)
    check_types(x, weight, bias, groups, False, spans)
    if not x.shape[1]:
        # PyTorch gives of no channels none, whatever the weight would.
        sizes = [
            (s + sum(p) - d * (k - 1) - 1) // t + 1
            for s, p, d, k, t in zip(
                x.shape[2:], pads, spans, weight.shape[2:], steps, strict=True
            )
        ]
        return _finished(input, x, jnp.zeros((len(x), 0, *sizes), x.dtype), None, n)
    out = _convolved(x, weight, steps, pads, spans, groups)
    return _finished(input, x, out, bias, n)


def _finished(input: Array, x: Array, out: Array, bias: Array | None, n: int) -> Array:
    if bias is not None:
        out = out + rounded(bias, out).reshape((-1,) + (1,) * n)
    out = rounded(out, x)
    return out[0] if input.ndim == n + 1 else out


def _node(n: int) -> Any:
    def node(input: Any, *rest: Any) -> str:
        if len(getattr(input, "shape", ())) == n + 1:
            return "SqueezeBackward1"
        # PyTorch puts one of complex numbers together of real ones.
        return "AddBackward0" if input.dtype.is_complex else "ConvolutionBackward0"

    return node


def _convolution(n: int) -> Any:
    return op(
        grad_fn=_node(n),
        saves={"input": ("weight",), "weight": ("input",), "bias": ()},
        namespaces=("torch", "nn.functional"),
        method=False,
        out=False,
        layout=partial(convolution_layout, n),
        convolves=True,
    )


@_convolution(1)
def conv1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Ints = 1,
    padding: str | int | Ints = 0,
    dilation: int | Ints = 1,
    groups: int = 1,
) -> Array:
    """Each output channel: kernels slid over signals and summed over channels."""
    return _forward("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@_convolution(2)
def conv2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Ints = 1,
    padding: str | int | Ints = 0,
    dilation: int | Ints = 1,
    groups: int = 1,
) -> Array:
    """Each output channel: kernels slid over images and summed over channels."""
    return _forward("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@_convolution(3)
def conv3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Ints = 1,
    padding: str | int | Ints = 0,
    dilation: int | Ints = 1,
    groups: int = 1,
) -> Array:
    """Each output channel: kernels slid over volumes and summed over channels."""
    return _forward("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _transposed(
    name: str,
    n: int,
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: int | Ints,
    padding: int | Ints,
    output_padding: int | Ints,
    groups: int,
    dilation: int | Ints,
) -> Array:
    x = batched(input, n, name)
    check_complex(x, weight, bias)
    k = weight.ndim - 2
    if k != n:
        check_dimensions(x, weight, 0)
        # PyTorch has already one value for each of the input's dimensions.
        repeated((stride,) * n if isinstance(stride, int) else stride, k, "stride")
    steps = repeated(stride, n, "stride")
    around = repeated(padding, n, "padding")
    extra = repeated(output_padding, n, "output_padding")
    spans = repeated(dilation, n, "dilation")
    check(x, weight, bias, steps, around, spans, groups, True, extra)
    check_types(x, weight, bias, groups, True)
    check_output_padding(extra, steps, spans)
    inputs, per, *kernel = weight.shape
    # The gradient of a convolution: spread the input, flip the kernel.
    flipped = jnp.flip(weight, tuple(range(2, n + 2)))
    grouped = flipped.reshape(groups, inputs // groups, per, *kernel)
    kernels = jnp.swapaxes(grouped, 1, 2).reshape(
        groups * per, inputs // groups, *kernel
    )
    pads = [
        (d * (k - 1) - p, d * (k - 1) - p + e)
        for k, p, d, e in zip(kernel, around, spans, extra, strict=True)
    ]
    sizes = [
        (s - 1) * t - 2 * p + d * (k - 1) + e + 1
        for s, t, p, d, k, e in zip(
            x.shape[2:], steps, around, spans, kernel, extra, strict=True
        )
    ]
    check_transposed_size(x.shape[2:], sizes)

    def run(a: Array, b: Array) -> Array:
        return _plain(a, b, (1,) * n, pads, spans, groups, spread=steps)

    if jnp.iscomplexobj(x):
        real = run(x.real, kernels.real) - run(x.imag, kernels.imag)
        out = lax.complex(real, run(x.real, kernels.imag) + run(x.imag, kernels.real))
    else:
        out = run(x, kernels)
    return _finished(input, x, out, bias, n)


@_convolution(1)
def conv_transpose1d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Ints = 1,
    padding: int | Ints = 0,
    output_padding: int | Ints = 0,
    groups: int = 1,
    dilation: int | Ints = 1,
) -> Array:
    """The gradient of `conv1d` for its input, as a layer."""
    return _transposed(
        "conv_transpose1d",
        1,
        *(input, weight, bias, stride, padding, output_padding, groups, dilation),
    )


@_convolution(2)
def conv_transpose2d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Ints = 1,
    padding: int | Ints = 0,
    output_padding: int | Ints = 0,
    groups: int = 1,
    dilation: int | Ints = 1,
) -> Array:
    """The gradient of `conv2d` for its input, as a layer."""
    return _transposed(
        "conv_transpose2d",
        2,
        *(input, weight, bias, stride, padding, output_padding, groups, dilation),
    )


@_convolution(3)
def conv_transpose3d(
    input: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int | Ints = 1,
    padding: int | Ints = 0,
    output_padding: int | Ints = 0,
    groups: int = 1,
    dilation: int | Ints = 1,
) -> Array:
    """The gradient of `conv3d` for its input, as a layer."""
    return _transposed(
        "conv_transpose3d",
        3,
        *(input, weight, bias, stride, padding, output_padding, groups, dilation),
    )


@op(
    grad_fn="ConvTbcBackward0",
    saves=("input", "weight", "bias"),
    method=False,
    out=False,
    namespaces=("torch", "torch.nn.functional", "nn.functional"),
    convolves=True,
)
def conv_tbc(input: Array, weight: Array, bias: Array, pad: int = 0) -> Array:
    """A 1-d convolution of (time, batch, channels) with (time, in, out)."""
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError(
            "Input dim 2 (input channels) is not == dim 1 in the weight tensor"
        )
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError(
            "Bias size must equal dim 2 in the weight tensor (output channels)."
        )
    out = lax.conv_general_dilated(
        input, weight, (1,), [(pad, pad)], dimension_numbers=("WNC", "WIO", "WNC")
    )
    return out + bias
