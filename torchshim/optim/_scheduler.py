"""`LRScheduler`: what every learning rate schedule is built on."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any
from weakref import ref

from torchshim import _warnings as warnings
from torchshim._tensor import Tensor
from torchshim.optim._rules import number
from torchshim.optim.optimizer import Optimizer

_HOW_TO_ADJUST = (
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being "
    "deprecated where possible. Please use `scheduler.step()` to step the scheduler. "
    "During the deprecation, if epoch is different from None, the closed form is used "
    "instead of the new chainable form, where available. Please open an issue if you "
    "are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)


def copied(value: Any) -> Any:
    """A learning rate that later changes of the group's own do not reach."""
    return value.clone() if isinstance(value, Tensor) else value


def options(optimizer: Any, key: str) -> list[Any]:
    """An option of every group."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_option(group: dict[str, Any], key: str, value: Any) -> None:
    """Sets an option of a group; a tensor keeps its identity."""
    if isinstance(group[key], Tensor):
        group[key].fill_(number(value))
    else:
        group[key] = value


def per_group(name: str, optimizer: Any, value: Any) -> list[Any]:
    """One value for each group, from one for all or from a list."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {groups}."
        )
    return [copied(v) for v in value]


def check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _note_steps(optimizer: Any) -> None:
    """Has the optimizer remember that its `step` was called."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    plain = optimizer.step.__func__
    weak = ref(optimizer)

    @wraps(plain)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner: Any = weak()
        owner._opt_called = True
        return plain.__get__(owner, type(owner))(*args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


class LRScheduler:
    """The base of all schedules: it sets the learning rates of an optimizer's groups.

    A subclass defines `get_lr`, which gives the next rates. Follows
    ``torch.optim.lr_scheduler.LRScheduler``.

    >>> import torchshim as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _last_lr: list[Any]

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when "
                    "resuming scheduler with last_epoch >= 0.\nThis typically happens "
                    "when:\n1. You're trying to resume training from a checkpoint but "
                    "haven't properly loaded the optimizer state\n2. You're using "
                    "last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list[Any] = options(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer. Follows ``LRScheduler.state_dict``."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates as set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The next rates, one for each group."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Goes one step on, or (deprecated) to `epoch`, and sets the rates.

        Warns when it is called before the optimizer's first step.
        """
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            text = (
                "Seems like `optimizer.step()` has been overridden after learning rate "
                "scheduler initialization. Please, make sure to call "
                "`optimizer.step()` before `lr_scheduler.step()`. See more details at "
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            text = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In "
                "PyTorch 1.1.0 and later, you should call them in the opposite order: "
                "`optimizer.step()` before `lr_scheduler.step()`.  Failure to do this "
                "will result in PyTorch skipping the first value of the learning rate "
                "schedule. See more details at "
            )
        else:
            return
        warnings.warn(text + _HOW_TO_ADJUST, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._asking():
            closed_form = getattr(self, "_get_closed_form_lr", None)
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                rates = self.get_lr() if closed_form is None else closed_form()
        self._set(rates)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _set(self, rates: Sequence[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = options(self.optimizer, "lr")

    # -- for schedules -----------------------------------------------------------------

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def _unchanged(self) -> list[Any]:
        return options(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class LambdaSchedule(LRScheduler):
    """A schedule made of one function a group, kept out of the state dict."""

    lr_lambdas: list[Callable[[int], float]]

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * groups
        elif len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        self._check_lambdas()
        super().__init__(optimizer, last_epoch)

    def _check_lambdas(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of callable objects what they hold."""
        state = {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("optimizer", "lr_lambdas")
        }
        state["lr_lambdas"] = [saved_callable(fn) for fn in self.lr_lambdas]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave; functions stay those of this schedule."""
        saved = state_dict["lr_lambdas"]
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for fn, held in zip(self.lr_lambdas, saved, strict=False):
            if held is not None:
                fn.__dict__.update(held)


def saved_callable(fn: Any) -> dict[str, Any] | None:
    """What a callable object holds; nothing for a plain function."""
    return None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()
