"""Messages from one member of a group to another.

Who sends does not wait until its message is received; PyTorch's Gloo does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._tensor import Tensor
from torchshim.distributed._checks import check_tensor, host, left_out
from torchshim.distributed._group import (
    ProcessGroup,
    chosen,
    get_global_rank,
    get_group_rank,
)
from torchshim.distributed._work import Received, Sent, Work, settle

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def member(rank: int | None, of_group: int | None, group: Any) -> int:
    """The member that a call names, by either number. ValueError for none or both."""
    if of_group is None:
        if rank is None:
            raise ValueError("Must specify global_rank or group_rank")
        return get_group_rank(chosen(group), rank)
    if rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    return of_group


def check_destination(to: int, group: ProcessGroup) -> None:
    """ValueError for this process, which cannot send to itself."""
    if to == group.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the "
            "rank of the current process."
        )


def _peer(found: int, group: ProcessGroup) -> int:
    if not 0 <= found < group.size() or found == group.rank():
        raise RuntimeError(f"there is no connection with member {found} of the group")
    return found


def _check_memory(tensor: Tensor) -> None:
    if not tensor.is_contiguous():
        raise RuntimeError("input tensor has to be contiguous")


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Sends a tensor to another member, which may receive it later."""
    if left_out(group, "isend"):
        return None
    to = member(dst, group_dst, group)
    check_tensor(tensor, "tensor")
    _check_memory(tensor)
    settle()
    found = chosen(group)
    found._channel.send(_peer(to, found), tag, host(tensor, any_dtype=True))
    return Sent()


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Begins to receive a tensor: from any other member, if none is named."""
    check_tensor(tensor, "tensor")
    if left_out(group, "irecv"):
        return None
    _check_memory(tensor)
    settle()
    found = chosen(group)
    if src is None and group_src is None:
        sources = found._channel.others
    else:
        sources = [_peer(member(src, group_src, found), found)]
    return Received(found._channel, sources, tag, tensor)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends a tensor to another member."""
    to = member(dst, group_dst, group)
    check_destination(to, chosen(group))
    work = isend(tensor, group=group, tag=tag, group_dst=to)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: ProcessGroup | None = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives a tensor: the number, among all processes, of who sent it."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return get_global_rank(chosen(group), work.source_rank())


class P2POp:
    """A call of `isend` or `irecv` for `batch_isend_irecv`."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: ProcessGroup | None = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type "
                "``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = chosen(group)
        self.group_peer = member(peer, group_peer, self.group)
        self.peer = get_global_rank(self.group, self.group_peer)

    def __repr__(self) -> str:
        mine, other = self.group.rank(), self.group_peer
        ends = (mine, other) if self.op is isend else (other, mine)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, "
            f"group_src={ends[0]}, group_dst={ends[1]},  {self.tensor.shape}, "
            f"{self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begins all of these: their handles."""
    if not isinstance(p2p_op_list, list) or not all(
        isinstance(each, P2POp) for each in p2p_op_list
    ):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    group = p2p_op_list[0].group
    if any(each.group is not group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    begun = [
        each.op(each.tensor, None, each.group, each.tag, each.group_peer)
        for each in p2p_op_list
    ]
    return [work for work in begun if work is not None]
