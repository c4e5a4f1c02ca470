"""How large a tensor may be: errors about memory that no machine has, found at once.

XLA ends the process, or waits forever, where it lacks the memory of a program's result.
So what cannot fit is refused when it is recorded, as PyTorch's allocator refuses it.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence

try:
    import resource
except ImportError:  # pragma: no cover
    resource = None

# A tensor of so many bytes fits anywhere.
SMALL = 1 << 28
#: What numbers of elements are counted in.
COUNTS = 2**63


@functools.cache
def _installed() -> int:
    """The bytes of memory, with swap, that the system has."""
    found = COUNTS
    if hasattr(os, "sysconf"):
        try:
            found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (ValueError, OSError):  # pragma: no cover
            return COUNTS
    try:
        with open("/proc/meminfo") as file:
            swap = [line.split()[1] for line in file if line.startswith("SwapTotal:")]
        found += 1024 * int(swap[0])
    except (OSError, IndexError, ValueError):  # pragma: no cover
        pass
    return found


def available() -> int:
    """The most bytes that one array can have: of more, no part is ever free."""
    if resource is None:  # pragma: no cover
        return _installed()
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    unlimited = limit in (resource.RLIM_INFINITY, -1)
    return _installed() if unlimited else min(limit, _installed())


def lack_of_memory(wanted: int) -> RuntimeError:
    """PyTorch's error where the CPU's memory is too small."""
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't "
        f"allocate memory: you tried to allocate {wanted} bytes. Error code 12 (Cannot "
        "allocate memory)"
    )


def too_many_elements() -> RuntimeError:
    """PyTorch's error where a number of elements is beyond 64 bits."""
    return RuntimeError("numel: integer multiplication overflow")


def check_extent(shape: Sequence[int], itemsize: int) -> None:
    """Raises where no memory can hold an array.

    >>> check_extent((2, 3), 4)
    >>> check_extent((2**62,), 4)
    Traceback (most recent call last):
    RuntimeError: Storage size calculation overflowed with sizes=[4611686018427387904]
    """
    wanted = math.prod(shape) * itemsize
    if 0 <= wanted <= SMALL:
        return
    if wanted < 0:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() "
            "seems to have been called with negative number: "
            f"{wanted % 2**64}"
        )
    if wanted >= COUNTS:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)}"
        )
    if wanted > available():
        raise lack_of_memory(wanted)


# What NumPy says of numbers of elements that no array has.
_BEYOND = (
    "array is too big",
    "Maximum allowed",
    "maximum supported dimension",
)


def of_numpy(error: Exception) -> RuntimeError | None:
    """PyTorch's error for one of NumPy's about memory; None for others.

    >>> of_numpy(ValueError("array is too big"))
    RuntimeError('numel: integer multiplication overflow')
    """
    if isinstance(error, MemoryError):
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        if shape is None or dtype is None:
            return None  # Python's own
        return lack_of_memory(math.prod(shape) * dtype.itemsize)
    if isinstance(error, ValueError) and str(error).startswith(_BEYOND):
        return too_many_elements()
    return None


def raise_lack(error: Exception) -> None:
    """Raises PyTorch's error if one of NumPy's is about memory."""
    found = of_numpy(error)
    if found is not None:
        raise found from None
