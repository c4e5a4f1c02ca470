"""Optimizers that share their work among the members of a group.

https://docs.pytorch.org/docs/2.13/distributed.optim.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._errors import Unsupported, unsupported
from torchshim._tensor import Tensor
from torchshim.distributed import _group
from torchshim.distributed._objects import gather_object
from torchshim.distributed.algorithms._replicas import broadcast_all
from torchshim.distributed.algorithms.join import Join, Joinable, JoinHook
from torchshim.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

_REASON = "it needs calls of functions on other processes"
DistributedOptimizer = unsupported("distributed.optim.DistributedOptimizer", _REASON)
PostLocalSGDOptimizer = unsupported(
    "distributed.optim.PostLocalSGDOptimizer", "local SGD is not implemented"
)


def _tensors_or_groups(params: Any) -> list[Any]:
    kinds = "`params` argument should be an iterable of Tensors"
    if isinstance(params, Tensor):
        raise TypeError(f"{kinds}, but got {params.type()}")
    try:
        found = list(params)
    except TypeError as error:
        kind = type(params).__name__
        raise TypeError(f"{kinds} or dicts, but got {kind}") from error
    if not found:
        raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
    for each in (Tensor, dict):
        if all(isinstance(param, each) for param in found):
            return found
    raise TypeError(f"{kinds} or dicts")


class ZeroJoinHook(JoinHook):
    """Steps with the members that have data, for this member's share."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self.zero = zero

    def main_hook(self) -> None:
        """One step."""
        self.zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is spread over the members of a group.

    Each member has an `optimizer_class`, `optim`, for its share of the parameters: the
    largest first, to the member with the least so far. After a step each gives its
    share to all. As in PyTorch, the groups of the two agree after each step. Parameters
    are not bucketed, so that `parameters_as_bucket_view` has no effect;
    `overlap_with_ddp` is not supported.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise Unsupported(
                "ZeroRedundancyOptimizer: overlap_with_ddp is not supported"
            )
        found = _tensors_or_groups(params)
        self.initialized = False
        Optimizer.__init__(self, found, defaults)
        Joinable.__init__(self)
        self.process_group = _group.chosen(process_group)
        self.world_size = self.process_group.size()
        self.rank = self.process_group.rank()
        self.global_rank = _group.get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        # For each member, its parameters of each group.
        self._shares: list[list[list[Tensor]]] = [[] for _ in range(self.world_size)]
        self._sizes = [0] * self.world_size
        for group in self.param_groups:
            self._share_out(group["params"])
        own = zip(self.param_groups, self._shares[self.rank], strict=True)
        groups = [{**group, "params": share} for group, share in own]
        self.optim = optimizer_class(groups, **defaults)
        _agree(self.optim.param_groups, self.param_groups)
        self._all_state_dicts: list[dict[str, Any]] = []
        self.initialized = True

    def _share_out(self, params: list[Tensor]) -> None:
        for share in self._shares:
            share.append([])
        if self.world_size == 1:  # in their order, as nobody sees another
            self._shares[0][-1] += params
            return
        for param in sorted(params, key=lambda p: p.numel(), reverse=True):
            rank = self._sizes.index(min(self._sizes))
            self._shares[rank][-1].append(param)
            self._sizes[rank] += param.numel()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """One more group of parameters."""
        super().add_param_group(param_group)
        if self.initialized:
            group = self.param_groups[-1]
            self._share_out(group["params"])
            own = self._shares[self.rank][-1]
            self.optim.add_param_group({**group, "params": list(own)})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """One step of `optim`, with the options that the groups here have."""
        Join.notify_join_context(self)
        _agree(self.param_groups, self.optim.param_groups)
        if closure is not None:
            kwargs["closure"] = closure
        loss = self.optim.step(**kwargs)
        self._spread()
        _agree(self.optim.param_groups, self.param_groups)
        return loss

    def _spread(self) -> None:
        """Each member's parameters for all, in one exchange for each member."""
        if self.world_size == 1:
            return
        for rank, share in enumerate(self._shares):
            params = [param for group in share for param in group]
            if params:
                broadcast_all(params, self.process_group, rank)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What `Join` calls: steps with the others."""
        return ZeroJoinHook(self)

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group that shares the state."""
        return self.process_group

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collects the state of all members at one, for its `state_dict`."""
        _agree(self.param_groups, self.optim.param_groups)
        found: list[Any] | None = None
        if to == self.rank:
            found = [None] * self.world_size
        own = self.optim.state_dict()
        gather_object(own, found, group=self.process_group, group_dst=to)
        self._all_state_dicts = found or []

    def state_dict(self) -> dict[str, Any]:
        """The groups, and the state that `consolidate_state_dict` collected last."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if "
                "you meant to save the global state."
            )
        places = {id(param): i for i, param in enumerate(self._parameters())}
        state = {}
        for told, share in zip(self._all_state_dicts, self._shares, strict=True):
            for group, params in zip(told["param_groups"], share, strict=True):
                for number, param in zip(group["params"], params, strict=True):
                    if number in told["state"]:
                        state[places[id(param)]] = told["state"][number]
        return {**super().state_dict(), "state": dict(sorted(state.items()))}

    def _parameters(self) -> list[Tensor]:
        return [param for group in self.param_groups for param in group["params"]]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state that `state_dict` gave.

        The state of parameters that are not this member's becomes None in the
        dictionary, as in PyTorch.
        """
        params = self._parameters()
        own = {id(p): p for share in self._shares[self.rank] for p in share}
        state = state_dict["state"]
        for number in state:
            if id(params[number]) not in own:
                state[number] = None
        numbers = {id(p): number for number, p in enumerate(params)}
        mine, count = [], 0
        for group in self.optim.param_groups:
            mine.append(list(range(count, count + len(group["params"]))))
            count += len(group["params"])
        local = {}
        for group, places in zip(self.optim.param_groups, mine, strict=True):
            for param, place in zip(group["params"], places, strict=True):
                if numbers[id(param)] in state:
                    local[place] = state[numbers[id(param)]]
        super().load_state_dict(state_dict)
        _agree(self.param_groups, self.optim.param_groups)
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": places}
            for group, places in zip(self.optim.param_groups, mine, strict=True)
        ]
        self.optim.load_state_dict({"state": local, "param_groups": groups})


def _agree(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    """Gives the groups of `target` the options that those of `source` have."""
    for ours, theirs in zip(source, target, strict=True):
        theirs.update({k: v for k, v in ours.items() if k != "params"})
