"""Running one recorded entry under torchshim, compared with what PyTorch gave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torchshim
from compat_suite.operators import forms, judging
from compat_suite.operators.judging import Case, attempt
from compat_suite.operators.results import Entry
from compat_suite.operators.values import SEED
from compat_suite.recorded import database
from compat_suite.recorded.packing import Reading, function


@dataclass(frozen=True)
class Options(judging.Options):
    """What is checked of an entry."""

    grad: bool = True
    gradgrad: bool = True


def check(entry: Any, options: Options, started: Callable[[str], None]) -> Entry:
    """Everything about one entry; `started` is told what is being checked."""
    return _Check(database, entry, options, started).run()


class _Check(judging.Check):
    def find(self) -> None:
        self.pack, _ = database.read()
        if untold := self.entry.get("untold"):
            self.result.reason = f"only compared with PyTorch live: {untold}"

    def of_dtype(self, dtype: str) -> None:
        wanted = {"grad": self.options.grad, "gradgrad": self.options.gradgrad}
        told = [c for c in self.entry["cases"] if c["dtype"] == dtype]
        self.judge([self.case(c) for c in told if wanted.get(c["kind"], True)])

    def errors(self) -> None:
        for told in self.entry["cases"]:
            if told["kind"] == "errors":
                expected = Reading(self.pack, True)(told["expected"])
                self.judge_error(
                    told["text"], expected, lambda told=told: self.call(told)
                )

    def case(self, told: dict[str, Any]) -> Case:
        known = Reading(self.pack, True)
        process = None
        if "process" in told:
            shown = known(told["processed"])
            ours = function(told["process"], Reading(self.pack))
            process = (lambda result, shown=shown: shown, ours)
        return Case(
            told["kind"],
            told["dtype"],
            told["text"],
            known(told["expected"]),
            attempt(self.call, told),
            lambda: None,
            process,
            self.entry.get("values", True),
            lambda: self.call(told),
            told["kind"] == "gradgrad",
        )

    def call(self, told: dict[str, Any]) -> Any:
        """What torchshim gives."""
        reading = Reading(self.pack)
        args, kwargs = reading(told["args"]), reading(told["kwargs"])
        torchshim.manual_seed(SEED)
        form = forms.form(told.get("form"))
        own = function(told["call"], reading)
        return form(torchshim, own)(*args, **kwargs)
