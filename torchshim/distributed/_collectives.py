"""What the members of a group do together with tensors.

A function checks its arguments, reads the tensors that it sends, and gives `begin` what
is to be exchanged (see `_work.py`). With `async_op=True` the result is a `Work`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.distributed._channel import Channel
from torchshim.distributed._checks import (
    check_carried,
    check_dtypes,
    check_length,
    check_shapes,
    check_tensor,
    check_tensors,
    host,
    left_out,
    root_of,
)
from torchshim.distributed._group import (
    Backend,
    ProcessGroup,
    chosen,
    get_backend,
)
from torchshim.distributed._reductions import (
    RedOpType,
    ReduceOp,
    check_operation,
    kind_of,
)
from torchshim.distributed._work import Work, begin, settle

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
]

Operation = ReduceOp | RedOpType
Arrays = Sequence[np.ndarray] | None


def _run(
    group: Any,
    async_op: bool,
    inputs: Sequence[Tensor],
    compute: Callable[[Channel, int, list[np.ndarray]], Arrays],
    outputs: Sequence[Tensor],
    results: list[Tensor] | None,
) -> Work | None:
    """Exchanges what `compute` says of the channel, a ticket and the inputs' values."""
    settle()
    channel = chosen(group)._channel
    arrays = [host(tensor, keep=async_op) for tensor in inputs]
    ticket = channel.ticket()
    work = Work(lambda: compute(channel, ticket, arrays), outputs, results)
    return begin(work, channel, async_op)


def _own(array: np.ndarray) -> np.ndarray:
    """Values that go into another tensor of this process."""
    return np.array(array)


def _mean_is_no_integer(kind: RedOpType, tensor: Tensor) -> None:
    whole = not (tensor.is_floating_point() or tensor.is_complex())
    if kind is RedOpType.AVG and whole:
        name = tensor.type().rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {name}"
        )


def _operation(op: Any, tensor: Tensor, function: str) -> RedOpType:
    kind = kind_of(op)
    check_carried(tensor)
    check_operation(kind, tensor.dtype, function)
    _mean_is_no_integer(kind, tensor)
    return kind


