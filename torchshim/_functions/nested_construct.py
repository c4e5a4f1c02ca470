"""Nested tensors of layout jagged out of lists, padded tensors, or their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core.record import untracked
from torchshim._functions.composed import host_indices
from torchshim._functions.construct import tensor
from torchshim._functions.creation import placed
from torchshim._functions.joining import cat
from torchshim._functions.nested_tensor import view_of
from torchshim._functions.nn_resizing import pad
from torchshim._tensor import Tensor


def _alike(tensors: Sequence[Any], of: Any, what: str) -> None:
    if len({of(t) for t in tensors}) != 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the "
            f"same {what}"
        )


def ragged_dim(tensors: Sequence[Any]) -> int:
    """The dimension, counted from the batch, in which tensors differ; 1 if in none."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    _alike(tensors, lambda t: t.dtype, "dtype")
    if len({t.device for t in tensors}) != 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must be on the "
            "same device"
        )
    _alike(tensors, lambda t: t.dim(), "dim")
    if tensors[0].dim() == 0:
        raise RuntimeError(
            "Cannot construct a nested tensor from a list of zero-dim tensors"
        )
    sizes = zip(*(tuple(t.shape) for t in tensors), strict=True)
    found = [dim for dim, lengths in enumerate(sizes) if len({*lengths}) > 1]
    if len(found) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged "
            "layout. Note that the jagged layout only allows for a single ragged "
            "dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    return found[0] + 1 if found else 1


def jagged_from_list(
    tensors: Sequence[Any], offsets: Any, dtype: Any = None, device: Any = None
) -> tuple[Any, Any]:
    """A nested tensor of tensors that differ in one dimension, and its offsets."""
    at = ragged_dim(tensors)
    values = cat(list(tensors), dim=at - 1).to(device=device, dtype=dtype)
    lengths = [t.shape[at - 1] for t in tensors]
    if offsets is None:
        ends = np.cumsum([0, *lengths], dtype=np.int64)
        offsets = placed(ends, values.device)
    made = view_of(values, offsets, None, at, min(lengths), max(lengths))
    return made, offsets


def jagged_from_padded(dense: Any, device: Any, dtype: Any) -> Any:
    """A nested tensor of a tensor whose rows all have the same length."""
    device = dense.device if device is None else device
    values = dense.contiguous().flatten(0, 1).to(device=device, dtype=dtype)
    count, length = dense.shape[:2]
    offsets = placed(np.arange(count + 1, dtype=np.int64) * length, values.device)
    return view_of(values, offsets, None, 1, length, length)


def nested_tensor(
    tensor_list: Any, dtype: Any, device: Any, requires_grad: bool, pin_memory: bool
) -> Any:
    """A new leaf of tensors, or of what `torch.tensor` takes."""
    given = [t if isinstance(t, Tensor) else tensor(t) for t in tensor_list]
    with untracked():
        made, _ = jagged_from_list(given, None, dtype, device)
    made.requires_grad_(requires_grad)
    return made.pin_memory() if pin_memory else made


def jagged_from_tensor_and_lengths(
    dense: Any, starts: Any, lengths: Any
) -> tuple[Any, Any, Any]:
    """A nested tensor of pieces of the rows of a tensor, on its memory.

    Also its offsets, and its lengths where there are holes.
    """
    count = dense.shape[0]
    for each in (starts, lengths):
        if each.ndim > 1 or (each.ndim and each.shape[0] not in (1, count)):
            raise RuntimeError(
                "When constructing a jagged nested tensor using narrow(), your start "
                "and length must be Tensors that broadcast to input.shape[0]"
            )
    if dense.ndim < 2:
        raise AssertionError(
            "tensor must at least be 2D for the nested narrow op to work"
        )
    row = dense.shape[1]
    begin = np.broadcast_to(host_indices(starts), (count,)).astype(np.int64)
    sizes = np.broadcast_to(host_indices(lengths), (count,)).astype(np.int64)
    begin = begin + row * np.arange(count)
    ends = np.append(begin, begin[-1:] + sizes[-1:])
    values = dense.view(-1, *dense.shape[2:])
    least, most = int(sizes.min()), int(sizes.max())
    whole = (
        not (sizes[1:-1] != row).any()
        and not (np.diff(ends[1:-2]) != row).any()
        and ends[0] + sizes[0] == row
    )
    if whole:
        offsets = placed(ends - ends[0], dense.device)
        values = values[int(ends[0]) : int(ends[-1])]
        return view_of(values, offsets, None, 1, least, most), offsets, None
    offsets, kept = placed(ends, dense.device), placed(sizes, dense.device)
    return view_of(values, offsets, kept, 1, least, most), offsets, kept


def narrowed(dense: Any, start: Any, length: Any) -> Any:
    """As `torch.nested.narrow` of layout jagged."""
    if not isinstance(start, Tensor):
        start = tensor([start], device=dense.device)
    if not isinstance(length, Tensor):
        length = tensor([length], device=dense.device)
    return jagged_from_tensor_and_lengths(dense, start, length)[0]


def masked(dense: Any, mask: Any) -> Any:
    """As `torch.nested.masked_select`."""
    values = dense.masked_select(mask)
    counts = mask.expand(dense.shape).sum(dim=dense.ndim - 1).view(-1)
    return view_of(values, offsets_of(counts))


def offsets_of(lengths: Any) -> Any:
    """The offsets of tensors of these lengths that have no holes between them."""
    return pad(lengths.cumsum(0), (1, 0))
