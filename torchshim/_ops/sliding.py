"""Sliding blocks of images as columns, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from torchshim._core.op import Array, op
from torchshim._ops._common import INT, refuse
from torchshim._ops._windows import Ints, rows

# Sliding blocks ----------------------------------------------------------------------


def _pair(value: int | Ints, name: str) -> Ints:
    return (value, value) if isinstance(value, int) else tuple(value)


def _check_blocks(**given: Ints) -> None:
    for name, values in given.items():
        low = 0 if name == "padding" else 1
        if min(values) < low:
            what = "kernel size" if name == "kernel" else name
            rule = "non-negative" if low == 0 else "greater than zero"
            label = "pad" if name == "padding" else name
            raise RuntimeError(
                f"{what} should be {rule}, but got {label}_height: {values[0]} "
                f"{label}_width: {values[1]}"
            )


def _blocks(
    size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Ints:
    return tuple(
        (s + 2 * p - d * (k - 1) - 1) // t + 1
        for s, k, d, p, t in zip(size, kernel, dilation, padding, stride, strict=True)
    )


def _columns(
    x: Array, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints, out: Ints
) -> Array:
    n, channels = x.shape[:2]
    pads = [(0, 0), (0, 0), *((p, p) for p in padding)]
    x = jnp.pad(x, pads)
    for i in (0, 1):
        x = rows(x, 2 + 2 * i, kernel[i], stride[i], dilation[i], out[i])
    x = x.transpose(0, 1, 3, 5, 2, 4)
    return x.reshape(n, channels * math.prod(kernel), math.prod(out))


@op(
    name="im2col",
    grad_fn="Im2ColBackward0",
    saves=(),
    namespaces=(),
    method=False,
    out=False,
)
def im2col(
    input: Array, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> Array:
    """Every block of a batch of images as a column."""
    _check_blocks(kernel=kernel_size, dilation=dilation, padding=padding, stride=stride)
    if input.ndim not in (3, 4) or not all(input.shape[1:]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
            "other "
            f"non-zero dimensions for input, but got: {list(input.shape)}"
        )
    x = input[None] if input.ndim == 3 else input
    size = x.shape[2:]
    out = _blocks(size, kernel_size, dilation, padding, stride)
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_text(size)}, "
            f"kernel_size={_text(kernel_size)}, dilation={_text(dilation)}, "
            f"padding={_text(padding)}, calculated shape of the array of sliding "
            f"blocks as {_text(out)}, but its components must be at least one."
        )
    refuse("im2col_out_cpu", input, INT)
    columns = _columns(x, kernel_size, dilation, padding, stride, out)
    return columns[0] if input.ndim == 3 else columns


def _text(values: Sequence[int]) -> str:
    return f"({', '.join(map(str, values))})"


@op(
    name="col2im",
    grad_fn="Col2ImBackward0",
    saves=(),
    namespaces=(),
    method=False,
    out=False,
)
def col2im(
    input: Array,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    stride: Ints,
) -> Array:
    """Columns put back as blocks of images; where blocks overlap they add up."""
    _check_blocks(kernel=kernel_size, dilation=dilation, padding=padding, stride=stride)
    if input.ndim not in (2, 3) or not all(input.shape[-2:]):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
            "size "
            f"and non-zero dimensions for input, but got: {list(input.shape)}"
        )
    x = input[None] if input.ndim == 2 else input
    places = math.prod(kernel_size)
    if x.shape[1] % places:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of "
            f"kernel_size, but got input.size(1)={x.shape[1]} and "
            f"kernel_size={_text(kernel_size)}."
        )
    out = _blocks(output_size, kernel_size, dilation, padding, stride)
    described = (
        f"Given output_size={_text(output_size)}, kernel_size={_text(kernel_size)}, "
        f"dilation={_text(dilation)}, padding={_text(padding)}, "
        f"stride={_text(stride)}, "
    )
    if min(out) < 1:
        raise RuntimeError(
            f"{described}calculated shape of the array of sliding blocks as "
            f"{_text(out)}, which is too small (non-positive)"
        )
    if x.shape[2] != math.prod(out):
        raise RuntimeError(
            f"{described}expected size of input's dimension 2 to match the calculated "
            f"number of sliding blocks {out[0]} * {out[1]} = {math.prod(out)}, but got "
            f"input.size(2)={x.shape[2]}."
        )
    refuse("col2im_out_cpu", input, INT)
    # Truth values add up to whether there is any; they have no gradient.
    x = x.astype(jnp.float32) if (truths := x.dtype == jnp.bool_) else x
    shape = (x.shape[0], x.shape[1] // places, *output_size)
    _, pull = jax.vjp(
        lambda image: _columns(image, kernel_size, dilation, padding, stride, out),
        jnp.zeros(shape, x.dtype),
    )
    (image,) = pull(x)
    image = image != 0 if truths else image
    return image[0] if input.ndim == 2 else image
