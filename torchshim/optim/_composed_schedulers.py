"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from torchshim.optim._plateau import ReduceLROnPlateau
from torchshim.optim._scheduler import LRScheduler, options, set_option

__all__ = ["ChainedScheduler", "SequentialLR"]


class _Composed(LRScheduler):
    _schedulers: Any

    def _check(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name} at index {i} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it "
                    "requires additional kwargs to be specified when calling `step`, "
                    f"but got one at index {i} in the given schedulers sequence."
                )
            if optimizer != scheduler.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, "
                    f"but got scheduler {type(scheduler).__name__} at index {i} has "
                    f"{scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the state dicts of the parts."""
        state = {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("optimizer", "_schedulers")
        }
        state["_schedulers"] = [part.state_dict() for part in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave, and hands the parts theirs."""
        self.__dict__.update(
            {k: v for k, v in state_dict.items() if k != "_schedulers"}
        )
        saved_parts = state_dict["_schedulers"]
        for part, saved in zip(self._schedulers, saved_parts, strict=True):
            part.load_state_dict(saved)


class SequentialLR(_Composed):
    """One schedule after the other, changing at the milestones.

    ValueError where their numbers do not fit or optimizers differ. Follows
    ``torch.optim.lr_scheduler.SequentialLR``.

    >>> import torchshim as torch
    >>> from torchshim.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> parts = [lr_scheduler.ConstantLR(optimizer, 0.5), lr_scheduler.ExponentialLR(
    ...     optimizer, 0.9)]
    >>> lr_scheduler.SequentialLR(optimizer, parts, milestones=[2]).get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Any,
        schedulers: list[Any],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler, but got no "
                "scheduler."
            )
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one "
                "more than the number of milestone points, but got number of "
                f"schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each part took its first step when it was made: undo those, then begin.
        for group in optimizer.param_groups:
            set_option(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes the last step of a schedule's innermost parts back."""
        target = self if sched is None else sched
        if hasattr(target, "_schedulers"):
            for part in target._schedulers:
                self.recursive_undo(part)
        elif hasattr(target, "last_epoch"):
            target.last_epoch -= 1

    def step(self) -> None:
        """Goes one step on, in the schedule whose turn it is."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules, all of which take each step.

    ValueError where there is none or their optimizers differ. Follows
    ``torch.optim.lr_scheduler.ChainedScheduler``.

    >>> import torchshim as torch
    >>> from torchshim.optim import lr_scheduler
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> part = lr_scheduler.ConstantLR(optimizer, 0.5)
    >>> lr_scheduler.ChainedScheduler([part]).get_last_lr()
    [0.5]
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, "
                "but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = options(optimizer, "lr")

    def step(self) -> None:
        """Goes one step on, in every schedule."""
        for part in self._schedulers:
            part.step()
        self._last_lr = options(self._schedulers[-1].optimizer, "lr")
