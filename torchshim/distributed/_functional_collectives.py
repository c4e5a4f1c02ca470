"""Collective communication that returns new tensors: the only member's own.

Results are there at once; PyTorch's wait for theirs (`AsyncCollectiveTensor`).
"""

from __future__ import annotations

from typing import Any

from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.distributed import _collectives
from torchshim.distributed._group import ProcessGroup, checked_rank, chosen

__all__ = [
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "wait_tensor",
]

_REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor")


def _known(group: Any) -> ProcessGroup:
    """The group that an argument names: an object, or numbers of processes."""
    if isinstance(group, ProcessGroup):
        return group
    if not isinstance(group, list):
        raise ValueError(f"Unsupported group type: {type(group)}, {group}")
    warn(
        "The combination of ranks + tag as process group identifier has been "
        "deprecated. Please switch to using ProcessGroup, DeviceMesh, or group name "
        "instead.",
        FutureWarning,
    )
    if group not in ([0], [[0]]):
        raise ValueError("")
    return chosen()


def _reduction(name: str) -> None:
    if name.lower() not in _REDUCTIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there; another object on the same memory."""
    return tensor.view_as(tensor)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """Gives one member's tensor to all."""
    checked_rank("broadcast", src, _known(group))
    return self.clone()


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """Reduces the members' tensors; each has the result."""
    _known(group)
    _reduction(reduceOp)
    return self.clone()


def all_reduce_coalesced(
    self: list[Tensor], reduceOp: str, group: Any, tag: str = ""
) -> list[Tensor]:
    """`all_reduce` of each tensor of a list."""
    return [all_reduce(each, reduceOp, group, tag) for each in self]


def all_gather_single(
    self: Tensor, gather_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """Joins the tensors of all members along a dimension."""
    _known(group)
    return self.clone()


def reduce_scatter_single(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """Reduces the members' tensors; each has a piece of the result."""
    _known(group)
    _reduction(reduceOp)
    if self.requires_grad and reduceOp.lower() != "sum":
        raise RuntimeError(
            "reduce_scatter_tensor backward only supports 'sum' reduction, got "
            f"'{reduceOp.lower()}'"
        )
    return self.clone()


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Each member gives a piece of its tensor to each."""
    member_of = _known(group)
    length = sum(output_split_sizes) if output_split_sizes else self.shape[0]
    result = self.new_empty((length, *self.shape[1:]))
    _collectives.all_to_all_single(
        result, self, output_split_sizes, input_split_sizes, member_of
    )
    return self.clone()


# They let gradients through as they are.
all_gather_single_autograd = all_gather_single
reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single


def _renamed(old: str, new: Any) -> Any:
    def function(*args: Any, **kwargs: Any) -> Tensor:
        start = "`torch.distributed._functional_collectives."
        warn(
            f"{start}{old}` is deprecated. Please use {start}{new}` instead.",
            FutureWarning,
        )
        return globals()[new](*args, **kwargs)

    function.__name__ = function.__qualname__ = old
    return function


all_gather_tensor = _renamed("all_gather_tensor", "all_gather_single")
all_gather_tensor_autograd = _renamed(
    "all_gather_tensor_autograd", "all_gather_single_autograd"
)
reduce_scatter_tensor = _renamed("reduce_scatter_tensor", "reduce_scatter_single")
reduce_scatter_tensor_autograd = _renamed(
    "reduce_scatter_tensor_autograd", "reduce_scatter_single_autograd"
)
