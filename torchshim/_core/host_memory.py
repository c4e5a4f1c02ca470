"""How the C library handles the memory of arrays on the host.

A program's arrays, and what it needs meanwhile, are allocated and freed at each run.
With its defaults glibc gives large pieces back to the system each time, which clears
them, page by page, when they are wanted again: that can take twice as long as the
program. https://sourceware.org/glibc/manual/latest/html_node/Malloc-Tunable-Parameters.html
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

# Parameters of `mallopt`, from glibc's malloc.h: (name in the environment, number,
# value; of a small machine an eighth of its memory). Larger pieces are given back when
# they are freed, and so is what is free at the end of the heap if it is more. A thread
# gives up a heap of its own, of 64 MiB, that is free, unless it is the last.
_PARAMETERS = (
    ("MALLOC_TRIM_THRESHOLD_", -1, 1 << 28),
    ("MALLOC_TOP_PAD_", -2, 1 << 26),
    ("MALLOC_MMAP_THRESHOLD_", -3, 1 << 28),
)


def keep_freed() -> None:
    """Has glibc, where it is the C library, keep what is freed for the next run.

    Where the environment sets one of the parameters, all stay as they are. (One heap
    for all threads would keep more, but they wait for one another: a small step takes
    80 µs longer.)
    """
    set_parameter = _function("mallopt")
    given = "malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(
        name in os.environ for name, *_ in _PARAMETERS
    )
    if set_parameter is None or given:
        return
    most = _machine_memory() // 8
    for _, number, value in _PARAMETERS:
        set_parameter(number, min(value, most))


def trim() -> None:
    """Has glibc, where it is the C library, give freed memory back to the system.

    It keeps free memory that lies between memory in use, after some thousands of
    programs more than 100 MiB.
    """
    give_back = _function("malloc_trim")
    if give_back is not None:
        give_back(0)


def _function(name: str) -> Callable[..., Any] | None:
    """A function of glibc's; None where another C library is in use."""
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 -- raises elsewhere
        return getattr(library, name)
    except (AttributeError, OSError, TypeError):
        return None


def _machine_memory() -> int:
    """The bytes of the machine's memory."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 31
