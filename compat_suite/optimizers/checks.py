"""Running one optimizer of the database under PyTorch and under torchshim.

Both begin with the same parameters and take the same steps; what is there afterwards is
compared, with PyTorch's own steps in float64 as the judge of what rounding may do.
"""

from __future__ import annotations

import copy
import pickle
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum

import torchshim
from compat_suite.operators import judging
from compat_suite.operators.judging import Case, Options, attempt
from compat_suite.operators.results import Entry
from compat_suite.operators.translation import Translator, tensor
from compat_suite.operators.values import attribute, dtype_name, to_numpy
from compat_suite.optimizers import database, schedulers

STEPS = 6


def check(entry: Any, options: Options, started: Callable[[str], None]) -> Entry:
    """Everything about one entry; `started` is told what is being checked."""
    kind = schedulers.Check if isinstance(entry, database.Scheduler) else _Check
    return kind(database, entry, options, started).run()


class _Check(judging.Check):
    first = "steps"

    def find(self) -> None:
        self.ours = attribute(f"optim.{self.entry.name}")

    def of_dtype(self, dtype: str) -> None:
        found = database.configurations(self.entry, self.options.samples)
        for kwargs in found:
            self.started(f"{dtype} forward")
            self.judge(list(self.of_configuration(dtype, kwargs)))
            if self.entry.supports_param_groups and kwargs is not found[-1]:
                self.judge([self.case("groups", dtype, kwargs, _groups)])
        if dtype == database.scheduled(self.entry):
            self.judge(list(self.schedulers(dtype)))

    def of_configuration(self, dtype: str, kwargs: dict[str, Any]) -> Iterator[Case]:
        for flags in database.flags(self.entry):
            # A column of the table for each flag.
            kind = next((k for k, on in flags.items() if on), "steps")
            yield self.case(kind, dtype, kwargs | flags, _steps)
        if "differentiable" in self.entry.supported_impls:
            flags = {"differentiable": True}
            yield self.case("differentiable", dtype, kwargs | flags, _differentiate)
        yield self.case("state", dtype, kwargs, _copies)
        yield self.case("repr", dtype, kwargs, _described)
        yield self.exchange(dtype, kwargs)

    def case(
        self,
        kind: str,
        dtype: str,
        kwargs: dict[str, Any],
        show: Callable[[_Run], Any],
    ) -> Case:
        return Case(
            kind,
            dtype,
            _text(kwargs),
            attempt(lambda: show(self.of_torch(dtype, kwargs))),
            attempt(lambda: show(self.of_torchshim(dtype, kwargs))),
            lambda: attempt(lambda: show(self.of_torch(_wider(dtype), kwargs))),
            again=lambda: show(self.of_torchshim(dtype, kwargs)),
            lenient=kind == "differentiable",
        )

    def of_torch(self, dtype: str, kwargs: dict[str, Any]) -> _Run:
        return _Run(
            torch, self.entry, self.entry.optim_cls, copy.deepcopy(kwargs), dtype
        )

    def of_torchshim(self, dtype: str, kwargs: dict[str, Any]) -> _Run:
        made = Translator()(kwargs)
        return _Run(torchshim, self.entry, self.ours, made, dtype)

    def exchange(self, dtype: str, kwargs: dict[str, Any]) -> Case:
        """Steps that go on in the other library from what `state_dict` gives."""

        def begun(run: _Run) -> tuple[_Run, Any]:
            run.start()
            run.steps(3)
            return run, run.optimizer.state_dict()

        def gone_on(run: _Run, values: Any, state: Any) -> Any:
            run.start(values)
            run.optimizer.load_state_dict(state)
            run.steps(3)
            return run.shown()

        def in_torch(name: str) -> Any:
            run, state = begun(self.of_torch(name, kwargs))
            return [gone_on(self.of_torch(name, kwargs), run.values(), state)] * 2

        def in_turn() -> Any:
            theirs, state = begun(self.of_torch(dtype, kwargs))
            ours, own = begun(self.of_torchshim(dtype, kwargs))
            there = self.of_torchshim(dtype, kwargs)
            back = gone_on(self.of_torch(dtype, kwargs), ours.values(), _torch(own))
            return [gone_on(there, theirs.values(), Translator()(state)), _shim(back)]

        return Case(
            "exchange",
            dtype,
            _text(kwargs),
            attempt(in_torch, dtype),
            attempt(in_turn),
            lambda: attempt(in_torch, _wider(dtype)),
        )

    def schedulers(self, dtype: str) -> Iterator[Case]:
        for made in self.entry.scheduler_inputs:
            ours = [_with_own_schedulers(each) for each in made]

            def show(run: _Run, made: Any = made, ours: Any = ours) -> Any:
                run.start()
                kinds = made if run.library is torch else ours
                schedulers = [kind(run.optimizer) for kind in kinds]
                rates = []
                for _ in range(STEPS):
                    loss = run.step()
                    for each in schedulers:
                        plateau = type(each).__name__ == "ReduceLROnPlateau"
                        each.step(loss) if plateau else each.step()
                    rates.append([g["lr"] for g in run.optimizer.param_groups])
                return {"rates": rates, **run.shown()}

            yield self.case("schedulers", dtype, {"lr": 0.05}, show)

    def errors(self) -> None:
        for refused in database.refused(self.entry):
            sample = refused.optimizer_error_input
            with_step = refused.error_on == OptimizerErrorEnum.STEP_ERROR

            def raised(
                library: Any,
                kind: Any,
                params: Any,
                kwargs: Any,
                step: bool = with_step,
            ) -> Any:
                if params is None:
                    params = [library.nn.Parameter(library.ones(2, 3))]
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    optimizer = kind(params, **kwargs)
                    if step:
                        optimizer.step()

            theirs = (torch, self.entry.optim_cls, sample.params, sample.kwargs)
            self.judge_error(
                f"{sample.desc}: {_text(sample.kwargs)}",
                attempt(raised, *theirs),
                lambda s=sample, raised=raised: raised(
                    torchshim, self.ours, _parameters(s.params), Translator()(s.kwargs)
                ),
                same_text=True,
            )


