"""Nested tensors of layout jagged, under the names that PyTorch keeps private."""

from __future__ import annotations

from typing import Any

from torchshim._errors import refused
from torchshim._functions.nested_construct import (
    jagged_from_list,
    jagged_from_tensor_and_lengths,
)
from torchshim._functions.nested_tensor import (
    NestedTensor,
    _rebuild_njt,
    from_padded,
    njt,
    ragged_size,
    view_of,
)

__all__ = [
    "NestedTensor",
    "_rebuild_njt",
    "buffer_from_jagged",
    "get_tensor_symint",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]


def get_tensor_symint(tensor: Any, *, coeff: int = 1) -> Any:
    """The size that stands for the lengths that a tensor of offsets has."""
    return ragged_size(tensor) * coeff


def nested_view_from_values_offsets(
    values: Any,
    offsets: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A nested tensor on the memory of `values`."""
    return view_of(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values: Any,
    offsets: Any,
    lengths: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A nested tensor on the memory of `values`, with holes."""
    return view_of(values, offsets, lengths, ragged_idx, min_seqlen, max_seqlen)


def nested_from_padded(
    padded: Any,
    offsets: Any,
    ragged_idx: int = 1,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
    sum_S: int | None = None,
) -> Any:
    """A nested tensor of the parts of a padded one that the offsets tell of."""
    if sum_S is None:
        sum_S = int(offsets[-1])
    shape = list(padded.shape[1:])
    shape[ragged_idx - 1] = sum_S
    given = {"min_seqlen": min_seqlen, "max_seqlen": max_seqlen}
    cache = {name: value for name, value in given.items() if value is not None}
    like = njt(padded.new_empty(shape), offsets, None, ragged_idx, cache)
    return from_padded(padded, like)


def buffer_from_jagged(jagged: Any) -> Any:
    """The values of a nested tensor."""
    return jagged.values()


globals().update(
    refused(
        __name__,
        "ViewBufferFromNested ViewNestedFromBuffer",
        "use nested_tensor_from_jagged and values()",
    )
)
