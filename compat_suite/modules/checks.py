"""Running one module of the database under PyTorch and under torchshim.

Both are constructed from the same seed, so that their parameters must be the same; what
a module gives is recorded before any of it is read.
"""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_modules import ModuleErrorEnum

import torchshim
from compat_suite.modules import database
from compat_suite.operators import judging
from compat_suite.operators.forms import gradients
from compat_suite.operators.judging import Case, Options, attempt, read
from compat_suite.operators.results import Entry
from compat_suite.operators.translation import Translator, widened
from compat_suite.operators.values import SEED, attribute, call_text, tensors


def check(entry: Any, options: Options, started: Callable[[str], None]) -> Entry:
    """Everything about one entry; `started` is told what is being checked."""
    return _Check(database, entry, options, started).run()


class _Check(judging.Check):
    first = "construct"
    default = database.DTYPES

    def find(self) -> None:
        self.kinds = (self.entry.module_cls, attribute(self.entry.name))
        self.modes = (True, False) if self.entry.train_and_eval_differ else (True,)

    def of_dtype(self, dtype: str) -> None:
        for training in self.modes:
            self.started(f"{dtype} forward")
            self.of_mode(dtype, training)

    def of_mode(self, dtype: str, training: bool) -> None:
        count = self.options.samples
        cases: list[Case] = []
        for i, sample in enumerate(
            database.samples(self.entry, dtype, training, count)
        ):
            pair = _Pair(self.kinds, sample, dtype, training, self.options.seed)
            cases.append(pair.case("construct", _described))
            if sample.forward_input is None:
                continue
            cases.append(pair.case("forward", _forward))
            cases.append(pair.case("grad", _gradients))
            if i < 2:
                cases.append(pair.case("grad", _later_gradients))
                cases.append(pair.case("forward", _forward, contiguous=False))
                cases.append(pair.case("copies", _copies))
                if self.entry.supports_gradgrad:
                    cases.append(pair.case("gradgrad", _second_gradients))
        self.judge(cases)

    def errors(self) -> None:
        for training in self.modes:
            for refused in database.refused(self.entry, "float32", training):
                sample = refused.module_error_input
                built = refused.error_on == ModuleErrorEnum.CONSTRUCTION_ERROR
                pair = _Pair(self.kinds, sample, "float32", training, self.options.seed)
                show = _described if built else _forward
                expected = attempt(pair.of_torch, show)
                self.judge_error(
                    pair.text,
                    expected,
                    lambda pair=pair, show=show: pair.of_torchshim(show),
                    same_text=True,
                )


@dataclass
class _Run:
    """One module with its arguments, in one of the libraries."""

    library: Any
    make: Callable[[], Any]
    args: Any
    kwargs: Any
    seed: int

    def call(self, module: Any) -> Any:
        """What the module gives for the arguments, always with the same dropout."""
        self.library.manual_seed(SEED)
        return module(*self.args, **self.kwargs)


class _Pair:
    """A sample, as it is constructed and called in both libraries."""

    def __init__(
        self, kinds: tuple[Any, Any], sample: Any, dtype: str, training: bool, seed: int
    ) -> None:
        self.theirs, self.ours = kinds
        self.built = sample.constructor_input
        self.called = sample.forward_input
        self.dtype = dtype
        self.training = training
        self.seed = seed
        parts = [call_text(self.built.args, self.built.kwargs)]
        if self.called is not None:
            parts.append(call_text(self.called.args, self.called.kwargs))
        mode = "train" if training else "eval"
        self.text = f"{kinds[0].__name__}{''.join(parts)} {mode}"

    def case(
        self, kind: str, show: Callable[[_Run], Any], contiguous: bool = True
    ) -> Case:
        return Case(
            kind,
            self.dtype,
            self.text + ("" if contiguous else " not contiguous"),
            attempt(self.of_torch, show, contiguous),
            attempt(self.of_torchshim, show, contiguous),
            lambda: attempt(self.of_torch, show, contiguous, True),
            again=lambda: self.of_torchshim(show, contiguous),
            lenient=kind == "gradgrad",
        )

    def _arguments(self, contiguous: bool) -> tuple[Any, dict[str, Any]]:
        if self.called is None:
            return (), {}
        made = (tuple(self.called.args), dict(self.called.kwargs))
        return made if contiguous else _mapped(made, _spread_out)

    def of_torch(
        self,
        show: Callable[[_Run], Any],
        contiguous: bool = True,
        wide: bool = False,
    ) -> Any:
        args, kwargs = _mapped(self._arguments(contiguous), _leaf)
        if wide:
            args, kwargs = widened((args, kwargs))

        def make() -> Any:
            torch.manual_seed(SEED)
            module = self.theirs(*self.built.args, **self.built.kwargs)
            module = module.to(getattr(torch, self.dtype)).train(self.training)
            return module.double() if wide else module

        return show(_Run(torch, make, args, kwargs, self.seed))

    def of_torchshim(self, show: Callable[[_Run], Any], contiguous: bool = True) -> Any:
        built_args, built_kwargs = Translator()((self.built.args, self.built.kwargs))
        args, kwargs = Translator()(self._arguments(contiguous))

        def make() -> Any:
            torchshim.manual_seed(SEED)
            module = self.ours(*built_args, **built_kwargs)
            return module.to(getattr(torchshim, self.dtype)).train(self.training)

        return show(_Run(torchshim, make, args, kwargs, self.seed))


