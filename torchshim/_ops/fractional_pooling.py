"""Max pooling with windows at random places, for any ratio of sizes."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array, op
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    HALF,
    INT,
    check_fixed,
    refuse,
)

Ints = tuple[int, ...]


def _sizes(value: Any, n: int, name: str) -> Ints:
    values = (value,) * n if isinstance(value, int) else tuple(value)
    if len(values) != n:
        words = {2: "Ints", 3: "three Ints"}[n]
        raise RuntimeError(
            f"fractional_max_pool{n}d: {name} must either be a single Int or tuple of "
            f"{words}"
        )
    return values


def _check(n: int, input: Array, samples: Array, kernel: Ints, out: Ints) -> None:
    name = f"fractional_max_pool{n}d" + "_out" * (n == 3)
    if input.ndim not in (n + 1, n + 2) and all(input.shape):
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: "
            f"{list(input.shape)}"
        )
    if not all(input.shape[-n - 1 :]):
        empty = [i for i, s in enumerate(input.shape) if not s]
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, "
            f"but got{list(input.shape)} with dimension {empty[0] if empty else 0} "
            "being empty."
        )
    words = {2: ("height", "width"), 3: ("time", "height", "width")}[n]
    for word, k, o, s in zip(words, kernel, out, input.shape[-n:], strict=True):
        # PyTorch takes windows up to the last element in two dimensions alone.
        if o + k - 1 > s - (n == 3):
            raise RuntimeError(
                f"{name}(): pool {word} {k} too large relative to input {word} {s}"
            )
    if samples.dtype != input.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(
            f"Expect _random_samples to have 3 dimensions, got {samples.ndim}"
        )
    batch = input.shape[0] if input.ndim == n + 2 else 1
    if samples.shape[0] < batch:
        raise RuntimeError(
            "Expect _random_samples.size(0) no less then input batch size."
        )
    if samples.shape[1] != input.shape[-n - 1]:
        raise RuntimeError(
            "Expect _random_samples.size(1) equals to input channel size."
        )
    if samples.shape[2] != n:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {n}; got {samples.shape[2]}."
        )
    negative = [o for o in out if o < 0]
    if negative:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {negative[0]}: "
            f"{[*input.shape[:-n], *out]}"
        )


def _starts(sample: Array, size: int, out: int, kernel: int) -> Array:
    """Where the windows of each plane start: the last one at the end."""
    if out <= 1:
        return jnp.full((*sample.shape, out), size - kernel)
    # Each operation is rounded to the samples' dtype: half types move the windows.
    kind = sample.dtype
    bits, wide = jnp.finfo(kind), jnp.float32 if kind in HALF else kind

    def kept(x: Any) -> Array:
        x = jnp.asarray(x, wide)
        return lax.reduce_precision(x, bits.nexp, bits.nmant) if kind in HALF else x

    sample = kept(sample[..., None])
    step = kept(kept(size - kernel) / kept(out - 1))
    at = kept(kept(kept(jnp.arange(out)) + sample) * step)
    at = at.astype(jnp.int32) - kept(sample * step).astype(jnp.int32)
    return at.at[..., -1].set(size - kernel)


@op(
    grad_fn=lambda input, kernel_size, output_size, random_samples, n: (
        f"FractionalMaxPool{n}DBackward0"
    ),
    saves=("input", "result1"),
    namespaces=(),
    method=False,
    out=False,
    differentiable=("input",),
    typecheck=lambda input, kernel_size, output_size, samples, n: check_fixed(
        f"fractional_max_pool{n}d", random_samples=samples
    ),
)
def fractional_max_pool(
    input: Array,
    kernel_size: int | Ints,
    output_size: int | Ints,
    random_samples: Array,
    n: int,
) -> tuple[Array, Array]:
    """The largest element of each window, and its place in the plane."""
    kernel = _sizes(kernel_size, n, "kernel_size")
    out = _sizes(output_size, n, "output_size")
    _check(n, input, random_samples, kernel, out)
    refuse(f"fractional_max_pool{n}d_out_frame", input, BOOL + INT + COMPLEX)
    size = input.shape[-n:]
    lead = input.shape[:-n]
    samples = random_samples[: lead[0] if len(lead) == 2 else 1]
    place: Any = jnp.zeros((1,) * (len(lead) + 2 * n), jnp.int32)
    for d in range(n):
        # In two dimensions the first sample is that of the width.
        sample = samples[..., n - 1 - d if n == 2 else d].reshape(lead)
        starts = _starts(sample, size[d], out[d], kernel[d])
        at = starts[..., None] + jnp.arange(kernel[d])
        # Axes: planes, then the windows, then the elements of each.
        shape = [*lead, *(1,) * (2 * n)]
        shape[len(lead) + d], shape[len(lead) + n + d] = out[d], kernel[d]
        place = place * size[d] + at.reshape(shape)
    place = place.reshape(*lead, math.prod(out), math.prod(kernel))
    if not place.size:
        # A window of nothing: the smallest number there is.
        start = jnp.full((*lead, *out), -jnp.inf, input.dtype)
        return start, jnp.zeros((*lead, *out), jnp.int64)
    flat = input.reshape(*lead, -1)
    windows = jnp.take_along_axis(flat, place.reshape(*lead, -1), axis=-1)
    windows = windows.reshape(place.shape)
    nan = jnp.isnan(windows)
    # The first of the largest, but the last NaN.
    last_nan = np.int32(place.shape[-1] - 1) - jnp.argmax(nan[..., ::-1], axis=-1)
    best = jnp.where(nan.any(-1), last_nan, jnp.argmax(windows, axis=-1))[..., None]
    values = jnp.take_along_axis(windows, best, axis=-1)[..., 0]
    places = jnp.take_along_axis(place, best, axis=-1)[..., 0]
    return values.reshape(*lead, *out), places.reshape(*lead, *out).astype(jnp.int64)
