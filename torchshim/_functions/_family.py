"""Functions that one piece of code makes under several names."""

from __future__ import annotations

import inspect
from typing import Any

_PAGES = "https://docs.pytorch.org/docs/2.13/generated"


def described(function: Any, name: str, line: str, page: str | None = None) -> None:
    """Gives such a function its name, and the first line of its docstring.

    What all of them have in common is the docstring that stands where the function is
    written. `page`: the page of PyTorch that describes it.
    """
    function.__name__ = function.__qualname__ = name
    parts = [line, f"{_PAGES}/{page}.html" if page else "", function.__doc__ or ""]
    function.__doc__ = "\n\n".join(inspect.cleandoc(part) for part in parts if part)
