"""Python's `warnings`, in which this package's modules have PyTorch's names.

A program filters warnings by the module that they come from
(`filterwarnings("ignore", module="torch.optim.lr_scheduler")`).
"""

from __future__ import annotations

import sys
from warnings import (
    catch_warnings,
    filterwarnings,
    simplefilter,
    warn_explicit,
)

__all__ = [
    "catch_warnings",
    "filterwarnings",
    "simplefilter",
    "warn",
    "warn_explicit",
]

_OURS = __name__.partition(".")[0]


def warn(
    message: str | Warning,
    category: type[Warning] | None = None,
    stacklevel: int = 1,
) -> None:
    """As `warnings.warn`, of the line that is `stacklevel` calls away."""
    if isinstance(message, Warning):
        category = type(message)
    try:
        frame = sys._getframe(max(stacklevel, 1))
    except ValueError:  # there are not so many calls
        frame = sys._getframe(1)
        while frame.f_back is not None:
            frame = frame.f_back
    names = frame.f_globals
    module = names.get("__name__") or "<string>"
    package, dot, rest = module.partition(".")
    if package == _OURS:
        module = f"torch{dot}{rest}"
    warn_explicit(
        message,
        category or UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module,
        names.setdefault("__warningregistry__", {}),
    )