class _Run:
    """One optimizer with parameters of its own, in one of the libraries."""

    def __init__(
        self, library: Any, entry: Any, kind: Any, kwargs: Any, dtype: str
    ) -> None:
        self.library = library
        self.entry = entry
        self.kind = kind
        self.kwargs = kwargs
        self.dtype = getattr(library, dtype)
        self._rng = np.random.default_rng(5)
        only_matrices = entry.name == "Muon"
        self._shapes = [(3, 4), (4, 2) if only_matrices else (4,)]
        self.scales = [self.tensor(shape) for shape in self._shapes]

    def tensor(self, shape: tuple[int, ...]) -> Any:
        """Random values, the same in both libraries."""
        values = self._rng.standard_normal(shape)
        if self.dtype.is_complex:
            values = values + 1j * self._rng.standard_normal(shape)
        wide = (
            self.library.complex128 if self.dtype.is_complex else self.library.float64
        )
        return self.library.tensor(values, dtype=wide).to(self.dtype)

    def start(self, values: Any = None) -> None:
        """Makes the parameters and the optimizer."""
        made = [self.tensor(shape) for shape in self._shapes]
        if values is not None:
            made = [self.library.tensor(v, dtype=self.dtype) for v in values]
        self.parameters = [self.library.nn.Parameter(each) for each in made]
        self.optimizer = self.kind(self.parameters, **self.kwargs)

    def loss(self) -> Any:
        """A smooth function of the parameters with a minimum."""
        if self.entry.only_supports_sparse_grads:
            index = self.library.tensor([0, 2])
            found = [
                self.library.nn.functional.embedding(
                    index % p.shape[0], p.reshape(p.shape[0], -1), sparse=True
                )
                for p in self.parameters
            ]
            return sum((f * f).sum() for f in found)
        total: Any = 0
        for p, scale in zip(self.parameters, self.scales, strict=True):
            value = p * scale - 1
            total = total + (value * value.conj()).real.sum() + value.real.sin().sum()
        return total

    def closure(self) -> Any:
        """The loss, with fresh gradients."""
        self.optimizer.zero_grad()
        loss = self.loss()
        loss.backward()
        return loss

    def step(self) -> Any:
        """One step, with a closure where one is needed."""
        if self.entry.step_requires_closure:
            return self.optimizer.step(self.closure)
        loss = self.closure()
        self.optimizer.step()
        return loss

    def steps(self, count: int) -> None:
        """Several steps; of those that iterate, in the precision that allows them.

        They end an iteration when numbers near zero are small enough, so that float32's
        rounding decides how many there are.
        """
        narrow = self.dtype.itemsize < (16 if self.dtype.is_complex else 8)
        for _ in range(1 if self.entry.step_requires_closure and narrow else count):
            self.step()

    def values(self) -> list[np.ndarray]:
        """The parameters' values."""
        return [to_numpy(p) for p in self.parameters]

    def shown(self) -> dict[str, Any]:
        """The parameters and the whole state."""
        return {
            "parameters": [p.detach().clone() for p in self.parameters],
            "state": _plain(self.optimizer.state_dict()),
        }


