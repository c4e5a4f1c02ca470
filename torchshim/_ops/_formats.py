"""Memory formats of results: images laid out with their channels last stay so."""

from __future__ import annotations

from collections.abc import Sequence

from torchshim._core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    format_strides,
    memory_format,
)
from torchshim._core.meta import elementwise_strides, fills, is_contiguous

__all__ = ["batch_layout", "channels_layout", "convolution_layout", "first_layout"]
__all__ += ["joining_layout", "signal_layout", "suggested_format", "volume_layout"]

Pair = tuple[tuple[int, ...], tuple[int, ...]]
_FORMATS = {4: channels_last, 5: channels_last_3d}


def suggested_format(shape: tuple[int, ...], strides: tuple[int, ...]) -> memory_format:
    """The format that a tensor is in, whether or not there are gaps between elements.

    >>> suggested_format((2, 3, 4, 5), (60, 1, 15, 3))
    torch.channels_last
    """
    found = _FORMATS.get(len(shape))
    if found is None or strides[1] == 0:
        return contiguous_format
    least = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] == 0 or strides[d] < least:
            return contiguous_format
        # Sizes of one leave undecided what the order is: it is row-major then.
        if d == 0 and least == strides[1]:
            return contiguous_format
        least = strides[d] * max(shape[d], 1)
    return found


def _laid_out(shape: tuple[int, ...], wanted: memory_format) -> tuple[int, ...] | None:
    if _FORMATS.get(len(shape)) is not wanted:
        return None
    return format_strides(shape, wanted)


def first_layout(shape: tuple[int, ...], operands: Sequence[Pair]) -> tuple[int, ...]:
    """The order of the first operand's memory."""
    return elementwise_strides(shape, operands[:1])


def channels_layout(
    shape: tuple[int, ...], operands: Sequence[Pair]
) -> tuple[int, ...] | None:
    """The format of the first operand."""
    return _laid_out(shape, suggested_format(*operands[0]))


def batch_layout(
    shape: tuple[int, ...], operands: Sequence[Pair]
) -> tuple[int, ...] | None:
    """As `channels_layout`, but sizes of one leave an order without gaps as it is."""
    (size, strides), *_ = operands
    if is_contiguous(size, strides):
        return None
    if len(size) in _FORMATS:
        order = (1, *range(len(size) - 1, 1, -1), 0)
        if fills((strides[d], size[d]) for d in order):
            return _laid_out(shape, _FORMATS[len(size)])
    return channels_layout(shape, operands)


def signal_layout(
    shape: tuple[int, ...], operands: Sequence[Pair]
) -> tuple[int, ...] | None:
    """The format that the first operand has as images of one row."""
    (size, strides), *_ = operands
    if len(size) != 3:
        return None
    row = (*size[:2], 1, size[2]), (*strides[:2], size[2] * strides[2], strides[2])
    found = _laid_out((*shape[:2], 1, shape[2]), suggested_format(*row))
    return None if found is None else (*found[:2], found[3])


def volume_layout(
    shape: tuple[int, ...], operands: Sequence[Pair]
) -> tuple[int, ...] | None:
    """The format of the first operand, which may be a volume without a batch."""
    (size, strides), *_ = operands
    if len(size) != 4:
        return channels_layout(shape, operands)
    whole = max(n * stride for n, stride in zip(size, strides, strict=True))
    alone = (1, *size), (whole, *strides)
    found = _laid_out((1, *shape), suggested_format(*alone))
    return None if found is None else found[1:]


def convolution_layout(
    n: int, shape: tuple[int, ...], operands: Sequence[Pair]
) -> tuple[int, ...] | None:
    """The format of the input or else of the weight, of images in `n` dimensions.

    Signals have that of the weight.
    """
    alone = len(shape) == n + 1
    if alone:  # without a batch
        (size, strides), *rest = operands
        operands = [((1, *size), (size[0] * strides[0], *strides)), *rest]
        shape = (1, *shape)
    if n == 3 and shape[0] == 1:
        return None  # so it is for a single volume
    if n == 1:  # the input is made row-major
        found = signal_layout(shape, operands[1:])
    else:
        formats = [suggested_format(*pair) for pair in operands[:2]]
        found = _laid_out(shape, formats[formats[0] is contiguous_format])
    return found[1:] if found is not None and alone else found


def joining_layout(
    shape: tuple[int, ...], operands: Sequence[Pair]
) -> tuple[int, ...] | None:
    """The format that all operands are in."""
    formats = {suggested_format(*pair) for pair in operands if 0 not in pair[0]}
    return _laid_out(shape, formats.pop()) if len(formats) == 1 else None
