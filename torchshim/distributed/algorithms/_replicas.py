"""How the modules of `DistributedDataParallel` in several processes are kept alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._tensor import Tensor
from torchshim.distributed._checks import host
from torchshim.distributed._objects import broadcast_object_list
from torchshim.distributed._reductions import RedOpType
from torchshim.distributed._work import write
from torchshim.distributed.algorithms.join import Join, JoinHook, _JoinConfig

__all__ = ["Replica", "ReplicaJoinHook", "broadcast_all"]


def broadcast_all(tensors: Sequence[Tensor], group: Any, root: int) -> None:
    """Gives one member's tensors to all, in one exchange."""
    channel = group._channel
    values = [np.ascontiguousarray(host(t, any_dtype=True)) for t in tensors]
    flat = [value.reshape(-1).view(np.uint8) for value in values]
    joined = np.concatenate(flat) if flat else np.empty(0, np.uint8)
    found = channel.broadcast(channel.ticket(), joined, root)
    if channel.me == root:
        return
    pieces = np.split(found, np.cumsum([each.size for each in flat])[:-1])
    for tensor, value, piece in zip(tensors, values, pieces, strict=False):
        write(tensor, piece.copy().view(value.dtype))


def _number(group: Any, kind: RedOpType, own: int) -> int:
    channel = group._channel
    return int(channel.all_reduce(channel.ticket(), kind, np.array([own]))[0])


class Replica:
    """A process's copy of a module: begins as the first process's, and follows it."""

    def __init__(self, ddp: Any, sync: bool) -> None:
        self.ddp, self.group = ddp, ddp.process_group
        if sync:
            self._check_shapes()
            self.become(0)

    def _named(self, of: Any) -> list[Tensor]:
        ignored = getattr(self.ddp.module, "_ddp_params_and_buffers_to_ignore", ())
        return [each for name, each in of if name not in ignored]

    def _parameters(self) -> list[Tensor]:
        return self._named(self.ddp.module.named_parameters())

    def _buffers(self) -> list[Tensor]:
        return self._named(self.ddp.module.named_buffers())

    def _check_shapes(self) -> None:
        """RuntimeError where the first process's parameters are of other shapes."""
        own = [tuple(p.shape) for p in self._parameters()]
        told: list[Any] = [own]
        broadcast_object_list(told, group=self.group, group_src=0)
        rank, theirs = self.group.rank(), told[0]
        if len(own) != len(theirs):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank {rank} has "
                f"{len(own)} params, while rank 0 has inconsistent {len(theirs)} "
                "params."
            )
        for i, (mine, first) in enumerate(zip(own, theirs, strict=True)):
            if mine != first:
                raise RuntimeError(
                    f"[{rank}]: params[{i}] in this process with sizes {list(mine)} "
                    "appears not to match sizes of the same param in process 0."
                )

    def become(self, root: int) -> None:
        """Takes over a member's parameters and buffers."""
        broadcast_all([*self._parameters(), *self._buffers()], self.group, root)

    def common(self, candidate: bool) -> int:
        """The last of the members that may be the one to follow."""
        own = self.group.rank() if candidate else -1
        found = _number(self.group, RedOpType.MAX, own)
        if found == -1:
            raise ValueError(
                "BUG! Expected rank_cond to be true for at least one process. This "
                "indicates a bug in PyTorch, please report an issue."
            )
        return found

    def joining(self) -> bool:
        """Whether the module is in a `Join`."""
        config: _JoinConfig | None = self.ddp._join_config
        return config is not None and config.enable

    def sync_buffers(self, candidate: bool) -> None:
        """Takes over the buffers of the first process, or of one that has data."""
        ddp = self.ddp
        buffers = self._buffers()
        if not (ddp.require_forward_param_sync and ddp.broadcast_buffers and buffers):
            return
        root = self.common(candidate) if self.joining() else 0
        broadcast_all(buffers, self.group, root)

    def sums_follow(self, own: bool) -> bool:
        """Whether the gradients of this turn travel."""
        return _number(self.group, RedOpType.SUM, int(own)) > 0

    def before_forward(self) -> None:
        """What members do together when one of them begins a forward."""
        self.ddp._reducer.divisor = None
        if self.joining():
            work = Join.notify_join_context(self.ddp)
            if work is not None and not self.ddp._divide_by_initial_world_size:
                work.wait()
                self.ddp._reducer.divisor = int(work.result()[0].item())
        self.sync_buffers(True)
        if self.joining():
            self.sums_follow(self.ddp.require_backward_grad_sync)


class ReplicaJoinHook(JoinHook):
    """Takes part in the forwards and backwards of the members that have data."""

    def __init__(self, ddp: Any, divide_by_initial_world_size: bool = True) -> None:
        self.ddp, self.replica = ddp, ddp._replica
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """One turn of the others."""
        self.replica.sync_buffers(False)
        follows = self.replica.sums_follow(False)
        self.ddp.require_forward_param_sync = follows
        if follows:
            self.ddp._reducer.match()

    def post_hook(self, is_last_joiner: bool) -> None:
        """Takes over what the member has that had data for longest."""
        self.replica.become(self.replica.common(is_last_joiner))
