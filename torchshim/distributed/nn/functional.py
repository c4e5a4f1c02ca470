"""What the members of a group do together, with gradients: the only member's part.

Each returns a copy of what this process gave; its gradient comes back unchanged.
"""

from __future__ import annotations

from typing import Any

from torchshim import distributed as dist
from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.autograd import Function
from torchshim.distributed._group import ProcessGroup, ReduceOp, group

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


class _Passed(Function):
    """A copy, whose gradient is passed on."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs[0]


# PyTorch's nodes have these names.
_AllGather, _AllReduce, _AlltoAll, _AlltoAllSingle, _Broadcast, _Gather = (
    type(name, (_Passed,), {})
    for name in (
        "_AllGather",
        "_AllReduce",
        "_AlltoAll",
        "_AlltoAllSingle",
        "_Broadcast",
        "_Gather",
    )
)
_Reduce, _Reduce_Scatter, _Scatter = (
    type(name, (_Passed,), {}) for name in ("_Reduce", "_Reduce_Scatter", "_Scatter")
)


def _deprecated(name: str, successor: str) -> None:
    warn(
        f"torch.distributed.nn.functional.{name} is deprecated, use "
        f"torch.distributed._functional_collectives.{successor} instead.",
        FutureWarning,
    )


def broadcast(
    tensor: Tensor, src: int, group: ProcessGroup | None = group.WORLD
) -> Any:
    """Gives one member's tensor to all."""
    _deprecated("broadcast", "broadcast")
    dist.broadcast(tensor, src, group)
    return _Broadcast.apply(tensor)


def gather(
    tensor: Tensor, dst: int = 0, group: ProcessGroup | None = group.WORLD
) -> Any:
    """Gives the tensors of all members to one, as a tuple."""
    dist.gather(tensor, [tensor.new_empty(tensor.shape)], dst, group)
    return (_Gather.apply(tensor),)


def scatter(
    tensors: Any, src: int = 0, group: ProcessGroup | None = group.WORLD
) -> Any:
    """Gives each member a tensor of one member's list."""
    tensors = list(tensors)
    dist.scatter(tensors[0].new_empty(tensors[0].shape), tensors, src, group)
    return _Scatter.apply(tensors[0])


def reduce(
    tensor: Tensor,
    dst: int,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Reduces the members' tensors; one has the result."""
    dist.reduce(tensor, dst, op, group)
    return _Reduce.apply(tensor)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Reduces lists of tensors; each member has one of the results."""
    _deprecated("reduce_scatter", "reduce_scatter_single")
    dist.reduce_scatter(output, list(input_list), op, group)
    return _Reduce_Scatter.apply(input_list[0])


def all_gather(tensor: Tensor, group: ProcessGroup | None = group.WORLD) -> Any:
    """Gives the tensors of all members to all, as a tuple."""
    _deprecated("all_gather", "all_gather_single")
    dist.all_gather([tensor.new_empty(tensor.shape)], tensor, group)
    return (_AllGather.apply(tensor),)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Each member gives one tensor to each."""
    dist.all_to_all(output_tensor_list, list(input_tensor_list), group)
    return (_AlltoAll.apply(input_tensor_list[0]),)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Each member gives a piece of its tensor to each."""
    _deprecated("all_to_all_single", "all_to_all_single")
    dist.all_to_all_single(output, input, output_split_sizes, input_split_sizes, group)
    return _AlltoAllSingle.apply(input)


def all_reduce(
    tensor: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Reduces the members' tensors; each has the result."""
    _deprecated("all_reduce", "all_reduce")
    dist.all_reduce(tensor, op, group)
    return _AllReduce.apply(tensor)
