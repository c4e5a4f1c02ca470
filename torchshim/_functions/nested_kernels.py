"""Conversions between padded tensors and the values of nested ones, by offsets alone.

PyTorch's kernels of that name: https://github.com/pytorch/pytorch,
aten/src/ATen/native/nested/NestedTensorTransformerFunctions.cpp
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._derived import fns, public
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.nested_strided import from_padded, handles, is_strided
from torchshim._functions.nested_tensor import jagged_places
from torchshim._tensor import Tensor

_ASSERTED = (
    "{} INTERNAL ASSERT FAILED at "
    '"/__w/pytorch/pytorch/aten/src/ATen/native/nested/'
    'NestedTensorTransformerFunctions.cpp":{}, please report a bug to PyTorch. '
    "{}(): only a single jagged dim is supported for now"
)


def _check_offsets(name: str, offsets: Any) -> None:
    if offsets.dim() != 1:
        raise RuntimeError(
            f"{name}(): expected 1D offsets, but got offsets.dim() == {offsets.dim()}"
        )


@public(namespaces=("ops.aten",))
def _jagged_to_padded_dense_forward(
    values: Tensor,
    offsets: Sequence[Tensor],
    max_lengths: Sequence[int],
    padding_value: float = 0.0,
) -> Tensor:
    """Rows of values as a batch: padded, or cut, to one length."""
    name = "_jagged_to_padded_dense_forward"
    if len(offsets) != 1 or len(max_lengths) != 1:
        asked = "offsets_list.size() == 1 && max_lengths.size() == 1"
        raise RuntimeError(_ASSERTED.format(asked, 256, name))
    (bounds,), (length,) = offsets, max_lengths
    _check_offsets(name, bounds)
    device, count = values.device, values.shape[0]

    def make(host: np.ndarray) -> Any:
        at = host[:-1, None] + np.arange(length)
        return placed(np.where(at < host[1:, None], at, count), device)

    places = planned(("padded", length, count), make, bounds)
    return fns.nested_to_padded(values, places, padding_value)


@public(namespaces=("ops.aten",))
def _padded_dense_to_jagged_forward(
    dense: Tensor, offsets: Sequence[Tensor], total_L: int | None = None
) -> Tensor:
    """The leading rows of each of a batch, one after another."""
    name = "_padded_dense_to_jagged_forward"
    if len(offsets) != 1:
        raise RuntimeError(_ASSERTED.format("offsets_list.size() == 1", 309, name))
    [bounds] = offsets
    _check_offsets(name, bounds)
    if dense.dim() < 2:
        raise RuntimeError(
            f"{name}(): expected padded dim >= 2, but padded.dim() == {dense.dim()}"
        )
    lengths = planned("lengths", lambda host: np.diff(host).tolist(), bounds)
    last = planned("last", lambda host: int(host[-1]), bounds)
    if total_L is not None and last != total_L:
        raise RuntimeError(f"{name}(): final offset should match total_L value")
    room = dense.shape[1]
    for n in lengths:
        if n > room:
            raise RuntimeError(
                f"{name}(): found batch item of length {n} when max length specified "
                f"by padded input is {room}"
            )
    if len(lengths) > dense.shape[0]:
        dense.select(0, dense.shape[0])  # raises
    # Where there is room for one, each row has one at most.
    places = jagged_places(bounds, max(room, 2), last)
    if room < 2:
        dense = fns.expand(dense, (dense.shape[0], 2, *dense.shape[2:]))
    return fns.nested_from_padded(dense, places)


@public
def _nested_from_padded_and_nested_example(
    padded: Tensor, nt_example: Tensor
) -> Tensor:
    """A nested tensor of the sizes of another, out of a padded tensor.

    >>> import torchshim as torch
    >>> like = torch.nested.nested_tensor([torch.ones(1), torch.ones(2)])
    >>> found = torch._nested_from_padded_and_nested_example(torch.ones(2, 3), like)
    >>> [part.shape for part in found.unbind()]
    [torch.Size([1]), torch.Size([2])]
    """
    raise NotImplementedError(
        "_nested_from_padded_and_nested_example() takes a nested tensor of layout "
        "strided as its example"
    )


@handles("_nested_from_padded_and_nested_example")
def _from_example(func: Any, padded: Tensor, nt_example: Any) -> Tensor:
    if not is_strided(nt_example):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    return from_padded(padded, nt_example._arrangement)
