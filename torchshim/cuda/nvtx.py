"""Named ranges in a profile, by JAX's profiler.

https://docs.pytorch.org/docs/2.13/cuda.html#nvidia-tools-extension-nvtx. RuntimeError
without a GPU, as in PyTorch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax

from torchshim.cuda._devices import is_available

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


class _Ranges(threading.local):
    def __init__(self) -> None:
        self.stack: list[Any] = []


_ranges = _Ranges()
_started: dict[int, Any] = {}


def _need() -> None:
    if not is_available():
        raise RuntimeError(
            "NVTX functions not installed. Are you sure you have a CUDA build?"
        )


def _begin(name: str) -> Any:
    _need()
    made = jax.profiler.TraceAnnotation(name)
    made.__enter__()
    return made


def range_push(msg: str) -> int:
    """Begins a range; how deep it is."""
    _ranges.stack.append(_begin(msg))
    return len(_ranges.stack) - 1


def range_pop() -> int:
    """Ends the innermost range; how deep it was."""
    _need()
    if not _ranges.stack:
        return -2
    _ranges.stack.pop().__exit__(None, None, None)
    return len(_ranges.stack)


def range_start(msg: str) -> int:
    """Begins a range that another thread may end; its number."""
    made = _begin(msg)
    _started[id(made)] = made
    return id(made)


def range_end(range_id: int) -> None:
    """Ends the range of a number."""
    _need()
    found = _started.pop(range_id, None)
    if found is not None:
        found.__exit__(None, None, None)


def mark(msg: str) -> None:
    """A range without length."""
    _begin(msg).__exit__(None, None, None)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block; `msg` is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