# What is shown of an optimizer ------------------------------------------------------


def _steps(run: _Run) -> Any:
    run.start()
    run.steps(STEPS)
    return run.shown()


def _described(run: _Run) -> Any:
    run.start()
    before = _plain(run.optimizer.state_dict())
    run.steps(1)
    shown = {k: v for k, v in run.optimizer.defaults.items() if k != "lr"}
    return {
        "repr": repr(run.optimizer),
        "defaults": _plain(shown),
        "before": before,
        "zeroed": run.optimizer.zero_grad(set_to_none=False),
        "gradients": [p.grad for p in run.parameters],
    }


def _copies(run: _Run) -> Any:
    """Steps of copies, deep and pickled, of parameters and optimizer together."""
    run.start()
    run.steps(2)
    found = {}
    both = (run.parameters, run.optimizer)
    for name, (parameters, optimizer) in (
        ("deepcopy", copy.deepcopy(both)),
        ("pickle", pickle.loads(pickle.dumps(both))),
    ):
        run.parameters, run.optimizer = parameters, optimizer
        run.steps(2)
        found[name] = run.shown()
    return found


def _groups(run: _Run) -> Any:
    """Parameters in groups with names and options of their own, one added later."""
    run.start()
    first, second = run.parameters
    run.optimizer = run.kind([{"params": [("first", first)], "lr": 0.02}], **run.kwargs)
    run.optimizer.add_param_group({"params": [("second", second)]})
    run.steps(STEPS)
    return {"repr": repr(run.optimizer), **run.shown()}


def _differentiate(run: _Run) -> Any:
    """The derivatives of the stepped parameters by what they were and the gradients."""
    bases = [run.tensor(s).requires_grad_() for s in run._shapes]
    # Away from zero, where square roots amplify rounding.
    gradients = [(run.tensor(s) * 0.2 + 1).requires_grad_() for s in run._shapes]
    parameters = [each.clone() for each in bases]
    optimizer = run.kind(parameters, **run.kwargs)
    for factor in (1.0, 0.5, 2.0):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient * factor
        optimizer.step()
    total = sum((p * p.conj()).real.sum() for p in parameters)
    found = run.library.autograd.grad(total, bases + gradients, allow_unused=True)
    return {
        "parameters": [p.detach() for p in parameters],
        "derivatives": list(found),
    }


# Values -----------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """A state without the differences of dicts that compare equal."""
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, torch.Tensor | torchshim.Tensor):
        return value.detach().clone()
    return value


def _with_own_schedulers(made: types.FunctionType) -> types.FunctionType:
    """A function of the database that makes torchshim's scheduler."""
    names = made.__globals__ | vars(torchshim.optim.lr_scheduler)
    return types.FunctionType(made.__code__, names)


def _torch(value: Any) -> Any:
    """PyTorch's state of torchshim's."""
    if isinstance(value, torchshim.Tensor):
        kind = getattr(torch, dtype_name(value))
        return torch.tensor(to_numpy(value), dtype=kind)
    if isinstance(value, dict):
        return {k: _torch(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_torch, value))
    return value


def _shim(value: Any) -> Any:
    return Translator()(value)


def _parameters(value: Any) -> Any:
    """The parameters of an error input, with their gradients."""
    made: dict[int, Any] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in made:
                own = tensor(value.detach())
                if isinstance(value, torch.nn.Parameter):
                    own = torchshim.nn.Parameter(own)
                if value.grad is not None:
                    own.grad = tensor(value.grad)
                made[id(value)] = own
            return made[id(value)]
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(convert, value))
        return value

    return convert(value)


def _wider(dtype: str) -> str:
    return {"float32": "float64", "complex64": "complex128"}.get(dtype, dtype)


def _text(kwargs: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in kwargs.items())
