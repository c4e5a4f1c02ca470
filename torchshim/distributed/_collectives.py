"""What the members of a group do together; a group has one member here."""

from __future__ import annotations

import copy
from typing import Any

from torchshim._errors import Unsupported, warn
from torchshim._tensor import Tensor
from torchshim.autograd.grad_mode import no_grad
from torchshim.distributed._group import (
    ProcessGroup,
    RedOpType,
    ReduceOp,
    checked_rank,
    chosen,
)
from torchshim.futures import Future


class Work:
    """A collective operation that was begun: it is done."""

    def __init__(self, results: list[Tensor] | None = None) -> None:
        self._results = results

    def get_future(self) -> Future[list[Tensor]]:
        """The future of the results. RuntimeError of a reduction that scatters."""
        if self._results is None:
            raise RuntimeError("Work::getFuture not implemented.")
        made: Future[list[Tensor]] = Future()
        made.set_result(self._results)
        return made

    def result(self) -> list[Tensor]:
        """The results."""
        return self._results or []

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def wait(self, timeout: Any = None) -> bool:
        """True, at once."""
        return True


def _done(async_op: bool, results: list[Tensor] | None = None) -> Work | None:
    return Work(results) if async_op else None


def _one(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type "
            f"torch.Tensor\n             but got {type(value)} instead."
        )


def _several(values: Any, name: str, function: str) -> None:
    """Checks a list with one tensor for each member."""
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
    if len(values) != 1:
        raise RuntimeError(
            f"ProcessGroupGloo::{function}: invalid output tensor list at index 0 "
            f"(expected length 1, got {len(values)})"
        )


def _root(function: str, rank: int | None, of_group: int | None, group: Any) -> None:
    if rank is not None and of_group is not None:
        raise ValueError("Can't specify both a global and a group rank")
    number = rank if of_group is None else of_group
    checked_rank(function, 0 if number is None else number, group)


@no_grad()
def _copied(target: Any, source: Any) -> None:
    target.copy_(source.reshape(target.shape))


_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


def _operation(op: Any, tensor: Any) -> None:
    """Checks what makes one tensor of several; of one it makes that."""
    kind = op.op if type(op) is ReduceOp else op
    if not isinstance(kind, RedOpType) or kind is RedOpType.PREMUL_SUM:
        raise TypeError(
            "(): incompatible function arguments: a torch.distributed.ReduceOp that "
            f"Gloo knows is needed, not {op!r}"
        )
    dtype = tensor.dtype
    if kind in _BITWISE and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")


def all_reduce(
    tensor: Tensor,
    op: ReduceOp | RedOpType = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces the members' tensors; each has the result."""
    _one(tensor, "tensor")
    chosen(group)
    _operation(op, tensor)
    return _done(async_op, [tensor])


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: ReduceOp | RedOpType = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces the members' tensors; one has the result."""
    _one(tensor, "tensor")
    _root("reduce", dst, group_dst, group)
    _operation(op, tensor)
    return _done(async_op, [tensor])


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives one member's tensor to all."""
    _one(tensor, "tensor")
    _root("broadcast", src, group_src, group)
    return _done(async_op, [tensor])


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives the tensors of all members to all, as a list."""
    chosen(group)
    _several(tensor_list, "tensor_list", "allgather")
    _one(tensor, "tensor")
    _copied(tensor_list[0], tensor)
    return _done(async_op, tensor_list)


def all_gather_single(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives the tensors of all members to all, as one tensor."""
    _one(input_tensor, "input_tensor")
    _one(output_tensor, "output_tensor")
    chosen(group)
    _copied(output_tensor, input_tensor)
    return _done(async_op, [output_tensor])


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Deprecated: `all_gather_single`."""
    _renamed("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gives the tensors of all members to one."""
    _one(tensor, "tensor")
    _root("gather", dst, group_dst, group)
    if not gather_list:
        raise ValueError(
            "Argument ``gather_list`` must be specified on destination rank."
        )
    _several(gather_list, "gather_list", "gather")
    _copied(gather_list[0], tensor)
    return _done(async_op, gather_list)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives each member a tensor of one member's list."""
    _one(tensor, "tensor")
    _root("scatter", src, group_src, group)
    if not scatter_list:
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _several(scatter_list, "scatter_list", "scatter")
    _copied(tensor, scatter_list[0])
    return _done(async_op, [tensor])


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: ReduceOp | RedOpType = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces lists of tensors; each member has one of the results."""
    _one(output, "output")
    chosen(group)
    _several(input_list, "input_list", "reduce_scatter")
    _operation(op, output)
    _copied(output, input_list[0])
    return _done(async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | RedOpType = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces tensors; each member has its part of the result."""
    _one(output, "output")
    _one(input, "input")
    chosen(group)
    _operation(op, output)
    _copied(output, input)
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: ReduceOp | RedOpType = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Deprecated: `reduce_scatter_single`."""
    _renamed("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def all_to_all(
    output_tensor_list: list[Tensor],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Each member gives one tensor to each."""
    chosen(group)
    _several(output_tensor_list, "output_tensor_list", "alltoall")
    _several(input_tensor_list, "input_tensor_list", "alltoall")
    _copied(output_tensor_list[0], input_tensor_list[0])
    return _done(async_op, output_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Each member gives a piece of its tensor to each."""
    _one(output, "output")
    _one(input, "input")
    chosen(group)
    for sizes, tensor in ((output_split_sizes, output), (input_split_sizes, input)):
        if sizes and sum(sizes) != tensor.shape[0]:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
    _copied(output, input)
    return _done(async_op, [output])


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: Any = None,
) -> Work | None:
    """Waits for all members."""
    chosen(group)
    return _done(async_op, [])


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: Any = None,
    wait_all_ranks: bool = False,
) -> None:
    """Waits for all members."""
    chosen(group)


def all_gather_object(
    object_list: list[Any], obj: Any, group: ProcessGroup | None = None
) -> None:
    """Gives the objects of all members to all."""
    chosen(group)
    object_list[0] = copy.deepcopy(obj)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    group_dst: int | None = None,
) -> None:
    """Gives the objects of all members to one."""
    _root("gather", dst, group_dst, group)
    if not object_gather_list:
        raise ValueError(
            "Argument ``object_gather_list`` must be specified on destination rank."
        )
    object_gather_list[0] = copy.deepcopy(obj)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: ProcessGroup | None = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Gives one member's objects to all."""
    _root("broadcast", src, group_src, group)
    object_list[:] = copy.deepcopy(object_list)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    group_src: int | None = None,
) -> None:
    """Gives each member one of a member's objects."""
    _root("scatter", src, group_src, group)
    if not scatter_object_input_list:
        raise ValueError("source rank must provide non-empty scatter_object_input_list")
    scatter_object_output_list[0] = copy.deepcopy(scatter_object_input_list[0])


def _alone(*arguments: Any, **options: Any) -> Any:
    """Refused: there is no other process."""
    chosen()
    raise Unsupported("torch.distributed: there is no other process to talk to")


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Refused: there is no other process."""
    del tensor, tag
    if 0 in (dst, group_dst):
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as "
            "the rank of the current process."
        )
    _alone(group)


isend = recv = irecv = _alone


def _renamed(old: str, new: str) -> None:
    warn(
        f"`torch.distributed.{old}` is deprecated. Please use "
        f"`torch.distributed.{new}` instead.",
        FutureWarning,
    )
