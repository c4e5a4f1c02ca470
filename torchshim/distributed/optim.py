"""Optimizers that share their work among the members of a group: there is one member.

https://docs.pytorch.org/docs/2.13/distributed.optim.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._errors import Unsupported, unsupported
from torchshim._tensor import Tensor
from torchshim.distributed import _group
from torchshim.distributed.algorithms.join import Joinable, JoinHook
from torchshim.optim import Optimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]

_REASON = "a group has one process"
DistributedOptimizer = unsupported("distributed.optim.DistributedOptimizer", _REASON)
PostLocalSGDOptimizer = unsupported("distributed.optim.PostLocalSGDOptimizer", _REASON)


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


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is spread over the members of a group.

    The only member keeps it all, in `optim`, an `optimizer_class`; as in PyTorch, the
    groups of the two agree after each step. Gradients are not bucketed, so that
    `parameters_as_bucket_view` has no effect; `overlap_with_ddp` is not supported.
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
        self.world_size, self.rank = self.process_group.size(), 0
        self.parameters_as_bucket_view = parameters_as_bucket_view
        groups = [{**group} for group in self.param_groups]
        self.optim = optimizer_class(groups, **defaults)
        _agree(self.optim.param_groups, self.param_groups)
        self._all_state_dicts: list[dict[str, Any]] = []
        self.initialized = True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """One more group of parameters."""
        super().add_param_group(param_group)
        if self.initialized:
            group = self.param_groups[-1]
            self.optim.add_param_group({**group, "params": list(group["params"])})

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """One step of `optim`, with the options that the groups here have."""
        _agree(self.param_groups, self.optim.param_groups)
        if closure is not None:
            kwargs["closure"] = closure
        loss = self.optim.step(**kwargs)
        _agree(self.optim.param_groups, self.param_groups)
        return loss

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What `Join` calls: there is nothing to do for others."""
        return JoinHook()

    @property
    def join_device(self) -> Any:
        """The device of the first parameter."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> Any:
        """The group that shares the state."""
        return self.process_group

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collects the state of all members, for `state_dict`."""
        _agree(self.param_groups, self.optim.param_groups)
        self._all_state_dicts = [self.optim.state_dict()] if to == self.rank else []

    def state_dict(self) -> dict[str, Any]:
        """The groups, and the state that `consolidate_state_dict` collected last."""
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if "
                "you meant to save the global state."
            )
        state = self._all_state_dicts[0]["state"]
        return {**super().state_dict(), "state": state}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state that `state_dict` gave."""
        super().load_state_dict(state_dict)
        self.optim.load_state_dict(state_dict)
        _agree(self.optim.param_groups, self.param_groups)


def _agree(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    """Gives the groups of `target` the options that those of `source` have."""
    for ours, theirs in zip(source, target, strict=True):
        theirs.update({k: v for k, v in ours.items() if k != "params"})
