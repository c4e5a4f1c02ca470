"""Discrete Fourier transforms: complex to complex, real to complex, complex to real.

`torchshim.fft` has the public functions, each of which is one of these three with its
lengths, dimensions and scale made out. None scales by itself: `scale` is what the
result is multiplied with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.checks import Check
from torchshim._core.layout import format_strides
from torchshim._core.op import Arranged, Array, op
from torchshim._ops._formats import suggested_format

Ints = tuple[int, ...]
# As many dimensions as one of XLA's transforms takes.
_AT_ONCE = 3


# (shape, strides) of an operand.
Pair = tuple[Ints, Ints]


def _fft(node: str, strides: Callable[..., Ints]) -> Callable[..., Any]:
    return op(
        namespaces=(),
        method=False,
        grad_fn=f"{node}Backward0",
        saves=(),
        layout=Arranged(strides),
    )


def _descending(dims: Iterable[int], strides: Ints) -> list[int]:
    return sorted(dims, key=lambda d: -strides[d])


def _inmost(shape: Ints, strides: Ints, dims: Sequence[int]) -> Ints:
    """Strides of a result whose transformed dimensions lie inside all others."""
    order = _descending((d for d in range(len(shape)) if d not in dims), strides)
    made, step = [0] * len(shape), 1
    for d in reversed([*order, *dims]):
        made[d] = step
        step *= max(shape[d], 1)
    return tuple(made)


def _cut(input: Pair, lengths: Ints, dims: Ints) -> Pair:
    """Shape and strides of the input when it has these lengths."""
    shape, strides = list(input[0]), input[1]
    for length, d in zip(lengths, dims, strict=True):
        shape[d] = min(length, shape[d])
    kept = tuple(shape)
    for length, d in zip(lengths, dims, strict=True):
        shape[d] = length
    if tuple(shape) != kept:  # filled up with zeros, in memory of its own
        strides = format_strides(tuple(shape), suggested_format(kept, strides))
    return tuple(shape), strides


def _of_complex(shape: Ints, input: Pair, lengths: Ints, dims: Ints, *_: Any) -> Ints:
    _, strides = _cut(input, lengths, dims)
    return _inmost(shape, strides, _descending(dims, strides))


def _of_real(shape: Ints, input: Pair, lengths: Ints, dims: Ints, *_: Any) -> Ints:
    _, strides = _cut(input, lengths, dims)
    return _inmost(shape, strides, [*_descending(dims[:-1], strides), dims[-1]])


def _to_real(shape: Ints, input: Pair, lengths: Ints, dims: Ints, *_: Any) -> Ints:
    half = *lengths[:-1], lengths[-1] // 2 + 1
    cut, strides = _cut(input, half, dims)
    if len(dims) > 1:
        strides = _inmost(cut, strides, _descending(dims[:-1], strides))
    return _inmost(shape, strides, dims[-1:])


def _resized(x: Array, lengths: Ints, dims: Ints) -> Array:
    """Cut, or filled with zeros, to these lengths."""
    for length, d in zip(lengths, dims, strict=True):
        if length < x.shape[d]:
            x = jnp.take(x, jnp.arange(length), d, mode="clip", unique_indices=True)
        elif length > x.shape[d]:
            widths = [(0, length - x.shape[d] if i == d else 0) for i in range(x.ndim)]
            x = jnp.pad(x, widths)
    return x


def _scaled(x: Array, scale: float) -> Array:
    return x if scale == 1 else x * jnp.asarray(scale, x.real.dtype)


def _transform(x: Array, dims: Ints, forward: bool) -> Array:
    """The unscaled transform along some dimensions."""
    if not x.size:
        return x
    for i in range(0, len(dims), _AT_ONCE):
        group = dims[i : i + _AT_ONCE]
        if forward:
            x = jnp.fft.fftn(x, axes=group)
        else:
            x = jnp.fft.ifftn(x, axes=group, norm="forward")
    return x


@_fft("FftC2C", _of_complex)
def _fft_c2c(
    input: Array, lengths: Ints, dims: Ints, scale: float, forward: bool
) -> Array:
    """The transform of complex numbers along `dims`."""
    x = _resized(input, lengths, dims)
    return _scaled(_transform(x, dims, forward), scale)


def _whole(half: Array, n: int, dim: int) -> Array:
    """Both halves of a transform of `n` real numbers.

    As in PyTorch they mirror each other exactly: sums that are real have no rounding
    error as their imaginary part.
    """
    rest = jax.lax.slice_in_dim(half, 1, (n + 1) // 2, axis=dim)
    return jnp.concatenate([half, jnp.conj(jnp.flip(rest, dim))], dim)


@_fft("FftR2C", _of_real)
def _fft_r2c(
    input: Array, lengths: Ints, dims: Ints, scale: float, onesided: bool
) -> Array:
    """The transform of real numbers; `onesided`: its half that determines the other.

    Without, there is one dimension: of several, PyTorch makes complex numbers first.
    """
    x = _resized(input, lengths, dims)
    last = dims[-1]
    if not x.size:
        kind = jnp.result_type(x.dtype, jnp.complex64)
        half = x.shape[last] // 2 + 1 if onesided else x.shape[last]
        return jnp.zeros((*x.shape[:last], half, *x.shape[last + 1 :]), kind)
    out = jnp.fft.rfft(x, axis=last)
    out = _scaled(_transform(out, dims[:-1], True), scale)
    return out if onesided else _whole(out, x.shape[last], last)


@_fft("FftC2R", _to_real)
def _fft_c2r(
    input: Array, lengths: Ints, dims: Ints, scale: float, forward: bool
) -> Array:
    """The transform of a half that determines the other, to real numbers."""
    last, n = dims[-1], lengths[-1]
    x = _resized(input, (*lengths[:-1], n // 2 + 1), dims)
    if not x.size:
        return jnp.zeros((*x.shape[:last], n, *x.shape[last + 1 :]), x.real.dtype)
    x = _transform(x, dims[:-1], forward)
    out = jnp.fft.irfft(jnp.conj(x) if forward else x, n, axis=last, norm="forward")
    return _scaled(out, scale)


# Pieces of signals --------------------------------------------------------------------

# Overlaps up to which a signal is summed piece by piece.
_OVERLAPS = 32


@op(namespaces=(), method=False, grad_fn="UnfoldBackwardBackward0", saves=())
def _overlap_add(frames: Array, hop: int) -> Array:
    """The sum of (batch, frames, size), each frame `hop` after the one before."""
    batch, n, size = frames.shape
    length = size + hop * (n - 1)
    overlaps = -(-size // hop)
    if overlaps > _OVERLAPS:
        at = jnp.arange(n)[:, None] * hop + jnp.arange(size)
        zeros = jnp.zeros((batch, length), frames.dtype)
        return zeros.at[:, at].add(frames, mode="promise_in_bounds")
    rows = n + overlaps - 1
    frames = jnp.pad(frames, ((0, 0), (0, 0), (0, overlaps * hop - size)))
    pieces = frames.reshape(batch, n, overlaps, hop)
    total = jnp.zeros((batch, rows, hop), frames.dtype)
    for k in range(overlaps):
        total = total + jnp.pad(pieces[:, :, k], ((0, 0), (k, rows - n - k), (0, 0)))
    return total.reshape(batch, rows * hop)[:, :length]


def _gaps(signal: Array, envelope: Array, call: str) -> list[Check]:
    gap = jnp.abs(envelope).min() < 1e-11
    text = f"{call} window overlap add min: 1\n[ CPUBoolType{{}} ]"
    return [Check(gap, RuntimeError, text)]


@op(namespaces=(), method=False, grad_fn="DivBackward0", checks=_gaps)
def _without_gaps(signal: Array, envelope: Array, call: str) -> Array:
    """A sum of windowed frames divided by that of the windows."""
    return signal / envelope