def all_reduce(
    tensor: Tensor,
    op: Operation = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces the members' tensors; each has the result."""
    check_tensor(tensor, "tensor")
    if left_out(group, "all_reduce"):
        return None
    chosen(group)
    kind = _operation(op, tensor, "all_reduce")
    return _run(
        group,
        async_op,
        [tensor],
        lambda channel, ticket, arrays: [channel.all_reduce(ticket, kind, arrays[0])],
        [tensor],
        [tensor],
    )


def all_reduce_coalesced(
    tensors: Tensor | list[Tensor],
    op: Operation = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """`all_reduce` of several tensors of one dtype, in one exchange."""
    _may_go("all_reduce_coalesced")
    several = [tensors] if isinstance(tensors, Tensor) else tensors
    check_tensors(several, "tensor")
    check_dtypes(*several)
    if left_out(group, "all_reduce_coalesced"):
        return None
    chosen(group)
    kind = _operation(op, several[0], "all_reduce")
    ends = np.cumsum([tensor.numel() for tensor in several])[:-1]

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        flat = np.concatenate([array.reshape(-1) for array in arrays])
        return np.split(channel.all_reduce(ticket, kind, flat), ends)

    return _run(group, async_op, several, compute, several, several)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Operation = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces the members' tensors; one has the result, the others keep theirs."""
    check_tensor(tensor, "tensor")
    if left_out(group, "reduce"):
        return None
    root = root_of("reduce", dst, group_dst, group)
    kind = _operation(op, tensor, "reduce")

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        found = channel.reduce(ticket, kind, arrays[0], root)
        return None if found is None else [found]

    return _run(group, async_op, [tensor], compute, [tensor], [tensor])


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives one member's tensor to all."""
    check_tensor(tensor, "tensor")
    if left_out(group, "broadcast"):
        return None
    root = root_of("broadcast", src, group_src, group)

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        found = channel.broadcast(ticket, arrays[0], root)
        return None if channel.me == root else [found]

    return _run(group, async_op, [tensor], compute, [tensor], [tensor])


def all_gather(
    tensor_list: list[Tensor],
    tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives the tensors of all members to all, as a list."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    check_dtypes(*tensor_list, tensor)
    if left_out(group, "all_gather"):
        return None
    check_length(tensor_list, chosen(group).size(), "allgather")
    check_shapes(tensor_list, tensor, "allgather")

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        return channel.all_gather(ticket, _own(arrays[0]))

    return _run(group, async_op, [tensor], compute, tensor_list, tensor_list)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]],
    input_tensor_list: list[Tensor],
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """`all_gather` of several tensors, in one exchange."""
    _may_go("all_gather_coalesced")
    check_tensors(input_tensor_list, "tensor_list")
    if left_out(group, "all_gather_coalesced"):
        return None
    count = chosen(group).size()
    if not isinstance(output_tensor_lists, list):
        raise TypeError(
            "Invalid function argument: output_tensor_lists should be a list"
        )
    for tensors in output_tensor_lists:
        check_tensors(tensors, "output_tensor_lists")
    outputs = [each for tensors in output_tensor_lists for each in tensors]
    check_length(output_tensor_lists, count, "allgather_coalesced")

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        rows = [channel.all_gather(ticket, _own(array)) for array in arrays]
        return [row[member] for member in range(count) for row in rows]

    return _run(group, async_op, input_tensor_list, compute, outputs, outputs)


def _shape_of_each(output: Tensor, given: Tensor, count: int) -> None:
    """RuntimeError if an output has no room for one input of each member."""
    if output.dtype != given.dtype:
        raise RuntimeError(
            "ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected "
            f"{given.dtype}, got {output.dtype})"
        )
    rows = output.shape[0] if output.ndim else 0
    chunk = -(-rows // count)
    for index in range(count):
        size = max(0, min(chunk, rows - index * chunk))
        shape = (size, *output.shape[1:])
        if shape != tuple(given.shape):
            expected, got = (", ".join(map(str, s)) for s in (given.shape, shape))
            raise RuntimeError(
                f"ProcessGroupGloo::allgather: invalid tensor size at index {index} "
                f"(expected ({expected}), got ({got}))"
            )


def all_gather_single(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Gives the tensors of all members to all, as one tensor: along dimension 0."""
    check_tensor(input_tensor, "input_tensor")
    check_tensor(output_tensor, "output_tensor")
    if left_out(group, "all_gather_single"):
        return None
    _shape_of_each(output_tensor, input_tensor, chosen(group).size())

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        return [np.concatenate(channel.all_gather(ticket, arrays[0]))]

    outputs = [output_tensor]
    return _run(group, async_op, [input_tensor], compute, outputs, outputs)


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
    """Gives the tensors of all members to one: member 0, if none is named."""
    check_tensor(tensor, "tensor")
    if gather_list:
        check_tensors(gather_list, "gather_list")
    outputs = gather_list or []
    check_dtypes(tensor, *outputs)
    if left_out(group, "gather"):
        return None
    root = _first_if_none("gather", dst, group_dst, group)
    _only_at_root("gather", outputs, chosen(group), root)
    if outputs:
        check_shapes(outputs, tensor, "gather")

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        return channel.gather(ticket, _own(arrays[0]), root)

    return _run(group, async_op, [tensor], compute, outputs, outputs)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives each member a tensor of one member's list: member 0's, if none is named."""
    check_tensor(tensor, "tensor")
    if scatter_list:
        check_tensors(scatter_list, "scatter_list")
    inputs = scatter_list or []
    check_dtypes(tensor, *inputs)
    if left_out(group, "scatter"):
        return None
    root = _first_if_none("scatter", src, group_src, group)
    _only_at_root("scatter", inputs, chosen(group), root)
    if inputs:
        check_shapes(inputs, tensor, "scatter")

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        *each, like = arrays
        return [_own(channel.scatter(ticket, each, like, root))]

    return _run(group, async_op, [*inputs, tensor], compute, [tensor], [tensor])


def _first_if_none(
    function: str, rank: int | None, of_group: int | None, group: Any
) -> int:
    chosen(group)
    if rank is None and of_group is None:
        return 0
    return root_of(function, rank, of_group, group)


_LISTS = {
    "gather": ("gather_list", "destination"),
    "scatter": ("scatter_list", "source"),
}


def _only_at_root(
    function: str, tensors: list[Tensor], group: ProcessGroup, root: int
) -> None:
    name, role = _LISTS[function]
    if group.rank() == root:
        if not tensors:
            raise ValueError(f"Argument ``{name}`` must be specified on {role} rank.")
        check_length(tensors, group.size(), function)
    elif tensors:
        raise ValueError(
            f"Argument ``{name}`` must NOT be specified on non-{role} ranks."
        )


def reduce_scatter(
    output: Tensor,
    input_list: list[Tensor],
    op: Operation = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces lists of tensors; each member has one of the results."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    check_dtypes(output, *input_list)
    if left_out(group, "reduce_scatter"):
        return None
    check_length(input_list, chosen(group).size(), "reduce_scatter")
    for each in input_list:
        if each.shape != output.shape:
            raise RuntimeError(
                f"reduce_scatter: the output is of shape {tuple(output.shape)}, an "
                f"input of {tuple(each.shape)}"
            )
    kind = _operation(op, output, "all_reduce")

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        return [channel.reduce_scatter(ticket, kind, arrays)]

    return _run(group, async_op, input_list, compute, [output], None)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Operation = ReduceOp.SUM,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces tensors; each member has its part of the result, along dimension 0."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    if left_out(group, "reduce_scatter_single"):
        return None
    count = chosen(group).size()
    kind = _operation(op, output, "all_reduce")
    check_dtypes(output, input)
    rows = [tensor.shape[0] if tensor.ndim else 1 for tensor in (output, input)]
    if rows[0] * count != rows[1] or output.shape[1:] != input.shape[1:]:
        raise RuntimeError(
            f"reduce_scatter_single: an input of shape {tuple(input.shape)} is not "
            f"{count} times as long as the output, of shape {tuple(output.shape)}"
        )

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        pieces = np.split(arrays[0].reshape(-1), count)
        return [channel.reduce_scatter(ticket, kind, pieces)]

    return _run(group, async_op, [input], compute, [output], None)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,
    op: Operation = ReduceOp.SUM,
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
    if left_out(group, "all_to_all"):
        return None
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    check_dtypes(*output_tensor_list, *input_tensor_list)
    count = chosen(group).size()
    for side, tensors in (("input", input_tensor_list), ("output", output_tensor_list)):
        if len(tensors) != count:
            raise RuntimeError(
                f"ProcessGroupGloo::alltoall: {side} tensor list size {len(tensors)} "
                f"does not match world size {count}"
            )
    sizes = [tensor.numel() for tensor in output_tensor_list]

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        arrays[channel.me] = _own(arrays[channel.me])
        if arrays[channel.me].size != sizes[channel.me]:
            raise RuntimeError(
                "ProcessGroupGloo::alltoall: input and output tensors must have the "
                "same size"
            )
        return channel.all_to_all(ticket, arrays, sizes)

    outputs = output_tensor_list
    return _run(group, async_op, input_tensor_list, compute, outputs, outputs)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: ProcessGroup | None = None,
    async_op: bool = False,
) -> Work | None:
    """Each member gives a piece of its tensor, along dimension 0, to each."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    check_dtypes(output, input)
    if left_out(group, "all_to_all_single"):
        return None
    if not input.is_contiguous():
        raise ValueError("Tensors must be contiguous")
    count = chosen(group).size()
    outgoing = _rows(input_split_sizes, input, count)
    incoming = _rows(output_split_sizes, output, count)
    row = int(np.prod(output.shape[1:]))
    ends = np.cumsum(outgoing)[:-1]

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        pieces = np.split(arrays[0], ends)
        sizes = [length * row for length in incoming]
        return [np.concatenate(channel.all_to_all(ticket, pieces, sizes))]

    return _run(group, async_op, [input], compute, [output], [output])


def _rows(sizes: list[int] | None, tensor: Tensor, count: int) -> list[int]:
    """How many rows of a tensor belong to each member."""
    if not sizes:
        if tensor.shape[0] % count:
            raise RuntimeError(
                "Tensor's dim 0 does not divide equally across group size"
            )
        return [tensor.shape[0] // count] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != tensor.shape[0]:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(sizes)


def barrier(
    group: ProcessGroup | None = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits for all members."""
    if left_out(group, "barrier"):
        return None
    limit = None if timeout is None else timeout.total_seconds()

    def compute(channel: Channel, ticket: int, arrays: list[np.ndarray]) -> Arrays:
        return channel.barrier(ticket, limit)

    return _run(group, async_op, [], compute, [], [])


def monitored_barrier(
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    wait_all_ranks: bool = False,
) -> None:
    """Waits for all members; member 0 says which one did not come.

    RuntimeError of member 0 for the first that is late, or for all with
    `wait_all_ranks`; of the others when member 0 does not answer.
    """
    if left_out(group, "monitored_barrier"):
        return
    if get_backend(group) != Backend.GLOO:
        raise ValueError("monitored_barrier is only implemented for GLOO backend.")
    settle()
    channel = chosen(group)._channel
    limit = channel.timeout if timeout is None else timeout.total_seconds()
    channel.monitored_barrier(channel.ticket(), limit, wait_all_ranks)


def _may_go(name: str) -> None:
    warn(
        f"`torch.distributed.{name}` will be deprecated. If you must use it, please "
        "revisit our documentation later at https://pytorch.org/docs/main/"
        "distributed.html#collective-functions",
        FutureWarning,
    )


def _renamed(old: str, new: str) -> None:
    warn(
        f"`torch.distributed.{old}` is deprecated. Please use "
        f"`torch.distributed.{new}` instead.",
        FutureWarning,
    )
