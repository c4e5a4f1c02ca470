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

# Parameters of `mallopt`, from glibc's malloc.h, and the environment's name for each.
_PARAMETERS = {
    "MALLOC_TRIM_THRESHOLD_": -1,
    "MALLOC_MMAP_THRESHOLD_": -3,
    "MALLOC_ARENA_MAX": -8,
}
# At most so many freed bytes are kept at the end of the heap, and larger pieces given
# back when they are freed; an eighth of the machine's memory where that is less.
_KEPT = 1 << 28


def keep_freed() -> None:
    """Has glibc, where it is the C library, keep what is freed for the next run.

    Call this before XLA's threads exist: these take pieces from the one heap then.
    What the environment sets stays as it is.
    """
    set_parameter = _function("mallopt")
    if set_parameter is None or "malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    kept = min(_KEPT, _machine_memory() // 8)
    for name, parameter in _PARAMETERS.items():
        if name not in os.environ:
            set_parameter(parameter, 1 if name == "MALLOC_ARENA_MAX" else kept)


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
        return _KEPT
