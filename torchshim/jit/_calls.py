"""What a call of a scripted function does that one of its Python code does not.

What is declared to be a float becomes one, and errors are TorchScript's: `Error` for
what the script raises itself, RuntimeError for what an operator in it does.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from torchshim._core.callers import is_own

_FAILED = "The following operation failed in the TorchScript interpreter."


class Error(Exception):
    """What TorchScript raises where a script does."""

    __module__ = "torch.jit"


def floats_of(function: Callable[..., Any]) -> dict[str, tuple[int, Any]]:
    """The parameters of a function that are declared floats: name -> place, default.

    >>> def f(x, scale: float = 1): ...
    >>> floats_of(f)
    {'scale': (1, 1)}
    """
    try:
        params = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        p.name: (at, p.default)
        for at, p in enumerate(params)
        if p.annotation in (float, "float")
    }


def with_floats(
    floats: dict[str, tuple[int, Any]], args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with floats where they are declared, as TorchScript converts them.

    >>> with_floats({"scale": (1, 1)}, ("x",), {})
    (('x',), {'scale': 1.0})
    """
    given = list(args)
    for name, (at, default) in floats.items():
        if at < len(given):
            if given[at].__class__ is int:
                given[at] = float(given[at])
        elif (value := named.get(name, default)).__class__ is int:
            named = {**named, name: float(value)}
    return tuple(given), named


def interpreted(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    """Calls Python code as TorchScript's interpreter would, with its errors."""
    try:
        return function(*args, **named)
    except (Error, Warning, NotImplementedError):
        raise
    except Exception as error:
        if str(error).startswith(_FAILED):
            raise  # told by a scripted function that this one called
        frames = [*traceback.walk_tb(error.__traceback__)]
        kind: type[Exception] = Error
        name = f"builtins.{type(error).__name__}"
        if isinstance(error, AssertionError):  # `torch._assert`'s, too
            name = "RuntimeError: AssertionError"
        elif is_own(frames[-1][0]):
            if isinstance(error, RuntimeError) and type(error) is not RuntimeError:
                raise
            kind, name = RuntimeError, "RuntimeError"
        text = str(error.args[0]) if len(error.args) == 1 else str(error)
        raise kind(
            f"{_FAILED}\nTraceback of TorchScript (most recent call last):\n"
            f"{_places(frames)}{name}: {text}\n"
        ) from error


def _places(frames: list[tuple[FrameType, int]]) -> str:
    lines = []
    scripts = [frame for frame in frames if not is_own(frame[0])]
    for frame in traceback.StackSummary.extract(iter(scripts)):
        code = frame.line or ""
        lines.append(
            f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n'
            f"    {code}\n    {'~' * len(code)} <--- HERE\n"
        )
    return "".join(lines)
