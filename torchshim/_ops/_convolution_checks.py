"""What convolutions refuse, in PyTorch's words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from torchshim._core.dtypes import from_array_dtype
from torchshim._core.op import Array
from torchshim._core.promotion import check_result
from torchshim._ops._common import BOOL, INT, refuse

Ints = tuple[int, ...]


def _type_name(dtype: Any) -> str:
    if dtype.is_complex or dtype.name == "bfloat16":
        return f"CPU{dtype.scalar_name}Type"
    return dtype.tensor_name


def _by_onednn(input: Array, weight: Array, groups: int) -> bool:
    """Whether oneDNN would compute it in PyTorch, whose refusals have other words."""
    name = from_array_dtype(input.dtype).name
    if name != "float32" or groups > 1 or input.shape[0] > 1:
        return name in ("float32", "bfloat16")
    large = weight.ndim > 3 and min(weight.shape[-2:]) > 3
    return large or math.prod(input.shape[:4]) > 20480


def check_bias_type(input: Array, bias: Array | None) -> None:
    """Raises where the bias has another dtype, which PyTorch looks at first."""
    if bias is not None and bias.dtype != input.dtype:
        a, b = from_array_dtype(input.dtype), from_array_dtype(bias.dtype)
        raise RuntimeError(
            f"Input type ({a.cpp_name}) and bias type ({b.cpp_name}) should be the same"
        )


def _differ(input: Array, other: Array, name: str) -> str:
    a, b = from_array_dtype(input.dtype), from_array_dtype(other.dtype)
    return (
        f"Input type ({_type_name(a)}) and {name} type ({_type_name(b)}) should be the "
        "same"
    )


def check_complex(input: Array, weight: Array, bias: Array | None) -> None:
    """Raises where only the input is complex, or others of another precision."""
    if not jnp.iscomplexobj(input):
        return
    for name, other in (("weight", weight), ("bias", bias)):
        if other is not None and other.dtype != input.dtype:
            raise RuntimeError(_differ(input, other, name))


def check_types(
    input: Array,
    weight: Array,
    bias: Array | None,
    groups: int,
    transposed: bool,
    dilation: Ints = (),
) -> None:
    """Raises where dtypes differ, or PyTorch has no kernel for them."""
    flat = input.ndim < 5
    no_integers = BOOL if input.dtype == jnp.int64 else BOOL + INT
    if transposed:
        refuse(f"slow_conv_transpose{2 if flat else 3}d_out_cpu", input, no_integers)
    elif max(dilation, default=1) > 1:
        refuse("slow_conv_dilated<>", input, no_integers)
    else:
        refuse("slow_conv2d_cpu" if flat else "compute_columns3d", input, BOOL)
    a, onednn = from_array_dtype(input.dtype), _by_onednn(input, weight, groups)
    for name, other in (("weight", weight), ("bias", bias)):
        if other is None or other.dtype == input.dtype:
            continue
        b = from_array_dtype(other.dtype)
        if onednn:
            raise RuntimeError(
                f"{_differ(input, other, name)} or input should be a MKLDNN tensor and "
                f"{name} is a dense tensor"
            )
        if name == "weight" or (transposed and not flat):
            raise RuntimeError(
                f"expected scalar type {a.scalar_name} but found {b.scalar_name}"
            )
        if transposed:
            check_result(b, a)


def _check_dilation(dilation: Ints, transposed: bool, onednn: bool) -> None:
    if min(dilation) < 0:
        raise RuntimeError("dilation should be greater than zero")
    if min(dilation) > 0:
        return
    if onednn:
        raise RuntimeError("non-positive dilation is not supported")
    # PyTorch's convolution over one dimension is one over two.
    values = (1, *dilation) if len(dilation) == 1 else dilation
    told: Any = list(values)
    if transposed:
        axes = zip(_AXES[len(values)], values, strict=True)
        told = ", ".join(f"dilation_{axis}: {d}" for axis, d in axes)
    raise RuntimeError(f"dilation should be greater than zero, but got {told}")


def check(
    input: Array,
    weight: Array,
    bias: Array | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
    transposed: bool,
    output_padding: Ints,
) -> None:
    """Raises where sizes do not fit, or there are no such steps."""
    for name, values in (("padding", padding), ("output_padding", output_padding)):
        if min(values) < 0:
            raise RuntimeError(f"negative {name} is not supported")
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    _check_dilation(dilation, transposed, _by_onednn(input, weight, groups))
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    sizes = list(weight.shape)
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at "
            f"dimension 0, but got weight of size {sizes} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0, but got weight of size [{sizes}] instead"
        )
    if transposed:
        if input.shape[1] != weight.shape[0]:
            raise RuntimeError(
                f"Given transposed=1, weight of size {sizes}, expected "
                f"input{list(input.shape)} to have {weight.shape[0]} channels, but got "
                f"{input.shape[1]} channels instead"
            )
        outputs = weight.shape[1] * groups
        if bias is not None and (bias.ndim != 1 or bias.shape[0] != outputs):
            raise RuntimeError(
                f"Given transposed=1, weight of size {sizes}, expected bias to be "
                f"1-dimensional with {outputs} elements, but got bias of size "
                f"{list(bias.shape)} instead"
            )
        check_input(input)
        check_kernel(weight, dilation, transposed)
        return
    if input.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {sizes}, expected "
            f"input{list(input.shape)} to have {weight.shape[1] * groups} channels, "
            "but "
            f"got {input.shape[1]} channels instead"
        )
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != weight.shape[0]):
        raise RuntimeError(
            f"Given weight of size {sizes}, expected bias to be 1-dimensional with "
            f"{weight.shape[0]} elements, but got bias of size {list(bias.shape)} "
            "instead"
        )
    have = [s + 2 * p for s, p in zip(input.shape[2:], padding, strict=True)]
    need = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    if any(h < n for h, n in zip(have, need, strict=True)):
        raise RuntimeError(
            "Calculated padded input size per channel: "
            f"({' x '.join(map(str, have))}). Kernel size: "
            f"({' x '.join(map(str, need))}). Kernel size can't be greater than actual "
            "input size"
        )
    check_input(input)
    check_kernel(weight, dilation, transposed)


def check_input(x: Array) -> None:
    """Raises where signals, not their number or that of their channels, are empty."""
    if all(x.shape[2:]) or not all(x.shape[:2]):
        return
    sizes = [*x.shape[:2], *(1,) * (x.ndim == 3), *x.shape[2:]]
    raise RuntimeError(
        "Only zero batch or zero channel inputs are supported, but got input shape: "
        f"{sizes}"
    )


def check_kernel(weight: Array, dilation: Ints, transposed: bool) -> None:
    """Raises where the kernel has no elements, as each of PyTorch's algorithms does."""
    sizes = weight.shape[2:] if weight.ndim > 3 else (1, *weight.shape[2:])
    if transposed and len(sizes) == 2 and all(sizes) and not weight.shape[1]:
        raise RuntimeError(
            "non-empty 2D or 4D weight tensor expected, but got: "
            f"{[*weight.shape[:2], *sizes]}"
        )
    if all(weight.shape[(1 if transposed else 2) :]):
        return
    if transposed and len(sizes) == 3:
        raise RuntimeError(
            "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x "
            "kernel_height x kernel_width) tensor expected for weight, but got: "
            f"{list(weight.shape)}"
        )
    if any(d != 1 for d in dilation) and not transposed:
        told = f" {list(sizes)}"
    elif len(sizes) == 3:
        told = f": {' x '.join(map(str, sizes))} (TxHxW)"
    else:
        told = f" kernel_height: {sizes[0]} kernel_width: {sizes[1]}"
    raise RuntimeError(f"kernel size should be greater than zero, but got{told}")


