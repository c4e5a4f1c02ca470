"""Running one scheduler under PyTorch and under torchshim."""

from __future__ import annotations

from typing import Any

import torch

import torchshim
from compat_suite.operators import judging
from compat_suite.operators.judging import Case, attempt
from compat_suite.operators.translation import Translator
from compat_suite.operators.values import attribute

STEPS = 6
OPTIMIZERS = {"SGD": {"lr": 0.05, "momentum": 0.9}, "Adam": {"lr": 0.05}}
#: Beyond which `CyclicLR` and `OneCycleLR` keep functions of their own.
_PLAIN = (bool, int, float, str, list, tuple, dict, type(None))


class Check(judging.Check):
    """The rates, what is kept, and how the other library goes on with that."""

    first = "rates"

    def find(self) -> None:
        attribute(f"optim.{self.entry.name}")

    def of_dtype(self, dtype: str) -> None:
        self.judge([self.case(name, dtype) for name in OPTIMIZERS])
        self.judge([self.exchange(name, dtype) for name in OPTIMIZERS])

    def errors(self) -> None:
        pass

    def case(self, name: str, dtype: str) -> Case:
        def shown(library: Any) -> Any:
            return _Run(library, self.entry, name).steps(STEPS)

        theirs, ours = attempt(shown, torch), attempt(shown, torchshim)
        return Case("rates", dtype, name, theirs, ours, lambda: None)

    def exchange(self, name: str, dtype: str) -> Case:
        def states(library: Any) -> tuple[Any, Any]:
            run = _Run(library, self.entry, name)
            run.steps(3)
            return run.scheduler.state_dict(), run.optimizer.state_dict()

        def gone_on(library: Any, kept: Any) -> Any:
            run = _Run(library, self.entry, name)
            scheduler, optimizer = kept
            run.scheduler.load_state_dict(scheduler)
            run.optimizer.load_state_dict(optimizer)
            return run.steps(3)

        def theirs() -> Any:
            return gone_on(torch, states(torch))

        def ours() -> Any:
            return gone_on(torchshim, Translator()(states(torch)))

        made = attempt(theirs), attempt(ours)
        return Case("exchange", dtype, name, *made, lambda: None)


class _Run:
    """A scheduler of an optimizer of one parameter."""

    def __init__(self, library: Any, entry: Any, name: str) -> None:
        self.parameter = library.nn.Parameter(library.tensor([1.0, -2.0]))
        optimizer = getattr(library.optim, name)
        self.optimizer = optimizer([self.parameter], **OPTIMIZERS[name])
        self.scheduler = entry.make(library.optim.lr_scheduler, self.optimizer)

    def steps(self, count: int) -> dict[str, Any]:
        """What there is after some steps."""
        rates = []
        for _ in range(count):
            self.optimizer.zero_grad()
            loss = (self.parameter**2).sum()
            loss.backward()
            self.optimizer.step()
            plateau = type(self.scheduler).__name__ == "ReduceLROnPlateau"
            self.scheduler.step(*[loss.item()] * plateau)
            rates.append([g["lr"] for g in self.optimizer.param_groups])
        return {
            "rates": rates,
            "last": self.scheduler.get_last_lr(),
            "state": _plain(self.scheduler.state_dict()),
            "parameter": self.parameter.detach().clone(),
        }


def _plain(state: Any) -> Any:
    """A state without the functions in it."""
    if isinstance(state, dict):
        return {k: _plain(v) for k, v in state.items() if isinstance(v, _PLAIN)}
    if isinstance(state, list | tuple):
        return [_plain(v) for v in state if isinstance(v, _PLAIN)]
    return state
