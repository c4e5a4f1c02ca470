"""Schedules that go up and down: cycles, warm restarts, one cycle."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from torchshim.optim._scheduler import (
    LRScheduler,
    check_optimizer,
    per_group,
    saved_callable,
    set_option,
)

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class _MomentumSchedule(LRScheduler):
    """A schedule that moves the momentum (or beta1) against the learning rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _start_momentum(
        self, base_momentum: Any, max_momentum: Any, last_epoch: int
    ) -> tuple[list[Any], list[Any]]:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option "
                "enabled"
            )
        self.use_beta1 = "betas" in defaults
        base = per_group("base_momentum", self.optimizer, base_momentum)
        top = per_group("max_momentum", self.optimizer, max_momentum)
        if last_epoch == -1:
            for group, low, high in zip(
                self.optimizer.param_groups, base, top, strict=True
            ):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return base, top

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_MomentumSchedule):
    """Rates that go from `base_lr` to `max_lr` and back, in cycles.

    Follows ``torch.optim.lr_scheduler.CyclicLR``.

    >>> import torchshim as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CyclicLR(optimizer, 0.5, 1.5, 2)
    >>> optimizer.step(), schedule.step(), schedule.get_last_lr()
    (None, None, [1.0])
    """

    def __init__(
        self,
        optimizer: Any,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_option(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        if self.mode == "exp_range":
            self._scale_fn_ref: Callable[[float], float] = partial(
                self._exp_range_scale_fn, self.gamma
            )
            self.scale_mode = "iterations"
            return
        if self.mode == "triangular":
            self._scale_fn_ref = self._triangular_scale_fn
        else:
            self._scale_fn_ref = self._triangular2_scale_fn
        self.scale_mode = "cycle"

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def scale_fn(self, x: float) -> float:
        """The height of cycle (or iteration) `x`, relative to the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        position = self.last_epoch / self.total_size
        cycle = math.floor(1 + position)
        x = 1.0 + position - cycle
        if x <= self.step_ratio:
            scale = x / self.step_ratio
        else:
            scale = (x - 1) / (self.step_ratio - 1)
        height = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [
            base + (top - base) * scale * height
            for base, top in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            for group, base, top in zip(
                self.optimizer.param_groups,
                self.base_momentums,
                self.max_momentums,
                strict=True,
            ):
                self._set_momentum(group, top - (top - base) * scale * height)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        custom = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if custom is None else saved_callable(custom)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        held = state_dict.pop("_scale_fn_custom")
        super().load_state_dict(state_dict)
        if held is not None:
            self._scale_fn_custom.__dict__.update(held)
        self._init_scale_fn()


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min`, again and again, each `T_mult` times as long.

    ValueError for lengths that are no positive integers. Follows
    ``torch.optim.lr_scheduler.CosineAnnealingWarmRestarts``.

    >>> import torchshim as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
    >>> optimizer.step(), schedule.step(), schedule.get_last_lr()
    (None, None, [0.5])
    """

    def __init__(
        self,
        optimizer: Any,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type "
                f"{type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        low = self.eta_min
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [low + (base - low) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes one step on, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch >= 0:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            epoch = 0 if epoch is None else epoch
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._asking():
            rates = self.get_lr()
        self._set(rates)

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # The restarts lie at T_0 * (1 + T_mult + T_mult**2 + ...).
            done = epoch / self.T_0 * (self.T_mult - 1) + 1
            n = int(math.log(done, self.T_mult))
            start = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_cur = epoch - start
            self.T_i = self.T_0 * self.T_mult**n


class OneCycleLR(_MomentumSchedule):
    """Up to `max_lr` and down to almost nothing, in one cycle of known length.

    ValueError where that length is missing, or a step beyond it is asked for. Follows
    ``torch.optim.lr_scheduler.OneCycleLR``.

    >>> import torchshim as torch
    >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    >>> schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 50.0, total_steps=9)
    >>> schedule.get_last_lr()
    [2.0]
    """

    # What pickles of older versions of PyTorch have in place of its name.
    anneal_func: Any

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _length(total_steps, epochs, steps_per_epoch)
        rising = float(pct_start * self.total_steps) - 1
        falling = float(2 * pct_start * self.total_steps) - 2
        last = self.total_steps - 1
        if three_phase:
            self._schedule_phases = [
                _phase(rising, "initial_lr", "max_lr", "max", "base"),
                _phase(falling, "max_lr", "initial_lr", "base", "max"),
                _phase(last, "initial_lr", "min_lr", "max", "max"),
            ]
        else:
            self._schedule_phases = [
                _phase(rising, "initial_lr", "max_lr", "max", "base"),
                _phase(last, "max_lr", "min_lr", "base", "max"),
            ]
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(
                f"Expected float between 0 and 1 pct_start, but got {pct_start}"
            )
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                "anneal_strategy must be one of 'cos' or 'linear', instead got "
                f"{anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, top in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal_func(self, start: Any, end: Any, pct: float) -> Any:
        kind = getattr(self, "_anneal_func_type", None)
        if kind is None:
            return self.anneal_func(start, end, pct)
        if kind not in ("cos", "linear"):
            raise ValueError(f"Unknown _anneal_func_type: {kind}")
        return getattr(self, f"_annealing_{kind}")(start, end, pct)

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        return (end - start) * pct + start

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        pct = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(
                self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], pct)
            )
            if self.cycle_momentum:
                first = group[phase["start_momentum"]]
                then = group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(first, then, pct))
        return rates


def _phase(end: float, start_lr: str, end_lr: str, first: str, then: str) -> Any:
    return {
        "end_step": end,
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": f"{first}_momentum",
        "end_momentum": f"{then}_momentum",
    }


def _length(total: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total is not None:
        given = {"total_steps": total}
    elif epochs is not None and steps_per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    else:
        raise ValueError(
            "You must define either total_steps OR (epochs AND steps_per_epoch)"
        )
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())
