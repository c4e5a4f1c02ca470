"""Running one entry of the database under PyTorch and under torchshim.

Everything that an entry shows in one dtype is recorded before any of it is read, so
that it is one XLA program.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

import torchshim
from compat_suite.operators import database, translation
from compat_suite.operators.comparison import widened
from compat_suite.operators.judging import (
    Call,
    Case,
    Judge,
    attempt,
    cotangent,
    dense,
    distinct,
    mismatch,
    same_exception,
    short,
    tensors,
)
from compat_suite.operators.results import Entry
from compat_suite.operators.translation import Missing, Translator, to_numpy


@dataclass(frozen=True)
class Options:
    """What is checked of an entry."""

    dtypes: tuple[str, ...] = ()
    grad: bool = True
    gradgrad: bool = True
    samples: int = 4
    seed: int = 0


def check(entry: Any, options: Options, started: Callable[[str], None]) -> Entry:
    """Everything about one entry; `started` is told what is being checked."""
    return _Check(entry, options, started).run()


class _Check(Judge):
    def __init__(
        self, entry: Any, options: Options, started: Callable[[str], None]
    ) -> None:
        self.entry = entry
        self.options = options
        self.started = started
        name = database.name_of(entry)
        super().__init__(Entry(name, database.namespace_of(name)))
        self.values = entry.name not in database.UNINITIALIZED

    def run(self) -> Entry:
        try:
            self.function = translation.function(self.entry.op, self.entry.name)
        except Missing as error:
            self.fail("forward", "", "", f"missing: {error}")
            self.result.count("forward", "")
            return self.result
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = self.options.dtypes
            for dtype in database.dtypes(self.entry):
                if not chosen or dtype in chosen:
                    self.of_dtype(dtype)
            self.started("errors")
            self.errors()
        return self.result

    # Forward and variants -----------------------------------------------------------

    def of_dtype(self, dtype: str) -> None:
        count = self.options.samples
        self.started(f"{dtype} forward")
        cases: list[Case] = []
        samples = database.samples(self.entry, dtype, False, count)
        for i, sample in enumerate(samples):
            cases.append(self.forward(sample, dtype))
            if i < 2:
                cases.append(self.forward(sample.noncontiguous(), dtype))
        for sample in database.hard_samples(self.entry, dtype, count):
            cases.append(self.forward(sample, dtype))
        for sample in samples[: max(1, count // 2)]:
            cases += self.variants(sample, dtype)
        self.judge(cases)
        if self.options.grad and dtype in database.grad_dtypes(self.entry):
            self.started(f"{dtype} grad")
            graded = database.samples(self.entry, dtype, True, count)
            self.judge([c for s in graded for c in self.gradients(s, dtype)])

    def forward(self, sample: Any, dtype: str) -> Case:
        return self.case("forward", sample, dtype, self.entry.op, self.function)

    def case(
        self,
        kind: str,
        sample: Any,
        dtype: str,
        theirs: Call,
        ours: Call,
        process: Callable[[Any], Any] | None = None,
    ) -> Case:
        """A call of both functions; `process` takes from results what is compared."""

        def again() -> Any:
            args, kwargs = Translator()(arguments(sample))
            torchshim.manual_seed(translation.SEED)
            return ours(*args, **kwargs)

        args, kwargs = arguments(sample)
        torch.manual_seed(translation.SEED)
        expected = attempt(theirs, *args, **kwargs)

        def wide() -> Any:
            args, kwargs = widened(arguments(sample))
            torch.manual_seed(translation.SEED)
            return attempt(theirs, *args, **kwargs)

        actual = attempt(again)
        own = sample.output_process_fn_grad
        if process is None and "SampleInput.__init__" not in own.__qualname__:
            process = own
        return Case(
            kind,
            dtype,
            described(sample),
            expected,
            actual,
            wide,
            process,
            self.values,
            again,
        )

    def variants(self, sample: Any, dtype: str) -> Iterator[Case]:
        entry = self.entry
        if entry.method_variant is not None:
            yield from self.variant("method", sample, dtype, entry.method_variant)
        for kind, found in (
            ("method", entry.operator_variant),
            ("in-place", entry.inplace_operator_variant),
        ):
            if found is not None and not sample.kwargs:
                yield self.case(kind, sample, dtype, on_copy(found), on_copy(found))
        if entry.inplace_variant is not None:
            yield from self.variant("in-place", sample, dtype, entry.inplace_variant)
        if entry.supports_out and "out" not in sample.kwargs:
            yield from self.out(sample, dtype)
        for alias in entry.aliases:
            yield from self.alias(alias, sample, dtype)

    def variant(
        self, kind: str, sample: Any, dtype: str, theirs: Call
    ) -> Iterator[Case]:
        try:
            ours = translation.method(theirs)
        except Missing as error:
            self.missing(kind, error)
            return
        if kind == "in-place":
            theirs, ours = on_copy(theirs), on_copy(ours)
        yield self.case(kind, sample, dtype, theirs, ours)

    def alias(self, alias: Any, sample: Any, dtype: str) -> Iterator[Case]:
        try:
            path = alias.name.removeprefix("torch.")
            ours = translation.function(alias.op, path)
        except Missing as error:
            self.missing("method", error)
            return
        yield self.case("method", sample, dtype, alias.op, ours)

    def missing(self, kind: str, error: Missing) -> None:
        cause = f"missing: {error}"
        self.result.count(kind, "")
        if not any(f.cause == cause for f in self.result.failures):
            self.fail(kind, "", "", cause)

    def out(self, sample: Any, dtype: str) -> Iterator[Case]:
        """`out=` of the right size and of size 0; the result must be that tensor."""
        torch.manual_seed(translation.SEED)
        args, kwargs = arguments(sample)
        plain = attempt(self.entry.op, *args, **kwargs)
        if isinstance(plain, Exception) or not tensors(plain):
            return
        if len(tensors(plain)) > 1 and not isinstance(plain, list | tuple):
            return
        shapes = [(tuple(t.shape), t.dtype) for t in tensors(plain)]
        single = isinstance(plain, torch.Tensor)

        def into(function: Call, module: Any, resized: bool) -> Call:
            def call(*args: Any, **kwargs: Any) -> Any:
                outs = [
                    module.ones(
                        (0,) if resized else shape,
                        dtype=getattr(module, str(kind).removeprefix("torch.")),
                    )
                    for shape, kind in shapes
                ]
                out = outs[0] if single else tuple(outs)
                result = function(*args, **kwargs, out=out)
                given = [result] if single else list(result)
                same = [r is o for r, o in zip(given, outs, strict=False)]
                return {"result": result, "is out": same}

            return call

        for resized in (False, True):
            case = self.case(
                "out=",
                sample,
                dtype,
                into(self.entry.op, torch, resized),
                into(self.function, torchshim, resized),
                lambda shown: shown["result"],
            )
            yield case

    # Gradients ----------------------------------------------------------------------

    def gradients(self, sample: Any, dtype: str) -> Iterator[Case]:
        second = self.options.gradgrad and self.entry.supports_gradgrad
        first = Gradients(self.entry.op, self.function, sample, self.options.seed)
        case = first.case("grad", dtype)
        if case is None:
            return
        yield case
        if second:
            case = first.case("gradgrad", dtype)
            if case is not None:
                yield case

    # Errors -------------------------------------------------------------------------

    def errors(self) -> None:
        if self.options.dtypes and "float32" not in self.options.dtypes:
            return
        for sample in database.refused(self.entry, max(8, self.options.samples)):
            args, kwargs = arguments(sample)
            if any(t.device.type != "cpu" for t in tensors([args, kwargs])):
                continue
            expected = attempt(self.entry.op, *args, **kwargs)
            if not isinstance(expected, Exception):
                continue
            self.result.count("errors", "")

            def call(sample: Any = sample) -> Any:
                args, kwargs = Translator()(arguments(sample))
                result = self.function(*args, **kwargs)
                for each in tensors(result):
                    to_numpy(each)
                return result

            actual = attempt(call)
            if not same_exception(expected, actual):
                self.fail("errors", "", described(sample), *mismatch(expected, actual))


class Gradients:
    """First and second gradients of one sample in both libraries."""

    def __init__(self, theirs: Call, ours: Call, sample: Any, seed: int) -> None:
        self.sample = sample
        self.seed = seed
        self.theirs, self.ours = theirs, ours

    def case(self, kind: str, dtype: str) -> Case | None:
        """The case for "grad" or "gradgrad"; None where PyTorch has nothing to give."""
        expected = attempt(self._of_torch, kind, False)
        if expected is None:
            return None
        return Case(
            kind,
            dtype,
            described(self.sample),
            expected,
            attempt(self._of_torchshim, kind),
            lambda: attempt(self._of_torch, kind, True),
            again=lambda: self._of_torchshim(kind),
        )

    def _of_torch(self, kind: str, wide: bool) -> Any:
        made = arguments(self.sample)
        if wide:
            made = widened(made)
        process = self.sample.output_process_fn_grad

        def run(*args: Any, **kwargs: Any) -> Any:
            torch.manual_seed(translation.SEED)
            return process(self.theirs(*args, **kwargs))

        return self._gradients(torch, run, made, kind)

    def _of_torchshim(self, kind: str) -> Any:
        made = Translator()(arguments(self.sample))
        process = self.sample.output_process_fn_grad
        if "SampleInput.__init__" not in process.__qualname__:
            process = translation.rebound(process)

        def run(*args: Any, **kwargs: Any) -> Any:
            torchshim.manual_seed(translation.SEED)
            return process(self.ours(*args, **kwargs))

        return self._gradients(torchshim, run, made, kind)

    def _gradients(self, module: Any, run: Call, made: Any, kind: str) -> Any:
        args, kwargs = made
        leaves = distinct([t for t in tensors(made) if t.requires_grad])
        results = tensors(run(*args, **kwargs))
        requires = [r.requires_grad for r in results]
        outputs = [r for r in results if r.requires_grad]
        if not leaves or not outputs:
            return {"requires_grad": requires} if kind == "grad" else None
        first = module.autograd.grad(
            outputs,
            leaves,
            [cotangent(module, r, self.seed + i) for i, r in enumerate(outputs)],
            allow_unused=True,
            create_graph=kind == "gradgrad",
        )
        if kind == "grad":
            shown = [None if g is None else dense(g) for g in first]
            return {"requires_grad": requires, "gradients": shown}
        live = [
            (g, cotangent(module, g, self.seed + 7 + i))
            for i, g in enumerate(first)
            if g is not None and g.requires_grad
        ]
        if not live and module is torch:
            return None
        second = [None] * len(leaves)
        if live:
            second = module.autograd.grad(
                [g for g, _ in live], leaves, [c for _, c in live], allow_unused=True
            )
        # A gradient that is constant may be None or zeros, by how it was computed.
        return {
            "gradients": [
                module.zeros_like(x) if g is None else dense(g)
                for g, x in zip(second, leaves, strict=True)
            ]
        }


# Helpers ----------------------------------------------------------------------------


def arguments(sample: Any) -> tuple[Any, dict[str, Any]]:
    """A sample's positional and keyword arguments."""
    return (sample.input, *sample.args), dict(sample.kwargs)


def on_copy(function: Call) -> Call:
    """A function that changes its first argument, made to change a copy."""

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        own = input.clone() if hasattr(input, "clone") else input
        result = function(own, *args, **kwargs)
        return {"result": result, "self": own, "is self": result is own}

    return call


def described(sample: Any) -> str:
    """A sample as it is called, in short."""
    args, kwargs = arguments(sample)
    parts = [short(a) for a in args]
    parts += [f"{k}={short(v)}" for k, v in kwargs.items()]
    return f"({', '.join(parts)})"
