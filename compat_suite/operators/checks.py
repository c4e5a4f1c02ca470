"""Running one entry of the database under PyTorch and under torchshim.

Everything that an entry shows in one dtype is recorded before any of it is read, so
that it is one XLA program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

import torchshim
from compat_suite.operators import database, judging, translation
from compat_suite.operators.forms import (
    Gradients,
    Into,
    Mapped,
    OnCopy,
    Plain,
    Tangents,
)
from compat_suite.operators.judging import Call, Case, attempt
from compat_suite.operators.results import KINDS, MORE, Entry
from compat_suite.operators.translation import Translator, widened
from compat_suite.operators.values import (
    SEED,
    Missing,
    call_text,
    dtype_name,
    tensors,
)


@dataclass(frozen=True)
class Options(judging.Options):
    """What is checked of an entry."""

    grad: bool = True
    gradgrad: bool = True
    #: The kinds of checks (`results.KINDS`) that are made; by default all but `MORE`.
    kinds: tuple[str, ...] = tuple(k for k in KINDS if k not in MORE)
    #: How many reference inputs; by default as many as samples.
    references: int | None = None


def check(entry: Any, options: Options, started: Callable[[str], None]) -> Entry:
    """Everything about one entry; `started` is told what is being checked."""
    return Check(database, entry, options, started).run()


class Check(judging.Check):
    """The samples of one entry, in every form that the entry has."""

    def find(self) -> None:
        self.function = translation.function(self.entry.op, self.entry.name)

    # Forward and variants -----------------------------------------------------------

    def of_dtype(self, dtype: str) -> None:
        count = self.options.samples
        cases: list[Case] = []
        samples = self.samples(dtype, False)
        kinds = self.options.kinds
        if "forward" in kinds:
            for i, sample in enumerate(samples):
                cases += self.forward(sample, dtype)
                if i < 2:
                    cases += self.forward(sample.noncontiguous(), dtype)
            for sample in self.hard_samples(dtype):
                cases += self.forward(sample, dtype)
        for sample in samples[: max(1, count // 2)]:
            cases += self.variants(sample, dtype)
        if "layouts" in kinds:
            cases += [c for s in samples for c in self.layouts(s, dtype)]
        if "vmap" in kinds:
            cases += [c for s in samples for c in self.mapped(s, dtype)]
        self.judge([c for c in cases if c.kind in kinds])
        graded = dtype in database.grad_dtypes(self.entry)
        if graded and (self.options.grad or {"tangents", "third"} & {*kinds}):
            self.started(f"{dtype} grad")
            found = self.samples(dtype, True)
            self.judge([c for s in found for c in self.gradients(s, dtype)])

    def samples(self, dtype: str, grad: bool) -> list[Any]:
        """The sample inputs that are used."""
        options = self.options
        return database.samples(self.entry, dtype, grad, options.samples, options.seed)

    def hard_samples(self, dtype: str) -> list[Any]:
        """More inputs, for the forward form alone."""
        options = self.options
        count = options.samples if options.references is None else options.references
        return database.hard_samples(self.entry, dtype, count, options.seed)

    def forward(self, sample: Any, dtype: str) -> Iterator[Case]:
        yield from self.case("forward", sample, dtype, self.entry.op, self.function)

    def case(
        self,
        kind: str,
        sample: Any,
        dtype: str,
        theirs: Call,
        ours: Call,
        form: Any = Plain(),  # noqa: B008
        process: tuple[Call, Call] | None = None,
    ) -> Iterator[Case]:
        """A call of both functions in one form."""
        if process is None and isinstance(form, Plain | OnCopy):
            process = processing(sample)

        def again() -> Any:
            args, kwargs = Translator()(arguments(sample))
            torchshim.manual_seed(SEED)
            return form(torchshim, ours)(*args, **kwargs)

        def of_torch(form: Any, made: Any) -> Any:
            args, kwargs = made
            torch.manual_seed(SEED)
            return attempt(form(torch, theirs), *args, **kwargs)

        expected = of_torch(form, arguments(sample))
        if expected is not None:
            yield Case(
                kind,
                dtype,
                described(sample),
                expected,
                attempt(again),
                lambda: of_torch(form.wider(), widened(arguments(sample))),
                process,
                self.entry.name not in database.UNINITIALIZED,
                again,
                kind in ("gradgrad", "third"),
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
                yield from self.case(kind, sample, dtype, found, found, OnCopy())
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
        form = OnCopy() if kind == "in-place" else Plain()
        yield from self.case(kind, sample, dtype, theirs, ours, form)

    def alias(self, alias: Any, sample: Any, dtype: str) -> Iterator[Case]:
        try:
            path = alias.name.removeprefix("torch.")
            ours = translation.function(alias.op, path)
        except Missing as error:
            self.missing("method", error)
            return
        yield from self.case("method", sample, dtype, alias.op, ours)

    def missing(self, kind: str, error: Missing) -> None:
        cause = f"missing: {error}"
        self.result.count(kind, "")
        if not any(f.cause == cause for f in self.result.failures):
            self.fail(kind, "", "", cause)

    def out(self, sample: Any, dtype: str) -> Iterator[Case]:
        """`out=` of the right size and of size 0; the result must be that tensor."""
        torch.manual_seed(SEED)
        args, kwargs = arguments(sample)
        plain = attempt(self.entry.op, *args, **kwargs)
        if isinstance(plain, Exception) or not tensors(plain):
            return
        if len(tensors(plain)) > 1 and not isinstance(plain, list | tuple):
            return
        outs = tuple((tuple(t.shape), dtype_name(t)) for t in tensors(plain))
        for resized in (False, True):
            form = Into(outs, isinstance(plain, torch.Tensor), resized)
            functions = self.entry.op, self.function
            process = processing(sample)
            if process is not None:
                process = _of_result(process[0]), _of_result(process[1])
            yield from self.case("out=", sample, dtype, *functions, form, process)

    # Gradients ----------------------------------------------------------------------

    def gradients(self, sample: Any, dtype: str) -> Iterator[Case]:
        theirs, ours = processed(sample, self.entry.op, self.function)
        seed, kinds = self.options.seed, self.options.kinds
        forms: dict[str, Any] = {}
        if self.options.grad and "grad" in kinds:
            forms["grad"] = Gradients(False, seed)
        second = self.options.gradgrad and "gradgrad" in kinds
        if second and self.entry.supports_gradgrad:
            forms["gradgrad"] = Gradients(True, seed)
        if "third" in kinds and self.entry.supports_gradgrad:
            forms["third"] = Gradients(True, seed, third=True)
        if "tangents" in kinds and self.entry.supports_forward_ad:
            forms["tangents"] = Tangents(seed)
        for kind, form in forms.items():
            yield from self.case(kind, sample, dtype, theirs, ours, form)

    # Memory order, `vmap` -----------------------------------------------------------

    def layouts(self, sample: Any, dtype: str) -> Iterator[Case]:
        """Operands in other memory orders; results must have PyTorch's strides."""
        functions = self.entry.op, self.function
        for order in ORDERS:
            changed = sample.transform(order)
            for case in self.case("layouts", changed, dtype, *functions):
                yield replace(case, strides=True)

    def mapped(self, sample: Any, dtype: str) -> Iterator[Case]:
        """`vmap`, where PyTorch has it."""
        if not tensors([arguments(sample)]):
            return
        functions = processed(sample, self.entry.op, self.function)
        for first in (False, True):
            for case in self.case("vmap", sample, dtype, *functions, Mapped(first)):
                if not isinstance(case.expected, Exception):
                    yield case

    # Errors -------------------------------------------------------------------------

    def errors(self) -> None:
        if "errors" not in self.options.kinds:
            return
        if self.options.dtypes and "float32" not in self.options.dtypes:
            return
        for sample in database.refused(self.entry, max(8, self.options.samples)):
            args, kwargs = arguments(sample)
            if all(t.device.type == "cpu" for t in tensors([args, kwargs])):
                self.error(sample)

    def error(self, sample: Any) -> None:
        def call() -> Any:
            args, kwargs = Translator()(arguments(sample))
            return self.function(*args, **kwargs)

        args, kwargs = arguments(sample)
        expected = attempt(self.entry.op, *args, **kwargs)
        self.judge_error(described(sample), expected, call)


