"""Training on unequal amounts of data: the only member of a group joins last.

https://docs.pytorch.org/docs/2.13/distributed.algorithms.join.html
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from torchshim.distributed._collectives import Work
from torchshim.distributed._group import chosen
from torchshim.nn.parallel.distributed import DistributedDataParallel

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a joinable does while others go on (`main_hook`), and at the end."""

    def main_hook(self) -> None:
        """Is called in each turn that others still make; there are no others."""

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
    """Waits at its end until all members of the group are there: there is one.

    With `enable=False` no hooks are called. `throw_on_early_termination` is about
    members that still have data when one has none.
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
        for hook in self._join_hooks:
            hook.post_hook(True)

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
        chosen(joinable.join_process_group)
        return Work()
