"""Images made larger or smaller: padding, interpolation, shuffled pixels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.op import Array, Scalar, op
from torchshim._core.promotion import element
from torchshim._ops._common import (
    BOOL,
    COMPLEX,
    HALF,
    INT,
    refuse,
    refuse_half,
    widened,
)
from torchshim._ops._formats import channels_layout
from torchshim._ops.matmul import PRECISION

Ints = tuple[int, ...]
_PLAIN: dict[str, Any] = {
    "namespaces": (),
    "method": False,
    "out": False,
    "saves": (),
    "layout": channels_layout,
}

# -- padding --------------------------------------------------------------------------


@op(
    grad_fn="ConstantPadNdBackward0",
    fits=("value",),
    **{**_PLAIN, "namespaces": ("torch",)},
)
def constant_pad_nd(input: Array, pad: Ints, value: Scalar = 0) -> Array:
    """The last dimensions made longer with a value, or shorter."""
    if len(pad) % 2:
        raise RuntimeError(
            f"Length of pad must be even but instead it equals {len(pad)}"
        )
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input "
            f"dimension but got padding length {len(pad)} and input of dimension "
            f"{input.ndim}"
        )
    pads = [(0, 0, 0)] * input.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        size = input.shape[-1 - i]
        if size + min(before, 0) < 0 or size + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
        if size + before + after < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and "
                f"{after} resulted in a negative output size, which is invalid. Check "
                f"dimension {input.ndim - 1 - i} of your input."
            )
        pads[-1 - i] = (before, after, 0)
    if isinstance(value, int):
        value = float(value)  # PyTorch's is a double
    filler = jnp.asarray(element(value, input.dtype)).astype(input.dtype)
    return lax.pad(input, filler, pads)


def _turned(size: int, before: int, after: int, mode: str) -> np.ndarray:
    at = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(at, 0, size - 1)
    at = np.abs(at)
    return np.where(at >= size, 2 * (size - 1) - at, at)


def _around(size: int, before: int, after: int, axis: int) -> np.ndarray:
    # What negative padding takes away does not come back on the other side.
    kept = np.arange(size)[max(-before, 0) : size - max(-after, 0)]
    at = range(size + before + after)
    wanted = at[max(before, 0) : size + before + after - max(after, 0)]
    if len(wanted) != len(kept):
        raise RuntimeError(
            f"The size of tensor a ({len(wanted)}) must match the size of tensor b "
            f"({len(kept)}) at non-singleton dimension {axis}"
        )
    if not len(kept) and len(at):
        raise RuntimeError("Padding takes all elements away that it could repeat.")
    return kept[np.arange(-max(before, 0), len(kept) + max(after, 0)) % len(kept)]


def _pad_node(input: Any, pad: Ints, mode: str) -> str:
    kind = "Reflection" if mode == "reflect" else "Replication"
    return f"{kind}Pad{len(pad) // 2}DBackward0"


def _pairs(pad: Ints) -> list[tuple[int, int]]:
    """How much comes before and after each dimension, the last one first."""
    return list(zip(pad[::2], pad[1::2], strict=True))


def _check_padded(input: Array, pairs: list[tuple[int, int]], mode: str) -> None:
    """Raises where padding takes away more than there is."""
    n = len(pairs)
    have = input.shape[-n:]
    made = [s + b + a for s, (b, a) in zip(have, reversed(pairs), strict=True)]
    if max(made) < 1:
        letters = "DHW"[3 - n :]
        given = ", ".join(f"{c}: {s}" for c, s in zip(letters, have, strict=True))
        found = " ".join(f"{c}: {s}" for c, s in zip(letters, made, strict=True))
        space = " " * (mode == "replicate" and n == 2)
        raise RuntimeError(
            f"input ({given}{space}) is too small. Calculated output {found}"
        )
    if min(made) < 0:
        shape = [*input.shape[:-n], *made]
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(made)}: {shape}"
        )


@op(grad_fn=_pad_node, **{**_PLAIN, "saves": ("input",)})
def pad_by_index(input: Array, pad: Ints, mode: str) -> Array:
    """The last dimensions made longer with their mirror image, or their ends."""
    n, pairs = len(pad) // 2, _pairs(pad)
    kind = "reflection" if mode == "reflect" else "replication"
    refuse(f"{kind}_pad{n}d", input, BOOL)
    if not all(input.shape[input.ndim - n - 1 :]):
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch "
            "size and other non-zero dimensions for input, but got: "
            f"{list(input.shape)}"
        )
    for i, (before, after) in enumerate(pairs if mode == "reflect" else ()):
        axis, size = input.ndim - 1 - i, input.shape[-1 - i]
        if before >= size or after >= size:
            raise RuntimeError(
                f"Argument #{4 + 2 * i}: Padding size should be less than the "
                f"corresponding input dimension, but got: padding ({before}, {after}) "
                f"at dimension {axis} of input {list(input.shape)}"
            )
    _check_padded(input, pairs, mode)
    out = input
    for i, (before, after) in enumerate(pairs):
        if before or after:
            at = _turned(input.shape[-1 - i], before, after, mode)
            out = _joined(out, at, input.ndim - 1 - i)
    return out


@op(grad_fn="CopySlices", **{**_PLAIN, "layout": None})
def pad_around(input: Array, pad: Ints) -> Array:
    """The last dimensions made longer with the elements of the other end."""
    pairs = _pairs(pad)
    for i, (before, after) in enumerate(pairs):
        size = input.shape[-1 - i]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError(
                "Negative padding value is resulting in an empty dimension"
            )
    out = input
    for i, (before, after) in enumerate(pairs):
        if before or after:
            axis, size = input.ndim - 1 - i, input.shape[-1 - i]
            out = _joined(out, _around(size, before, after, axis), axis)
    return out


def _joined(x: Array, at: np.ndarray, axis: int) -> Array:
    """`x[at]` along an axis, as slices of runs that step by 1, 0 or -1.

    Slices and flips, as a gather's gradient is a slow scatter.
    """
    if not at.size:
        return lax.slice_in_dim(x, 0, 0, axis=axis)
    pieces, start = [], 0
    while start < len(at):
        end = start + 1
        step = int(at[end] - at[start]) if end < len(at) else 1
        if step not in (-1, 0, 1):
            step = 1
        while end < len(at) and at[end] - at[end - 1] == step:
            end += 1
        low, high = int(at[start:end].min()), int(at[start:end].max())
        piece = lax.slice_in_dim(x, low, high + 1, axis=axis)
        if step == -1:
            piece = jnp.flip(piece, axis)
        if step == 0:
            piece = jnp.repeat(piece, end - start, axis)
        pieces.append(piece)
        start = end
    return pieces[0] if len(pieces) == 1 else jnp.concatenate(pieces, axis)


# -- interpolation --------------------------------------------------------------------

_AXES = {1: "W", 2: "HW", 3: "DHW"}


def _check_sizes(input: Array, sizes: Ints) -> None:
    have = input.shape[2:]
    if any(n < 1 for n in (*have, *sizes)):
        letters = _AXES[len(sizes)]

        def text(values: Any) -> str:
            return ", ".join(f"{c}: {v}" for c, v in zip(letters, values, strict=True))

        joined = " and" * (len(sizes) == 1)
        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({text(have)}){joined} output ({text(sizes)})"
        )
    if not input.shape[1]:
        raise RuntimeError(
            f"Non-empty {input.ndim}D data tensor expected but got a tensor with sizes "
            f"{list(input.shape)}"
        )


def _check_kernel(input: Array, sizes: Ints, kind: str, antialias: bool) -> None:
    """Raises where PyTorch's kernel for these sizes lacks the dtype."""
    n = len(sizes)
    name = f"compute_indices_weights_{kind}"
    if antialias:
        name = "compute_index_ranges_weights"
        refuse_half(name, input)
    elif n == 2 and kind != "cubic" and sum(sizes) <= 128:
        name = f"upsample_{_name(kind, n)}2d_channels_last"
    bytes_too = kind != "linear" or n == 2
    integers = "" if bytes_too and input.dtype == jnp.uint8 else INT
    refuse(name, input, BOOL + integers + COMPLEX)