# What is shown of a module ----------------------------------------------------------


def _described(run: _Run) -> Any:
    """What a module is, before it is called."""
    module = run.make()
    return {
        "repr": repr(module),
        "modules": [(name, type(m).__name__) for name, m in module.named_modules()],
        "parameters": _named(module.named_parameters()),
        "buffers": _named(module.named_buffers()),
        "requires_grad": [p.requires_grad for p in module.parameters()],
        "state": list(module.state_dict()),
        "in float64": _dtypes(copy.deepcopy(module).to(run.library.float64)),
        "in bfloat16": _dtypes(copy.deepcopy(module).bfloat16()),
        "training": [m.training for m in module.modules()],
    }


def _forward(run: _Run) -> Any:
    """The result, its strides, and what the call did to the module's state."""
    module = run.make()
    result = run.call(module)
    return {
        "result": result,
        "strides": [tuple(t.stride()) for t in tensors(result)],
        "requires_grad": [t.requires_grad for t in tensors(result)],
        "buffers": _named(module.named_buffers()),
    }


def _copies(run: _Run) -> Any:
    """The results of copies: deep, pickled, from the state, from a file."""
    module = run.make()
    # Lazy modules have parameters once they were called.
    run.call(module)
    saved = io.BytesIO()
    run.library.save(module.state_dict(), saved)
    saved.seek(0)
    loaded = run.make()
    run.call(loaded)
    answer = loaded.load_state_dict(run.library.load(saved))
    made = {
        "deepcopy": copy.deepcopy(module),
        "pickle": pickle.loads(pickle.dumps(module)),
        "state": loaded,
    }
    return {
        "answer": repr(answer),
        "state": list(module.state_dict()),
        "results": {name: run.call(each) for name, each in made.items()},
        "reprs": [repr(each) for each in made.values()],
    }


def _gradients(run: _Run, later: bool = False, second: bool = False) -> Any:
    """The gradients of the inputs and the parameters."""
    module = run.make()
    results = tensors(run.call(module))
    if later:
        read(results)
    leaves = [t for t in tensors([run.args, run.kwargs]) if t.requires_grad]
    leaves += [p for p in module.parameters() if p.requires_grad]
    return gradients(run.library, results, leaves, 1 + second, run.seed)


def _later_gradients(run: _Run) -> Any:
    """The same, after the results were read: what backward needs was kept."""
    return _gradients(run, later=True)


def _second_gradients(run: _Run) -> Any:
    """The gradients of the gradients."""
    return _gradients(run, second=True)


def _named(found: Iterator[tuple[str, Any]]) -> dict[str, Any]:
    """Tensors by their names; those of lazy modules have no values yet."""
    return {
        name: "uninitialized" if _is_lazy(t) else t.detach().clone()
        for name, t in found
    }


def _is_lazy(tensor: Any) -> bool:
    return type(tensor).__name__.startswith("Uninitialized")


def _dtypes(module: Any) -> list[str]:
    found = [*module.named_parameters(), *module.named_buffers()]
    return [f"{name} {t.dtype}" for name, t in found]


# Arguments --------------------------------------------------------------------------


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """Arguments with other tensors; one that is passed twice stays one tensor."""
    made: dict[int, torch.Tensor] = {}

    def convert(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in made:
                made[id(value)] = change(value)
            return made[id(value)]
        if type(value) in (list, tuple):
            return type(value)(map(convert, value))
        if isinstance(value, dict):
            return {k: convert(v) for k, v in value.items()}
        return value

    return convert(value)


def _leaf(value: torch.Tensor) -> torch.Tensor:
    """A leaf with the same values and strides."""
    if value.is_contiguous():
        return value.detach().clone().requires_grad_(value.requires_grad)
    return _spread_out(value) if value.stride(-1) == 2 else value


def _spread_out(value: torch.Tensor) -> torch.Tensor:
    """A tensor in twice the memory, of which every second element is used."""
    if not value.dim():
        return value
    wide = torch.repeat_interleave(value.detach(), 2, dim=-1)
    return wide[..., ::2].requires_grad_(value.requires_grad)
