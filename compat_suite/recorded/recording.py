"""Writes the file of samples: `python -m compat_suite ops --record`.

This needs torch.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from compat_suite.operators import checks, database
from compat_suite.operators.forms import OnCopy, Plain
from compat_suite.operators.judging import Call, Case, attempt
from compat_suite.operators.translation import widened
from compat_suite.operators.values import SEED
from compat_suite.recorded.database import SAMPLES
from compat_suite.recorded.packing import Pack, Untold
from compat_suite.recorded.tracing import Telling, Traced, named

#: The dtypes besides the first, of which one is recorded.
SECOND = ("complex64", "int64", "bool", "bfloat16", "float64")
#: Samples with more elements than this are only recorded where there are no others.
LARGEST = 120


class Recorder(checks.Check):
    """Calls PyTorch alone, and tells what it gave."""

    def __init__(self, entry: Any, pack: Pack) -> None:
        options = checks.Options(samples=2)
        super().__init__(database, entry, options, lambda part: None)
        self.pack = pack
        self.function = lambda *args, **kwargs: None
        self.told: list[Any] = []
        self.untold: Counter[str] = Counter()

    def record(self) -> dict[str, Any]:
        """What is told of the entry."""
        found = database.dtypes(self.entry)
        second = next((d for d in SECOND if d in found[1:]), None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype in [*found[:1], *([second] if second else [])]:
                self.of_dtype(dtype)
            self.errors()
        told = {"name": database.name_of(self.entry), "cases": self.told}
        if not self.told:
            told["untold"] = ", ".join(self.untold) or "no dtype on the CPU"
        if self.entry.name in database.UNINITIALIZED:
            told["values"] = False
        return told

    def samples(self, dtype: str, grad: bool) -> list[Any]:
        count = 2 if dtype == database.dtypes(self.entry)[0] else 1
        return database.samples(self.entry, dtype, grad, count, largest=LARGEST)

    def hard_samples(self, dtype: str) -> list[Any]:
        return []

    def variant(
        self, kind: str, sample: Any, dtype: str, theirs: Call
    ) -> Iterator[Case]:
        form = OnCopy() if kind == "in-place" else Plain()
        yield from self.case(kind, sample, dtype, theirs, theirs, form)

    def alias(self, alias: Any, sample: Any, dtype: str) -> Iterator[Case]:
        yield from self.case("method", sample, dtype, alias.op, alias.op)

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
        self.try_to_tell(kind, sample, dtype, theirs, form, process)
        yield from ()

    def try_to_tell(self, *args: Any) -> bool:
        """Adds a case, or counts why the file has no form for it."""
        try:
            self.tell(*args)
        except Untold as error:
            self.untold[str(error)] += 1
            return False
        except Exception as error:
            # An array of 65 dimensions, say, that NumPy does not have.
            self.untold[f"{type(error).__name__}: {str(error)[:80]}"] += 1
            return False
        return True

    def tell(
        self, kind: str, sample: Any, dtype: str, theirs: Call, form: Any, process: Any
    ) -> None:
        """Adds a case; raises `Untold`."""
        telling = Telling(self.pack)
        args, kwargs = checks.arguments(sample)
        told: dict[str, Any] = {
            "kind": kind,
            "dtype": dtype,
            "text": checks.described(sample)[:160],
            "args": telling(list(args)),
            "kwargs": telling(kwargs),
        }
        if told_form := form.told():
            told["form"] = told_form
        name = named(theirs, self.entry)
        traced = Traced(theirs, telling)
        torch.manual_seed(SEED)
        function = theirs if name is not None else traced
        expected = attempt(form(torch, function), *args, **kwargs)
        if isinstance(expected, Untold):
            raise expected
        if name is None and traced.told is None:
            raise Untold("a call that PyTorch refuses")
        if expected is None:
            return
        told["call"] = name or traced.told

        def wide() -> Any:
            made = widened(checks.arguments(sample))
            torch.manual_seed(SEED)
            return attempt(form.wider()(torch, theirs), *made[0], **made[1])

        failed = isinstance(expected, Exception)
        told["expected"] = telling.result(expected, None if failed else wide())
        if process is None and isinstance(form, Plain | OnCopy):
            process = checks.processing(sample)
        if process is not None and not failed:
            self.tell_process(told, process, expected, telling)
        self.told.append(told)

    def tell_process(
        self, told: dict[str, Any], process: Any, expected: Any, telling: Telling
    ) -> None:
        """Adds what of a result is determined, where not all of it is."""
        chosen = Traced(process[0], telling)
        shown = attempt(chosen, expected)
        if not isinstance(shown, Exception):
            told["process"] = chosen.told
            told["processed"] = telling.result(shown, None)

    def error(self, sample: Any) -> None:
        before = len(self.told)
        told = self.try_to_tell("errors", sample, "", self.entry.op, Plain(), None)
        if told and len(self.told) > before and not _raised(self.told[-1]):
            self.told.pop()


def _raised(told: dict[str, Any]) -> bool:
    expected = told["expected"]
    return isinstance(expected, dict) and expected["$"] == "exception"


def record(match: str = "", path: Path = SAMPLES) -> int:
    """Writes what PyTorch gives for the chosen entries; the others stay.

    Gives the size of the file.
    """
    torch.set_num_threads(1)
    pack = Pack()
    left_out = database.left_out()
    told: dict[str, Any] = dict.fromkeys(map(database.name_of, database.entries()))
    if match and path.exists():
        older, content = Pack.read(path)
        told |= {e["name"]: pack.adopt(older, e) for e in content["entries"]}
    found = database.entries(match)
    for i, entry in enumerate(found):
        name = database.name_of(entry)
        print(f"[{i + 1}/{len(found)}] {name}", file=sys.stderr, flush=True)
        if name in left_out:
            told[name] = {"name": name, "cases": []}
        else:
            told[name] = Recorder(entry, pack).record()
    entries = [e for e in told.values() if e is not None]
    pack.write(path, {"torch": torch.__version__, "entries": entries})
    return path.stat().st_size
