"""Tracebacks as text and as values (`torch.utils._traceback`)."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from types import FrameType, TracebackType
from typing import Any


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Shows the source of generated code in the tracebacks of what a block raises.

    Such code says what its source was in a global variable, `__compile_source__`.
    """
    try:
        yield
    except Exception as error:
        frames = []
        here = error.__traceback__
        while here is not None:
            frames.append(here)
            here = here.tb_next
        inner = None
        for place in reversed(frames):
            source = place.tb_frame.f_globals.get("__compile_source__")
            if source is None:
                # Linked anew and not replaced: `contextlib` sets the first one again.
                place.tb_next = inner
                inner = place
            else:
                frame = _frame_of(source, place)
                inner = TracebackType(inner, frame, frame.f_lasti, place.tb_lineno)
        raise error.with_traceback(inner)  # noqa: B904 -- the same error


def _frame_of(source: str, place: TracebackType) -> FrameType:
    """A frame of a file with this source, where a traceback is."""
    code = place.tb_frame.f_code
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", delete=False, suffix=".py", prefix="compiled_"
    ) as file:
        file.write(source)
    made = compile("__frame__()", file.name, "eval")
    made = made.replace(co_name=code.co_name, co_firstlineno=place.tb_lineno)
    return eval(made, {"__frame__": lambda: sys._getframe(1)})


def shorten_filename(fn: str, *, base: str | None = None) -> str:
    """A path without what it has in common with `base` (PyTorch's folder)."""
    base = os.path.dirname(os.path.dirname(__file__)) if base is None else base
    try:
        prefix = os.path.commonpath([fn, base])
    except ValueError:
        return fn
    return fn[len(prefix) + 1 :]


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """A frame in one line."""
    shown = f"{frame.line}  # " if line and frame.line else ""
    where = shorten_filename(frame.filename, base=base)
    return f"{shown}{where}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: Any) -> str:
    """The innermost frame of a traceback in one line."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """Where the program was; what that means is found out when it is asked for."""

    __slots__ = ("skip", "tb")

    def __init__(self, tb: Any, skip: int = 0) -> None:
        self.tb = tb
        self.skip = skip

    @staticmethod
    def extract(
        *, script: bool = False, cpp: bool = False, skip: int = 0
    ) -> CapturedTraceback:
        """Where the caller is, without the `skip` innermost of its frames."""
        if script or cpp:
            raise NotImplementedError(
                "CapturedTraceback.extract(): only Python has frames here"
            )
        stack = traceback.StackSummary.extract(
            traceback.walk_stack(sys._getframe(1)), lookup_lines=False
        )
        return CapturedTraceback(stack[skip:], skip)

    def cleanup(self) -> None:
        """Forgets it."""
        self.tb = None

    def summary(self) -> traceback.StackSummary:
        """The frames, from the outermost on."""
        if self.tb is None:
            return traceback.StackSummary()
        return traceback.StackSummary.from_list(list(reversed(self.tb)))

    def format(self) -> list[str]:
        """Lines of text, a frame each."""
        return traceback.format_list(self.summary())

    @staticmethod
    def format_all(tbs: Sequence[CapturedTraceback]) -> list[list[str]]:
        """The texts of several."""
        return [tb.format() for tb in tbs]

    def __getstate__(self) -> Any:
        return None, {"tb": None, "skip": self.skip}
