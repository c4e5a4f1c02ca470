"""Apple's GPUs, which JAX does not reach here: a PyTorch that was built without them.

https://docs.pytorch.org/docs/2.13/mps.html
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "Event",
    "compile_shader",
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "load_metallib",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
]


def _refuse(function: str) -> NoReturn:
    raise RuntimeError(f"Cannot execute {function}() without MPS backend.")


def is_available() -> bool:
    """Whether there is such a GPU: no."""
    return False


def device_count() -> int:
    """How many such GPUs there are: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Ignored, as there is no generator to seed."""


def synchronize() -> None:
    """RuntimeError."""
    _refuse("deviceSynchronize")


def get_rng_state() -> Any:
    """RuntimeError."""
    _refuse("getDefaultGenerator")


def set_rng_state(new_state: Any) -> None:
    """RuntimeError."""
    _refuse("getDefaultGenerator")


def seed() -> None:
    """RuntimeError."""
    _refuse("getDefaultGenerator")


def empty_cache() -> None:
    """RuntimeError."""
    _refuse("emptyCache")


def set_per_process_memory_fraction(fraction: float) -> None:
    """RuntimeError; TypeError and ValueError for what is no fraction."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 2:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~2")
    _refuse("setMemoryFraction")


def current_allocated_memory() -> int:
    """RuntimeError."""
    _refuse("getCurrentAllocatedMemory")


def driver_allocated_memory() -> int:
    """RuntimeError."""
    _refuse("getDriverAllocatedMemory")


def recommended_max_memory() -> int:
    """RuntimeError."""
    _refuse("recommendedMaxMemory")


def compile_shader(source: str) -> Any:
    """RuntimeError."""
    raise RuntimeError("MPS is not available")


def load_metallib(path: Any) -> Any:
    """RuntimeError."""
    raise RuntimeError("MPS is not available")


class Event:
    """RuntimeError."""

    def __init__(self, enable_timing: bool = False) -> None:
        _refuse("acquireEvent")
