"""Training on unequal amounts of data: who has none takes part in what others do.

https://docs.pytorch.org/docs/2.13/distributed.algorithms.join.html
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import torchshim
from torchshim.distributed._collectives import all_reduce
from torchshim.distributed._group import chosen
from torchshim.distributed._work import Work
from torchshim.nn.parallel.distributed import DistributedDataParallel

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a joinable does while others go on (`main_hook`), and at the end."""

    def main_hook(self) -> None:
        """Is called in each turn that others still make."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Is called when all members have joined."""


class _JoinConfig(NamedTuple):
    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config() -> _JoinConfig:
        """That of a joinable outside of `Join`."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """What can take part in `Join`."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook, from the keyword arguments that `Join` was given."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of collective operations."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of collective operations."""


# It is one without importing this module, which most programs do without.
Joinable.register(DistributedDataParallel)


class Join:
    """Waits at its end until all members of the group are there.

    Until then it calls the hooks of its joinables, once for each turn of the others.
    With `enable=False` no hooks are called. With `throw_on_early_termination` all
    members raise RuntimeError when one has no data any more.
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._join_hooks = [each.join_hook(**kwargs) for each in joinables]
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        for number, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(
                enable, throw_on_early_termination, number == 0
            )
        groups = [each.join_process_group for each in joinables]
        if any(each != groups[0] for each in groups[1:]):
            raise ValueError("Using join context manager with multiple process groups")
        self._process_group = groups[0]
        self._rank = chosen(groups[0]).rank()
        self._device = joinables[0].join_device

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if not self._enable or kind:
            return
        last = True
        while self._others_going_on():
            if self._throw_on_early_termination:
                self._count(1)
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            last = False
        for hook in self._join_hooks:
            hook.post_hook(last)

    def _others_going_on(self) -> int:
        return self._count(0)

    def _count(self, own: int) -> int:
        counted = torchshim.full((1,), float(own))
        all_reduce(counted, group=self._process_group)
        return int(counted.item())

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tells the others, before collective operations, that this one goes on."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the "
                "``Joinable`` constructor"
            )
        config = joinable._join_config
        if not config.is_first_joinable or not config.enable:
            return None
        group = joinable.join_process_group
        work = all_reduce(torchshim.ones(1), group=group, async_op=True)
        if config.throw_on_early_termination:
            ended = torchshim.zeros(1)
            all_reduce(ended, group=group)
            if ended.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across "
                    "all ranks."
                )
        return work
