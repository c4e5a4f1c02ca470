"""The user's program, as frames show it: the line that it is at."""

from __future__ import annotations

import dis
import sys
from typing import Any

# Code that belongs to the line it is called from.
INLINE = ("<lambda>", "<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")
_PACKAGE = __name__.partition(".")[0]
# What the functions of operators give as their module.
GENERATED = f"{_PACKAGE}._generated"
_CACHE, _BINARY = dis.opmap["CACHE"], dis.opmap["BINARY_OP"]
# The argument of the instruction for `+=`.
_IN_PLACE_ADD = next(
    each.arg
    for each in dis.get_instructions(compile("a += b", "", "exec"))
    if each.opcode == _BINARY
)


class _OwnModules(dict[str, bool]):
    """Which modules are this package's, by their names."""

    def __missing__(self, name: str) -> bool:
        if len(self) >= 4096:
            self.clear()
        own = name.partition(".")[0] == _PACKAGE and not name.endswith("__main__")
        self[name] = own
        return own


# The walks over frames look it up without a call.
own_modules = _OwnModules()


def is_own(frame: Any) -> bool:
    """Whether a frame runs code of this package."""
    return own_modules[frame.f_globals.get("__name__", "")]


def caller() -> tuple[str, int] | None:
    """The line of the user's program that a slow path was entered from."""
    frame: Any = sys._getframe(1)
    while frame is not None and own_modules[frame.f_globals.get("__name__", "")]:
        frame = frame.f_back
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def adds_in_place(frame: Any) -> bool:
    """Whether the user's program below a frame of this package is at ``a += b``."""
    while frame is not None and is_own(frame):
        frame = frame.f_back
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    while at > 0 and code[at] == _CACHE:
        at -= 2
    return code[at] == _BINARY and code[at + 1] == _IN_PLACE_ADD
