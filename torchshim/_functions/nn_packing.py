"""Batches of sequences of several lengths: packed, padded, sorted.

Lengths decide shapes, so they are read; what follows from them (the order, the places
of the rows) is worked out on the host and enters the recording as indices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from torchshim._arguments import check_bool
from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    is_number,
    number_of,
    tensor_argument,
    wrong,
)
from torchshim._functions.creation import placed
from torchshim._functions.joining import known, known_value
from torchshim._ops.view_geometry import wrap_dim
from torchshim._tensor import Tensor, host_value

UNSORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
    "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence "
    "to sidestep this requirement if you do not need ONNX exportability."
)


@public
def _pack_padded_sequence(
    input: Tensor, lengths: Tensor, batch_first: bool
) -> tuple[Tensor, Tensor]:
    """The rows of padded sequences step after step, and how many each step has."""
    function = "_pack_padded_sequence"
    tensor_argument(function, "input", 1, input)
    tensor_argument(function, "lengths", 2, lengths)
    if batch_first:
        input = fns.transpose(input, 0, 1)
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    on_cpu, is_long = lengths.device.type == "cpu", lengths.dtype.name == "int64"
    if lengths.dim() != 1 or not on_cpu or not is_long:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.dim()}D {lengths.device.type} {lengths.dtype.scalar_name} tensor"
        )
    sizes = np.asarray(host_value(lengths), np.int64)
    batch = len(sizes)
    if input.size(1) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {batch} "
            f"(batch_size={input.size(1)})"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in "
            "'lengths' that is <= 0"
        )
    if np.any(sizes[1:] > sizes[:-1]):
        raise RuntimeError(UNSORTED)
    # How many sequences are longer than each step.
    batch_sizes = (sizes[None, :] > np.arange(sizes[0])[:, None]).sum(1)
    steps = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    rows = np.concatenate([np.arange(n) for n in batch_sizes])
    inside = steps < input.size(0)
    device = input.device
    data = fns.pack_rows(
        input, placed(steps[inside], device), placed(rows[inside], device)
    )
    return data, placed(batch_sizes, lengths.device)


@public
def _pad_packed_sequence(
    data: Tensor,
    batch_sizes: Tensor,
    batch_first: bool,
    padding_value: float,
    total_length: int,
) -> tuple[Tensor, Tensor]:
    """The padded sequences of packed rows, and their lengths."""
    function = "_pad_packed_sequence"
    tensor_argument(function, "data", 1, data)
    tensor_argument(function, "batch_sizes", 2, batch_sizes)
    value = number_of(function, "padding_value", 4, padding_value)
    sizes = np.asarray(host_value(batch_sizes), np.int64)
    batch, steps = int(sizes[0]), len(sizes)
    if total_length > steps:
        sizes = np.concatenate([sizes, np.zeros(total_length - steps, np.int64)])
    starts = np.cumsum(sizes) - sizes
    filled = np.arange(batch) < sizes[:, None]
    source = np.where(filled, starts[:, None] + np.arange(batch), 0)
    device = data.device
    out = fns.spread_rows(data, placed(source, device), placed(filled, device), value)
    if batch_first:
        out = fns.transpose(out, 0, 1)
    return out, placed(filled.sum(0), batch_sizes.device)


def sorted_lengths(lengths: Tensor) -> tuple[Tensor, np.ndarray]:
    """The lengths by size, the longest first, and the order that sorts them."""
    sizes = host_value(lengths)
    order = np.argsort(-sizes, kind="stable") if sizes.ndim else np.zeros((), np.int64)
    return placed(np.take(sizes, order), lengths.device), order


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation given as a 1-D tensor; None for None.

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.rnn.invert_permutation.html

    >>> import torchshim as torch
    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    tensor_argument("empty_like", "input", 1, permutation)
    if permutation.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if permutation.dtype is not dtypes.int64:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if permutation.dim() > 1:
        wrap_dim(1, 1)  # raises, as there is one dimension only
    order = host_value(permutation)
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return placed(found, permutation.device)


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of several lengths as one tensor, of shape (steps, sequences, *).

    https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.rnn.pad_sequence.html

    >>> import torchshim as torch
    >>> torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1)], True)
    tensor([[1., 1.],
            [1., 0.]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    given: Sequence[Any] = tuple(sequences)
    check_bool("pad_sequence", "batch_first", batch_first, 2)
    if not is_number(padding_value):
        text = wrong("pad_sequence", "padding_value", 3, "float", padding_value)
        raise TypeError(text)
    if not isinstance(padding_side, str):
        raise TypeError(wrong("pad_sequence", "padding_side", 4, "str", padding_side))
    if not given:
        raise RuntimeError("received an empty list of sequences")
    for i, each in enumerate(given):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got "
                f"{type(each).__name__}"
            )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    if given[0].dim() and any(t.dim() == 0 for t in given):
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    value = float(number_of("pad_sequence", "padding_value", 3, padding_value))
    if known(list(given), math.inf) and all(
        t.dim() and t.shape[1:] == given[0].shape[1:] for t in given
    ):
        # A batch that a data set gives: no program for each choice of lengths.
        arrays = [known_value(t) for t in given]
        length = max(len(a) for a in arrays)
        shape = (length, len(arrays), *arrays[0].shape[1:])
        if batch_first:
            shape = (shape[1], shape[0], *shape[2:])
        out = np.full(shape, value, arrays[0].dtype)
        for i, array in enumerate(arrays):
            begin = length - len(array) if padding_side == "left" else 0
            steps = slice(begin, begin + len(array))
            out[(i, steps) if batch_first else (steps, i)] = array
        return placed(out, given[0].device)
    return fns.pad_rows(given, bool(batch_first), value, padding_side == "left")
