"""Making calls in both libraries, and judging what came of them.

This needs no torch.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from compat_suite.operators.comparison import Difference, compare
from compat_suite.operators.results import Entry, Failure
from compat_suite.operators.values import Missing, tensors, to_numpy

Call = Callable[..., Any]
#: What PyTorch says of derivatives that it cannot compute; torchshim may have them.
_UNDEFINED = ("is not implemented", "has been modified by an inplace operation")
_LACKS = re.compile(r"'(?:Tensor|Parameter)' object has no attribute '(\w+)'")


@dataclass
class Case:
    """One call in both libraries, and how its results are compared."""

    kind: str
    dtype: str
    text: str
    expected: Any  # a result or an exception
    actual: Any
    #: Gives PyTorch's result in higher precision.
    wide: Callable[[], Any]
    #: Takes from PyTorch's and from torchshim's results what is determined, where they
    #: are not: up to a sign or a phase.
    process: tuple[Call, Call] | None = None
    values: bool = True
    again: Callable[[], Any] | None = None
    #: Whether torchshim may give derivatives where PyTorch has none.
    lenient: bool = False
    #: Whether the memory order of results is compared.
    strides: bool = False


@dataclass(frozen=True)
class Options:
    """What is checked of an entry."""

    dtypes: tuple[str, ...] = ()
    samples: int = 4
    seed: int = 0


class Judge:
    """Counts the checks of one entry and keeps those that fail."""

    def __init__(self, result: Entry) -> None:
        self.result = result

    def fail(
        self, kind: str, dtype: str, text: str, cause: str, details: str = ""
    ) -> None:
        self.result.failures.append(Failure(kind, dtype, text, cause, details))

    def judge(self, cases: list[Case]) -> None:
        """Reads what was recorded, and compares it."""
        for case in cases:
            self.result.count(case.kind, case.dtype)
            found = self.judged(case)
            if found is not None:
                self.fail(case.kind, case.dtype, case.text, found.cause, found.details)

    def judged(self, case: Case) -> Difference | None:
        expected, actual = case.expected, case.actual
        if case.lenient and _is_undefined(expected):
            return None
        if not isinstance(actual, Exception):
            error = attempt(read, actual)
            again = case.again
            if isinstance(error, Exception) and again is not None:
                # What failed may have been another call of the same program.
                actual = attempt(lambda: read(again()))
        if isinstance(expected, Exception) or isinstance(actual, Exception):
            if same_exception(expected, actual):
                return None
            return Difference(*mismatch(expected, actual))
        wide = _once(case.wide)
        found = compare(expected, actual, wide, case.values, case.strides)
        if found is None or case.process is None:
            return found
        theirs, ours = case.process
        shown, mine = attempt(theirs, expected), attempt(ours, actual)
        if isinstance(shown, Exception) or isinstance(mine, Exception):
            return found
        return compare(shown, mine, lambda: attempt(theirs, wide()), case.values)

    def judge_error(
        self, text: str, expected: Any, call: Call, same_text: bool = False
    ) -> None:
        """Counts and compares a call that PyTorch refuses."""
        if not isinstance(expected, Exception):
            return
        self.result.count("errors", "")
        actual = attempt(lambda: read(call()))
        if not same_exception(expected, actual):
            self.fail("errors", "", text, *mismatch(expected, actual))
        elif same_text and str(expected) != str(actual):
            details = f"expected {str(expected)[:300]!r}, got {str(actual)[:300]!r}"
            self.fail("errors", "", text, "another text of an error", details)


class Check(Judge):
    """Runs one entry of a database: every dtype, then what must be refused."""

    #: The kind of check that fails where torchshim does not have the entry.
    first: ClassVar[str] = "forward"
    #: What is compared where the options name no dtypes; all by default.
    default: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, database: Any, entry: Any, options: Any, started: Callable[[str], None]
    ) -> None:
        name = database.name_of(entry)
        super().__init__(Entry(name, database.namespace_of(name)))
        self.database = database
        self.entry = entry
        self.options = options
        self.started = started

    def run(self) -> Entry:
        """The results; `started` was told what is being checked."""
        try:
            self.find()
        except Missing as error:
            self.result.count(self.first, "")
            self.fail(self.first, "", "", f"missing: {error}")
            return self.result
        chosen = self.options.dtypes or self.default
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dtype in self.database.dtypes(self.entry):
                if not chosen or dtype in chosen:
                    self.started(f"{dtype} forward")
                    self.of_dtype(dtype)
            self.started("errors")
            self.errors()
        return self.result

    def find(self) -> None:
        """Looks up what torchshim has; raises `Missing`."""
        raise NotImplementedError

    def of_dtype(self, dtype: str) -> None:
        """Makes and judges the cases in one dtype."""
        raise NotImplementedError

    def errors(self) -> None:
        """Judges what must be refused."""
        raise NotImplementedError


# Calls ------------------------------------------------------------------------------


def attempt(function: Call, *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or the exception it raised."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def read(result: Any) -> Any:
    """A result whose tensors have values: deferred errors are raised now."""
    for each in tensors(result):
        to_numpy(each)
    return result


def _is_undefined(expected: Any) -> bool:
    raised = isinstance(expected, Exception)
    return raised and any(text in str(expected) for text in _UNDEFINED)


def _once(make: Callable[[], Any]) -> Callable[[], Any]:
    made: list[Any] = []

    def get() -> Any:
        if not made:
            made.append(make())
        return made[0]

    return get


def same_exception(expected: Any, actual: Any) -> bool:
    """Whether both are exceptions that the same `except` catches."""
    if not isinstance(expected, Exception) or not isinstance(actual, Exception):
        return False
    if isinstance(actual, Missing) or type(actual) is AttributeError:
        return type(expected) is AttributeError
    return type(expected).__name__ == type(actual).__name__


def mismatch(expected: Any, actual: Any) -> tuple[str, str]:
    """Cause and details where one raised what the other did not."""
    if isinstance(actual, Missing):
        return f"missing: {actual}", ""
    if not isinstance(expected, Exception):
        lacks = _LACKS.search(str(actual))
        if lacks is not None:
            return f"missing: torch.Tensor.{lacks[1]}", ""
        text = str(actual).strip().partition("\n")[0]
        return f"{type(actual).__name__}: {text[:160]}", ""
    wanted = f"{type(expected).__name__}: {expected}"
    if not isinstance(actual, Exception):
        return f"no {type(expected).__name__}", wanted
    return (
        f"{type(actual).__name__} for {type(expected).__name__}",
        f"expected {wanted[:200]!r}, got {str(actual)[:200]!r}",
    )