def _ratio(size: int, out: int, scale: float | None) -> np.float32:
    if scale is not None and scale > 0:
        return np.float32(1.0 / scale)
    return np.float32(size) / np.float32(out)


def _nearest_at(size: int, out: int, scale: float | None, exact: bool) -> np.ndarray:
    if out == size and not exact:
        return np.arange(out)
    ratio = _ratio(size, out, scale)
    at = np.arange(out, dtype=np.float32)
    at = np.floor((at + np.float32(0.5)) * ratio if exact else at * ratio)
    return np.minimum(at.astype(np.int64), size - 1)


def _nearest_node(
    input: Any, sizes: Ints, scales: tuple[float | None, ...], exact: bool
) -> str:
    kind = "NearestExact" if exact else "Nearest"
    return f"Upsample{kind}{len(sizes)}DBackward0"


@op(grad_fn=_nearest_node, **_PLAIN)
def upsample_nearest(
    input: Array, sizes: Ints, scales: tuple[float | None, ...], exact: bool
) -> Array:
    """Each output element takes the input's nearest."""
    _check_sizes(input, sizes)
    _check_kernel(input, sizes, "nearest", False)
    x = widened(input)  # in which the gradient is added up
    for i, (out, scale) in enumerate(zip(sizes, scales, strict=True)):
        axis, size = i + 2, input.shape[i + 2]
        at = _nearest_at(size, out, scale, exact)
        times, rest = divmod(out, size)
        if not rest and (at == np.arange(out) // times).all():
            x = jnp.repeat(x, times, axis)
        else:
            x = jnp.take(x, at, axis)
    return x.astype(input.dtype)


def _source(
    size: int, out: int, scale: float | None, corners: bool, cubic: bool
) -> np.ndarray:
    at = np.arange(out, dtype=np.float64)
    if corners:
        return at * ((size - 1) / (out - 1) if out > 1 else 0.0)
    ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    found = (at + 0.5) * ratio - 0.5
    return found if cubic else np.maximum(found, 0)


class _Taps(NamedTuple):
    """Which elements of a line each output is made of, and their weights: (out, k)."""

    places: np.ndarray
    weights: np.ndarray

    def matrix(self, size: int) -> np.ndarray:
        """The weights of all elements: (out, size)."""
        found = np.zeros((len(self.places), size))
        np.add.at(found, (np.arange(len(found))[:, None], self.places), self.weights)
        return found


def _linear_taps(size: int, out: int, scale: Any, corners: bool) -> _Taps:
    at = _source(size, out, scale, corners, False)
    low = np.minimum(np.floor(at).astype(np.int64), size - 1)
    part = np.clip(at - low, 0, 1)
    places = np.stack([low, np.minimum(low + 1, size - 1)], 1)
    return _Taps(places, np.stack([1 - part, part], 1))


def _cubic(t: np.ndarray, a: float = -0.75) -> np.ndarray:
    t = np.abs(t)
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((t - 5) * t + 8) * t * a - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def _cubic_taps(size: int, out: int, scale: Any, corners: bool) -> _Taps:
    at = _source(size, out, scale, corners, True)[:, None]
    near = np.floor(at).astype(np.int64) + np.arange(-1, 3)
    return _Taps(np.clip(near, 0, size - 1), _cubic(at - near))


def _smooth_taps(size: int, out: int, scale: Any, corners: bool, kind: str) -> _Taps:
    """Antialiased: the filter is as wide as the input's elements per output's."""
    if corners:
        ratio = (size - 1) / (out - 1) if out > 1 else 0.0
    else:
        ratio = 1.0 / scale if scale is not None and scale > 0 else size / out
    stretch = max(ratio, 1.0)
    reach = {"linear": 1.0, "cubic": 2.0, "lanczos": 3.0}[kind] * stretch
    centre = ratio * (np.arange(out)[:, None] + 0.5)
    low = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((centre + reach + 0.5).astype(np.int64), size)
    places = low + np.arange(max((high - low).max(), 1))
    within = places < high
    t = (places - centre + 0.5) / stretch
    if kind == "linear":
        w = np.maximum(1 - np.abs(t), 0)
    elif kind == "cubic":
        w = _cubic(t, -0.5)
    else:
        w = np.where(np.abs(t) < 3, np.sinc(t) * np.sinc(t / 3), 0)
    w = np.where(within, w, 0)
    total = w.sum(1, keepdims=True)
    # Lines shorter than the longest repeat a place of theirs, without weight.
    places = np.where(within, places, np.minimum(low, size - 1))
    return _Taps(places, w / np.where(total == 0, 1, total))


def _weighted(x: Array, axis: int, matrix: np.ndarray) -> Array:
    product = jnp.tensordot(
        x, jnp.asarray(matrix, x.dtype), ((axis,), (1,)), precision=PRECISION
    )
    return jnp.moveaxis(product, -1, axis)


def _interpolated(x: Array, axis: int, taps: _Taps) -> Array:
    """Weighted sums along an axis: a product, which is faster than taking elements.

    In the product NaN and infinity would reach all elements of a line.
    """
    size = x.shape[axis]
    matrix, k = taps.matrix(size), taps.places.shape[1]

    def taken(x: Array) -> Array:
        along = [1] * x.ndim
        along[axis] = -1
        weights = jnp.asarray(taps.weights, x.dtype)
        return sum(
            jnp.take(x, taps.places[:, j], axis) * weights[:, j].reshape(along)
            for j in range(k)
        )

    @jax.custom_jvp
    def line(x: Array) -> Array:
        finite = jnp.isfinite(x).all()
        return lax.cond(finite, lambda x: _weighted(x, axis, matrix), taken, x)

    @line.defjvp
    def _slope(primals: Any, tangents: Any) -> Any:
        return line(*primals), _weighted(*tangents, axis, matrix)

    return line(x)


def _name(kind: str, n: int) -> str:
    """PyTorch's name of an interpolation in `n` dimensions."""
    if kind == "linear":
        return {1: "linear", 2: "bilinear", 3: "trilinear"}[n]
    return "bicubic" if kind == "cubic" else kind


def _linear_node(
    input: Any,
    sizes: Ints,
    scales: tuple[float | None, ...],
    align_corners: bool,
    kind: str,
    antialias: bool,
) -> str:
    name = _name(kind, len(sizes)).title()
    return f"Upsample{name}{len(sizes)}D{'Aa' if antialias else ''}Backward0"


@op(grad_fn=_linear_node, **_PLAIN)
def upsample_smooth(
    input: Array,
    sizes: Ints,
    scales: tuple[float | None, ...],
    align_corners: bool,
    kind: str,
    antialias: bool,
) -> Array:
    """Each output element is a weighted mean of the input's nearest.

    `kind`: "linear", "cubic" or "lanczos".
    """
    _check_sizes(input, sizes)
    _check_kernel(input, sizes, kind, antialias)
    pixels = input.dtype == jnp.uint8
    x = input.astype(jnp.float32) if pixels or input.dtype in HALF else input
    steps = list(enumerate(zip(sizes, scales, strict=True)))
    for i, (out, scale) in reversed(steps) if pixels else steps:
        axis, size = i + 2, input.shape[i + 2]
        if antialias:
            taps = _smooth_taps(size, out, scale, align_corners, kind)
        elif out == size and (align_corners or scale in (None, 1.0)):
            continue
        elif kind == "cubic":
            taps = _cubic_taps(size, out, scale, align_corners)
        else:
            taps = _linear_taps(size, out, scale, align_corners)
        if not pixels:
            x = _interpolated(x, axis, taps)
            continue
        matrix, unit = _fixed_point(taps.matrix(size))
        x = _weighted(x, axis, matrix)
        x = jnp.clip(jnp.floor((x + unit // 2) / unit), 0, 255)
    return x.astype(input.dtype)


def _fixed_point(weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Weights as PyTorch has them for bytes: of 16 bits, and what stands for 1.

    Sums of their products with bytes are whole numbers that float32 holds exactly.
    """
    largest, unit = weights.max(initial=0.0), 1
    while unit < 1 << 22 and int(0.5 + largest * 2 * unit) < 1 << 15:
        unit *= 2
    scaled = weights * unit
    return np.trunc(scaled + np.copysign(0.5, scaled)), unit


# -- shuffled pixels ------------------------------------------------------------------


def _shuffle(
    namespaces: tuple[str, ...] = ("torch", "nn.functional"),
) -> Callable[..., Any]:
    return op(**{**_PLAIN, "namespaces": namespaces})


@_shuffle()
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Channels moved into the image, which grows by a factor."""
    r = upscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input "
            f"with {input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(
            f"pixel_shuffle expects a positive upscale_factor, but got {r}"
        )
    *lead, c, h, w = input.shape
    if r * r >= 2**63:
        raise ValueError(
            "upscale factor is too large, (upscale_factor)^2 overflowed: "
            f"upscale_factor={r}"
        )
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by "
            f"the square of upscale_factor, but input.size(-3)={c} is not divisible by "
            f"{r * r}"
        )
    n = len(lead)
    x = input.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return x.transpose(order).reshape(*lead, c // (r * r), h * r, w * r)


@_shuffle()
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """The inverse of `pixel_shuffle`."""
    r = downscale_factor
    if input.ndim < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got "
            "input "
            f"with {input.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(
            f"pixel_unshuffle expects a positive downscale_factor, but got {r}"
        )
    *lead, c, h, w = input.shape
    for name, at, size in (("height", -2, h), ("width", -1, w)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, "
                f"but input.size({at})={size} is not divisible by {r}"
            )
    if not input.size:
        return input
    n = len(lead)
    x = input.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return x.transpose(order).reshape(*lead, c * r * r, h // r, w // r)


@_shuffle()
def channel_shuffle(input: Array, groups: int) -> Array:
    """Channels of different groups interleaved."""
    if input.ndim < 3:
        raise RuntimeError(
            "channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            "Number of groups to divide channels in must be positive. Value of "
            f"groups:{groups}"
        )
    n, c, *size = input.shape
    if c % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and "
            f"{groups} groups."
        )
    x = input.reshape(n, groups, c // groups, math.prod(size))
    return jnp.swapaxes(x, 1, 2).reshape(input.shape)
