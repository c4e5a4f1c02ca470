"""Averages of weights: SWA and EMA."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import torchshim
from torchshim._counter import advance, count_of
from torchshim.nn.modules.batchnorm import _BatchNorm
from torchshim.nn.modules.module import Module
from torchshim.optim._scheduler import LRScheduler, per_group
from torchshim.optim._scheduler import per_group as _format_param  # noqa: F401

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


# What averages several parameters at once takes.
PARAM_LIST = tuple[torchshim.Tensor, ...] | list[torchshim.Tensor]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] "
            "range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """An exponential moving average, for `AveragedModel`'s `multi_avg_fn`.

    ValueError for a `decay` outside [0, 1]. Follows
    ``torch.optim.swa_utils.get_ema_multi_avg_fn``.

    >>> import torchshim as torch
    >>> averages = [torch.ones(1)]
    >>> get_ema_multi_avg_fn(0.75)(averages, [torch.zeros(1)], 1)
    >>> averages
    [tensor([0.7500])]
    """
    _check_decay(decay)

    @torchshim.no_grad()
    def ema_update(ema_params: Any, current_params: Any, _: Any) -> None:
        for average, current in zip(ema_params, current_params, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The mean of all weights so far, for `AveragedModel`'s `multi_avg_fn`.

    Follows ``torch.optim.swa_utils.get_swa_multi_avg_fn``.
    """

    @torchshim.no_grad()
    def swa_update(averages: Any, current_params: Any, num_averaged: Any) -> None:
        part: Any = 1 / (num_averaged + 1)
        for average, current in zip(averages, current_params, strict=True):
            if average.is_floating_point() or average.is_complex():
                weight = part
                if isinstance(part, torchshim.Tensor):
                    weight = part.to(average.dtype)
                average.lerp_(current, weight)
            elif isinstance(num_averaged, torchshim.Tensor):
                average.addcdiv_(current - average, num_averaged + 1)
            else:
                average.add_(current - average, alpha=part)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """An exponential moving average, for `AveragedModel`'s `avg_fn`.

    Follows ``torch.optim.swa_utils.get_ema_avg_fn``.
    """
    _check_decay(decay)

    @torchshim.no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """The mean of all weights so far, for `AveragedModel`'s `avg_fn`.

    Follows ``torch.optim.swa_utils.get_swa_avg_fn``.
    """

    @torchshim.no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose weights are averages of the model's.

    `avg_fn` gives one parameter's new average, `multi_avg_fn` updates lists of them;
    without either it is the mean. `use_buffers`: buffers are averaged, too, rather
    than copied. Follows ``torch.optim.swa_utils.AveragedModel``.

    >>> import torchshim as torch
    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 2.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.item()
    1.5
    """

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError(
                "Only one of avg_fn and multi_avg_fn should be provided"
            )
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer(
            "n_averaged",
            torchshim.tensor(0, dtype=torchshim.int64, device=device),
        )
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Takes the model's weights into the averages."""
        ours: Iterable[Any] = self.parameters()
        theirs: Iterable[Any] = model.parameters()
        if self.use_buffers:
            ours = itertools.chain(self.module.parameters(), self.module.buffers())
            theirs = itertools.chain(model.parameters(), model.buffers())
        pairs = [
            (average.detach(), current.detach().to(average.device))
            for average, current in zip(ours, theirs, strict=False)
        ]
        if count_of(self.n_averaged) == 0:
            for average, current in pairs:
                average.copy_(current)
        elif self.avg_fn is not None:
            for average, current in pairs:
                count = self.n_averaged.to(average.device)
                average.copy_(self.avg_fn(average, current, count))
        else:
            groups: dict[Any, list[Any]] = {}
            for pair in pairs:
                groups.setdefault((pair[0].device, pair[0].dtype), []).append(pair)
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            for (device, dtype), group in groups.items():
                averages, currents = map(list, zip(*group, strict=True))
                count = self.n_averaged.to(device)
                if self.multi_avg_fn or dtype.is_floating_point or dtype.is_complex:
                    update(averages, currents, count)
                    continue
                for average, current in group:  # integers, one by one
                    average.copy_(get_swa_avg_fn()(average, current, count))
        if not self.use_buffers:
            buffers = zip(self.module.buffers(), model.buffers(), strict=True)
            for average, current in buffers:
                average.detach().copy_(current.detach().to(average.device))
        advance([self.n_averaged])


@torchshim.no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch norms anew, over one pass of `loader`.

    Of batches that are lists or tuples the first element is the input. Follows
    ``torch.optim.swa_utils.update_bn``.
    """
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None
    for batch in loader:
        input = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(input if device is None else input.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rates to `swa_lr` over `anneal_epochs`, and keeps them there.

    `anneal_strategy`: "cos" or "linear". Follows ``torch.optim.swa_utils.SWALR``.

    >>> import torchshim as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> schedule = SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(
        self,
        optimizer: Any,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self._set_anneal_func(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    @staticmethod
    def _linear_anneal(t: float) -> float:
        return t

    @staticmethod
    def _cosine_anneal(t: float) -> float:
        return (1 - math.cos(math.pi * t)) / 2

    def _set_anneal_func(self, anneal_strategy: str) -> None:
        self._anneal_strategy = anneal_strategy
        cosine = anneal_strategy == "cos"
        self.anneal_func = self._cosine_anneal if cosine else self._linear_anneal

    def _alpha(self, step: int) -> float:
        """How far the rates have come after a number of steps, from 0 to 1."""
        return self.anneal_func(max(0, min(1, step / max(1, self.anneal_epochs))))

    def get_lr(self) -> list[Any]:
        """The next rates, one for each group."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, alpha = self._alpha(step - 1), self._alpha(step)
        rates = []
        for group in self.optimizer.param_groups:
            # The rate from which the annealing started.
            start = goal = group["swa_lr"]
            if before != 1:
                start = (group["lr"] - before * goal) / (1 - before)
            rates.append(goal * alpha + start * (1 - alpha))
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the function."""
        kept = ("optimizer", "anneal_func")
        return {k: v for k, v in self.__dict__.items() if k not in kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)
        self._set_anneal_func(self._anneal_strategy)
