"""What the members of a group do together, with gradients.

The gradient of each is what carries the other way: of a broadcast a sum at its source,
of a gather a scatter. All members have to call backward, as it communicates, too.
"""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import distributed as dist
from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.autograd import Function
from torchshim.distributed._group import ProcessGroup, group
from torchshim.distributed._reductions import ReduceOp

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


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.told = src, group
        result = tensor.clone()
        dist.broadcast(result, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        src, group = ctx.told
        found = _Reduce.apply(src, ReduceOp.SUM, group, grad_outputs[0])
        if src != dist.get_rank(group):
            found.zero_()
        return None, None, found


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.told = dst, group
        result = tensor.clone()
        dist.reduce(result, dst, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None, None, None, _Broadcast.apply(*ctx.told, grad_outputs[0])


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.told = op, group
        result = tensor.clone(memory_format=torchshim.contiguous_format)
        dist.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None, None, _AllReduce.apply(*ctx.told, grad_outputs[0])


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.told = dst, group
        count, here = dist.get_world_size(group), dist.get_rank(group) == dst
        found = [torchshim.zeros_like(tensor) for _ in range(count)]
        dist.gather(tensor, found if here else None, dst, group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None, None, _Scatter.apply(*ctx.told, *grad_outputs)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.told = src, group
        result = torchshim.zeros_like(tensors[0])
        here = dist.get_rank(group) == src
        dist.scatter(result, list(tensors) if here else None, src, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None, None, *_Gather.apply(*ctx.told, grad_outputs[0])


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        count = dist.get_world_size(group)
        found = [torchshim.empty_like(tensor) for _ in range(count)]
        dist.all_gather(found, tensor, group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        found = torchshim.empty_like(grad_outputs[0])
        op = ReduceOp.SUM
        return None, _Reduce_Scatter.apply(op, ctx.group, found, *grad_outputs)


class _Reduce_Scatter(Function):
    @staticmethod
    def forward(
        ctx: Any, op: Any, group: Any, output: Tensor, *tensors: Tensor
    ) -> Tensor:
        ctx.group = group
        dist.reduce_scatter(output, list(tensors), op, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grad_outputs[0])


class _AlltoAll(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, outputs: list[Tensor], *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.told = group, [tensor.shape for tensor in tensors]
        dist.all_to_all(outputs, list(tensors), group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        group, shapes = ctx.told
        found = [grad_outputs[0].new_empty(shape) for shape in shapes]
        return None, None, *_AlltoAll.apply(group, found, *grad_outputs)


class _AlltoAllSingle(Function):
    @staticmethod
    def forward(
        ctx: Any, group: Any, output: Tensor, out: Any, into: Any, tensor: Tensor
    ) -> Tensor:
        ctx.told = group, tensor.shape, into, out
        dist.all_to_all_single(output, tensor, out, into, group)
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        group, shape, out, into = ctx.told
        grad = grad_outputs[0]
        found = _AlltoAllSingle.apply(group, grad.new_empty(shape), out, into, grad)
        return None, None, None, None, found


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
    return _Broadcast.apply(src, group, tensor)


def gather(
    tensor: Tensor, dst: int = 0, group: ProcessGroup | None = group.WORLD
) -> Any:
    """Gives the tensors of all members to one, as a tuple."""
    return _Gather.apply(dst, group, tensor)


def scatter(
    tensors: Any, src: int = 0, group: ProcessGroup | None = group.WORLD
) -> Any:
    """Gives each member a tensor of one member's list."""
    return _Scatter.apply(src, group, *tensors)


def reduce(
    tensor: Tensor,
    dst: int,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Reduces the members' tensors; one has the result."""
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Reduces lists of tensors; each member has one of the results."""
    _deprecated("reduce_scatter", "reduce_scatter_single")
    return _Reduce_Scatter.apply(op, group, output, *input_list)


def all_gather(tensor: Tensor, group: ProcessGroup | None = group.WORLD) -> Any:
    """Gives the tensors of all members to all, as a tuple."""
    _deprecated("all_gather", "all_gather_single")
    return _AllGather.apply(group, tensor)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Each member gives one tensor to each."""
    return _AlltoAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Each member gives a piece of its tensor to each."""
    _deprecated("all_to_all_single", "all_to_all_single")
    sizes = output_split_sizes, input_split_sizes
    return _AlltoAllSingle.apply(group, output, *sizes, input)


def all_reduce(
    tensor: Tensor,
    op: Any = ReduceOp.SUM,
    group: ProcessGroup | None = group.WORLD,
) -> Any:
    """Reduces the members' tensors; each has the result."""
    _deprecated("all_reduce", "all_reduce")
    return _AllReduce.apply(op, group, tensor)
