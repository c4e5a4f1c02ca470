"""What a call of a scripted function does that one of its Python code does not.

What is declared to be a float becomes one, and errors are TorchScript's: `Error` for
what the script raises itself, RuntimeError for what an operator in it does.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_FAILED = "The following operation failed in the TorchScript interpreter."
# What the names of files begin with that are no script's.
_OURS = str(Path(__file__).parent.parent), "<torchshim "


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
        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if not f.filename.startswith(_OURS)]
        by_script = own[-1:] == frames[-1:] or isinstance(error, AssertionError)
        if by_script:
            asserted = isinstance(error, AssertionError)
            name = "RuntimeError: " if asserted else "builtins."
            name += type(error).__name__
        elif isinstance(error, RuntimeError) and type(error) is not RuntimeError:
            raise
        elif str(error).startswith(_FAILED):
            raise
        else:
            name = "RuntimeError"
        text = str(error.args[0]) if len(error.args) == 1 else str(error)
        raise (Error if by_script else RuntimeError)(
            f"{_FAILED}\nTraceback of TorchScript (most recent call last):\n"
            f"{_places(own)}{name}: {text}\n"
        ) from error


def _places(frames: list[traceback.FrameSummary]) -> str:
    lines = []
    for frame in frames:
        code = frame.line or ""
        lines.append(
            f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}\n'
            f"    {code}\n    {'~' * len(code)} <--- HERE\n"
        )
    return "".join(lines)