def check_dimensions(x: Array, weight: Array, padding: Any) -> None:
    """Raises where input and weight have different numbers of dimensions."""
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    # With padding as a word PyTorch checks elsewhere, and in other words.
    space = "" if isinstance(padding, str) else " "
    if (space == "" and weight.ndim != x.ndim) or weight.ndim > x.ndim:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional "
            f"weight{space}{list(weight.shape)}, but got {x.ndim}-dimensional input of "
            f"size {list(x.shape)} instead"
        )


def batched(input: Array, n: int, name: str) -> Array:
    """The input as a batch, if only of one."""
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but "
            f"got input of size: {list(input.shape)}"
        )
    return input[None] if input.ndim == n + 1 else input


_AXES = {1: ("width",), 2: ("height", "width"), 3: ("depth", "height", "width")}


def check_output_padding(extra: Ints, stride: Ints, dilation: Ints) -> None:
    """Raises where a transposed convolution is to be padded by more than a step."""
    given = zip(extra, stride, dilation, strict=True)
    if not any(e >= s and e >= d for e, s, d in given):
        return
    # PyTorch's convolution over one dimension is one over two.
    flat = len(extra) == 1
    parts = [
        f"{what}_{axis}: {v}"
        for what, values in (
            ("output_padding", (0,) * flat + extra),
            ("stride", (1,) * flat + stride),
            ("dilation", (1,) * flat + dilation),
        )
        for axis, v in zip(_AXES[len(values)], values, strict=True)
    ]
    raise RuntimeError(
        "output padding must be smaller than either stride or dilation, but got "
        + " ".join(parts)
    )


def check_transposed_size(given: Sequence[int], made: Sequence[int]) -> None:
    """Raises where a transposed convolution would give nothing."""
    if min(made) < 1:
        flat = (1,) * (len(made) == 1)
        sizes = (" x ".join(map(str, (*flat, *each))) for each in (given, made))
        raise RuntimeError(
            "Given input size per channel: ({}). Calculated output size per "
            "channel: ({}). Output size is too small".format(*sizes)
        )
