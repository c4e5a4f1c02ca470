"""Collective communication that returns new tensors, and has gradients.

Results are there at once; PyTorch's wait for theirs (`AsyncCollectiveTensor`).
"""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.autograd import Function
from torchshim.distributed import _collectives
from torchshim.distributed._group import (
    ProcessGroup,
    _world,
    get_process_group_ranks,
)
from torchshim.distributed._reductions import RedOpType

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
    ranks = group[0] if group and isinstance(group[0], list) else group
    for found in _world.groups:
        if get_process_group_ranks(found) == ranks:
            return found
    raise ValueError("")


def _reduction(name: str) -> RedOpType:
    if name.lower() not in _REDUCTIONS:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return RedOpType[name.upper()]


class _AllReduced(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: str, group: Any) -> Tensor:
        ctx.told = op, group
        result = tensor.clone(memory_format=torchshim.contiguous_format)
        _collectives.all_reduce(result, _reduction(op), group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        op, group = ctx.told
        _only_sums("all_reduce", op)
        return _AllReduced.apply(grad_outputs[0], op, group), None, None


class _Gathered(Function):
    """All members' tensors, along dimension 0."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> Tensor:
        ctx.group = group
        rows, *rest = tensor.shape or (1,)
        result = tensor.new_empty((rows * group.size(), *rest))
        _collectives.all_gather_single(result, tensor, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return _Scattered.apply(grad_outputs[0], "sum", ctx.group), None


class _Scattered(Function):
    """This member's rows of what the members' tensors become."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: str, group: Any) -> Tensor:
        ctx.told = op, group
        rows, *rest = tensor.shape
        if rows % group.size():
            raise AssertionError(
                f"input dimension 0 ({rows} must be a multiple of group_size "
                f"{group.size()})"
            )
        result = tensor.new_empty((rows // group.size(), *rest))
        _collectives.reduce_scatter_single(result, tensor, _reduction(op), group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        op, group = ctx.told
        _only_sums("reduce_scatter_tensor", op)
        return _Gathered.apply(grad_outputs[0], group), None, None


class _Exchanged(Function):
    """A piece of each member's tensor, along dimension 0."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, out: Any, into: Any, group: Any) -> Tensor:
        ctx.told = out, into, group
        rows = sum(out) if out else tensor.shape[0]
        result = tensor.new_empty((rows, *tensor.shape[1:]))
        _collectives.all_to_all_single(result, tensor, out, into, group)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        out, into, group = ctx.told
        found = _Exchanged.apply(grad_outputs[0], into, out, group)
        return found, None, None, None


class _Broadcast(Function):
    """A copy of one member's tensor; gradients stay where they are."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, group: Any) -> Tensor:
        result = tensor.clone(memory_format=torchshim.contiguous_format)
        _collectives.broadcast(result, group=group, group_src=src)
        return result

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return grad_outputs[0], None, None


def _only_sums(function: str, op: str) -> None:
    if op.lower() != "sum":
        raise RuntimeError(
            f"{function} backward only supports 'sum' reduction, got '{op.lower()}'"
        )


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is there; another object on the same memory."""
    return tensor.view_as(tensor)


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """Gives one member's tensor to all."""
    return _Broadcast.apply(self, src, _known(group))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """Reduces the members' tensors; each has the result."""
    return _AllReduced.apply(self, reduceOp, _known(group))


def all_reduce_coalesced(
    self: list[Tensor], reduceOp: str, group: Any, tag: str = ""
) -> list[Tensor]:
    """`all_reduce` of each tensor of a list."""
    return [all_reduce(each, reduceOp, group, tag) for each in self]


def all_gather_single(
    self: Tensor, gather_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """Joins the tensors of all members along a dimension."""
    member_of = _known(group)
    found = _Gathered.apply(self.contiguous(), member_of)
    if gather_dim == 0:
        return found
    return torchshim.cat(found.chunk(member_of.size()), gather_dim)


def reduce_scatter_single(
    self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = ""
) -> Tensor:
    """Reduces the members' tensors; each has a piece of the result."""
    member_of = _known(group)
    if scatter_dim:
        self = torchshim.cat(self.chunk(member_of.size(), scatter_dim))
    return _Scattered.apply(self, reduceOp, member_of)


def all_to_all_single(
    self: Tensor,
    output_split_sizes: list[int] | None,
    input_split_sizes: list[int] | None,
    group: Any,
    tag: str = "",
) -> Tensor:
    """Each member gives a piece of its tensor to each."""
    sizes = output_split_sizes, input_split_sizes
    return _Exchanged.apply(self, *sizes, _known(group))


# The plain forms let gradients through, too.
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
