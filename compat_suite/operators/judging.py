"""Making calls in both libraries, and judging what came of them."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import torchshim
from compat_suite.operators import translation
from compat_suite.operators.comparison import Difference, compare
from compat_suite.operators.results import Entry, Failure
from compat_suite.operators.translation import Missing, to_numpy

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
    wide: Callable[[], Any]
    process: Callable[[Any], Any] | None = None
    values: bool = True
    again: Callable[[], Any] | None = None
    #: Whether torchshim may give derivatives where PyTorch has none.
    lenient: bool = False


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
            read = attempt(lambda: [to_numpy(t) for t in tensors(actual)])
            if isinstance(read, Exception) and case.again is not None:
                # What failed may have been another call of the same program.
                actual = attempt(case.again)
                if not isinstance(actual, Exception):
                    read = attempt(lambda: [to_numpy(t) for t in tensors(actual)])
                    actual = read if isinstance(read, Exception) else actual
        if isinstance(expected, Exception) or isinstance(actual, Exception):
            if same_exception(expected, actual):
                return None
            return Difference(*mismatch(expected, actual))
        wide = _once(case.wide)
        found = compare(expected, actual, wide, case.values)
        if found is None or case.process is None:
            return found
        # Results that are only determined up to a sign or a phase.
        process = case.process
        ours = process
        if isinstance(process, types.FunctionType) and str(
            process.__module__
        ).startswith("torch"):
            ours = translation.rebound(process)
        shown = attempt(process, expected)
        mine = attempt(ours, actual)
        if isinstance(shown, Exception) or isinstance(mine, Exception):
            return found

        def processed() -> Any:
            return attempt(process, wide())

        return compare(shown, mine, processed, case.values)


# Calls ------------------------------------------------------------------------------


def attempt(function: Call, *args: Any, **kwargs: Any) -> Any:
    """The result of a call, or the exception it raised."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


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


# Values -----------------------------------------------------------------------------


def short(value: Any) -> str:
    """A value as a sample's text shows it."""
    if isinstance(value, torch.Tensor):
        kind = str(value.dtype).removeprefix("torch.")
        strides = "" if value.is_contiguous() else f" strides {list(value.stride())}"
        return f"{kind}{list(value.shape)}{strides}"
    if type(value) in (list, tuple):
        return f"[{', '.join(map(short, value))}]"
    return repr(value)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def tensors(value: Any) -> list[Any]:
    """The tensors of either library in a nest of lists, tuples and dicts."""
    kinds = (torch.Tensor, torchshim.Tensor)
    return [t for t in _flat(value) if isinstance(t, kinds)]


def distinct(found: list[Any]) -> list[Any]:
    """The tensors, each once."""
    return list({id(t): t for t in found}.values())


def dense(gradient: Any) -> Any:
    """A gradient with memory: PyTorch has zeros without any."""
    if getattr(gradient, "_is_zerotensor", lambda: False)():
        return gradient.clone()
    return gradient.detach()


def cotangent(module: Any, like: Any, seed: int) -> Any:
    """A random tensor of the shape and dtype of another, the same in both libraries."""
    rng = np.random.default_rng(seed)
    shape = tuple(like.shape)
    values = rng.standard_normal(shape)
    if like.dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    kind = getattr(module, str(like.dtype).removeprefix("torch."))
    wide = module.complex128 if like.dtype.is_complex else module.float64
    return module.tensor(values, dtype=wide).to(kind)
