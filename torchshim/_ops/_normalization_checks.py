"""What normalizations refuse, or warn of, in PyTorch's words."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from torchshim._core.dtypes import from_array_dtype
from torchshim._core.op import Array
from torchshim._errors import triggered, warn_once
from torchshim._ops._common import HALF
from torchshim._ops.activation import floating_only


def check_batch_norm(input: Array, **given: Any) -> None:
    """Raises for statistics or scales of another number of channels, or dtype."""
    channels = input.shape[1] if input.ndim > 1 else 0
    for name in ("running_mean", "running_var", "weight", "bias"):
        x = given.get(name)
        if x is not None and x.size != channels:
            raise RuntimeError(
                f"{name} should contain {channels} elements not {x.size}"
            )
    floating_only(input, "batch_norm")
    check_mixed(input, *given.values())


def check_mixed(input: Array, *given: Array | None) -> None:
    """Raises for dtypes other than the input's; half types go with float32."""
    dtypes = [x.dtype for x in given if x is not None]
    if all(d == input.dtype for d in dtypes):
        return
    if any(d != jnp.float32 for d in dtypes):
        raise RuntimeError(
            "mixed dtype (CPU): expect parameter to have scalar type of Float"
        )
    if input.dtype not in HALF:
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


def check_normalized(
    input: Array, normalized_shape: Any, star: str, **given: Any
) -> None:
    """Raises where the last dimensions, or the scales, have another shape.

    `star`: what PyTorch has between the star and the sizes.
    """
    shape = list(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing "
            "at least one element, but got normalized_shape = []"
        )
    for name, x in given.items():
        if x is not None and list(x.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got "
                f"{name} of shape {list(x.shape)} and normalized_shape = {shape}"
            )
    if list(input.shape[-len(shape) :]) != shape or input.ndim < len(shape):
        sizes = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape "
            f"[*{star}{sizes}], "
            f"but got input of size{list(input.shape)}"
        )


def warn_of_mixed(input: Array, weight: Array) -> None:
    """Warns once of a weight of another dtype, which `rms_norm` takes."""
    if not jnp.iscomplexobj(input):
        a, b = (from_array_dtype(x.dtype).cpp_name for x in (input, weight))
        text = (
            f"Mismatch dtype between input and weight: input dtype = {a}, weight dtype "
            f"= {b}, Cannot dispatch to fused implementation."
        )
        place = "aten/src/ATen/native/layer_norm.cpp:346"
        warn_once(triggered(text, place), key=place)