# Samples ----------------------------------------------------------------------------


def arguments(sample: Any) -> tuple[Any, dict[str, Any]]:
    """A sample's positional and keyword arguments."""
    return (sample.input, *sample.args), dict(sample.kwargs)


def described(sample: Any) -> str:
    """A sample as it is called, in short."""
    return call_text(*arguments(sample))


def _laid_out(rank: int, change: Callable[[Any], Any]) -> Call:
    """Gives tensors of so many dimensions and more another order in memory."""

    def change_one(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.ndim < rank:
            return value
        return change(value.detach()).requires_grad_(value.requires_grad)

    return change_one


def _reversed(value: Any) -> Any:
    """A tensor whose dimensions all lie in memory the other way round."""
    backwards = range(value.ndim)[::-1]
    return value.permute(*backwards).contiguous().permute(*backwards)


def _channels_last(value: Any) -> Any:
    """A tensor of images, its channels last in memory."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if value.ndim not in formats:
        return value
    return value.contiguous(memory_format=formats[value.ndim])


ORDERS = (
    lambda value: value,
    _laid_out(2, lambda value: value.mT.contiguous().mT),
    _laid_out(2, _reversed),
    _laid_out(4, _channels_last),
    # Every second column of its memory.
    _laid_out(1, lambda value: torch.stack([value] * 2, -1)[..., 0]),
)


def processing(sample: Any) -> tuple[Call, Call] | None:
    """What takes from results what is determined, in both libraries."""
    own = sample.output_process_fn_grad
    if "SampleInput.__init__" in own.__qualname__:
        return None
    try:
        return own, translation.rebound(own)
    except Missing as error:
        return own, _raising(error)


def _raising(error: Exception) -> Call:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise error

    return call


def processed(sample: Any, theirs: Call, ours: Call) -> tuple[Call, Call]:
    """Both functions, giving what is determined."""
    process = processing(sample)
    if process is None:
        return theirs, ours

    def chain(function: Call, then: Call) -> Call:
        return lambda *args, **kwargs: then(function(*args, **kwargs))

    return chain(theirs, process[0]), chain(ours, process[1])


def _of_result(process: Call) -> Call:
    return lambda shown: process(shown["result"])
