"""What PyTorch's collective operations refuse, and how tensors are read for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim._errors import Unsupported, warn
from torchshim._tensor import Tensor
from torchshim.distributed._group import (
    ProcessGroup,
    chosen,
    get_group_rank,
    is_elsewhere,
)

__all__ = [
    "check_carried",
    "check_dtypes",
    "check_length",
    "check_shapes",
    "check_tensor",
    "check_tensors",
    "host",
    "left_out",
    "root_of",
]

# What Gloo adds up, and carries in collective operations; bool as bytes.
_CARRIED = (
    "float32 float64 float16 bfloat16 int8 uint8 bool int32 int64 complex64 complex128"
)
_DTYPES = frozenset(getattr(torchshim, name) for name in _CARRIED.split())


def check_tensor(value: Any, name: str) -> None:
    """TypeError if an argument is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type "
            f"torch.Tensor\n             but got {type(value)} instead."
        )


def check_tensors(values: Any, name: str) -> None:
    """TypeError if an argument is no list of tensors."""
    start = f"Invalid function argument. Expected parameter `{name}` of type "
    if not isinstance(values, list):
        raise TypeError(
            f"{start}List[torch.Tensor]\n             but got {type(values)} instead."
        )
    if not all(isinstance(value, Tensor) for value in values):
        kinds = [type(value) for value in values]
        raise TypeError(
            f"{start}List[torch.Tensor]\n             but got {type(values)} with "
            f"elements of type {kinds}."
        )


def check_length(values: Sequence[Any], count: int, function: str) -> None:
    """RuntimeError if a list has not one tensor for each member."""
    if len(values) == count:
        return
    if function in ("gather", "scatter"):
        side = "output" if function == "gather" else "input"
        raise RuntimeError(
            f"ProcessGroupGloo::{function}: Incorrect {side} list size {len(values)}. "
            f"{side.capitalize()} list size should be {count}, same as size of the "
            "process group."
        )
    if function == "reduce_scatter":
        raise RuntimeError("invalid input tensor list size, must be world size")
    raise RuntimeError(
        f"ProcessGroupGloo::{function}: invalid output tensor list at index 0 "
        f"(expected length {count}, got {len(values)})"
    )


def _sizes(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def check_shapes(values: Sequence[Tensor], like: Tensor, function: str) -> None:
    """RuntimeError if tensors are of another shape."""
    for index, value in enumerate(values):
        if value.shape != like.shape:
            raise RuntimeError(
                f"ProcessGroupGloo::{function}: invalid tensor size at index {index} "
                f"(expected {_sizes(like)}, got {_sizes(value)})"
            )


def check_dtypes(*values: Tensor) -> None:
    """ValueError if tensors differ in dtype."""
    for value in values[1:]:
        if value.dtype != values[0].dtype:
            raise ValueError(
                "Invalid usage of tensors with different dtypes"
                f"Found {values[0].dtype} and  {value.dtype}"
            )


def check_carried(tensor: Tensor) -> None:
    """RuntimeError of dtypes that Gloo has no operations for."""
    if tensor.dtype not in _DTYPES:
        raise RuntimeError("Invalid scalar type")


def host(tensor: Tensor, any_dtype: bool = False, keep: bool = False) -> np.ndarray:
    """A tensor's values, not to be written to. RuntimeError of dtypes Gloo has not.

    `keep`: they are used after the program has gone on.
    """
    if tensor.layout is not torchshim.strided:
        raise Unsupported("torch.distributed: sparse tensors are not supported")
    if tensor.is_meta:
        raise Unsupported("torch.distributed: tensors without data are not supported")
    if not any_dtype:
        check_carried(tensor)
    values = tensor._host()
    storage = tensor._storage
    shared = storage is not None and storage.shared is not None
    return np.array(values) if shared or keep else values


def root_of(function: str, rank: int | None, of_group: int | None, group: Any) -> int:
    """The member that a call names, by either number. ValueError for none or both."""
    member_of = chosen(group)
    if of_group is None:
        if rank is None:
            raise ValueError("Must specify global_rank or group_rank")
        of_group = get_group_rank(member_of, rank)
    elif rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if not 0 <= of_group < member_of.size():
        raise RuntimeError(
            f"ProcessGroupGloo::{function}: invalid root rank: {of_group}"
        )
    return of_group


def left_out(group: Any, function: str) -> bool:
    """Whether this process is not in a group, which it is warned of."""
    if not is_elsewhere(group):
        return False
    rank = ProcessGroup.rank(chosen())
    warn(
        f"Running {function} on global rank {rank} which does not belong to the given "
        "group."
    )
    return True
