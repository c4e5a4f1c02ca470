"""Meta's accelerators, which JAX does not reach: a PyTorch built without them.

https://docs.pytorch.org/docs/2.13/mtia.html
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "synchronize",
]


def _refuse(function: str = "getCurrentDevice") -> NoReturn:
    raise RuntimeError(f"Cannot execute {function}() without MTIA backend.")


def _absent() -> NoReturn:
    raise AssertionError(
        "Torch not compiled with MTIA enabled. Ensure you have `import "
        "mtia.host_runtime.torch_mtia.dynamic_library` in your python src file and "
        "include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
    )


def is_available() -> bool:
    """Whether there is such a device: no."""
    return False


def device_count() -> int:
    """How many such devices there are: 0."""
    return 0


def is_initialized() -> bool:
    """Whether such devices are in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True: all such devices compute in bfloat16."""
    return True


def manual_seed(seed: int) -> None:
    """Ignored."""


def manual_seed_all(seed: int) -> None:
    """Ignored."""


def seed() -> None:
    """Ignored."""


def seed_all() -> None:
    """Ignored."""


def get_rng_state_all() -> list[Any]:
    """Empty."""
    return []


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Empty."""
    return {}


def reset_peak_memory_stats(device: Any = None) -> None:
    """Ignored."""


def init() -> None:
    """AssertionError."""
    _absent()


def get_rng_state(device: Any = "mtia") -> Any:
    """AssertionError."""
    _absent()


def initial_seed() -> int:
    """AssertionError."""
    _absent()


def current_device() -> int:
    """RuntimeError."""
    _refuse()


def set_device(device: Any) -> None:
    """RuntimeError."""
    _refuse("setCurrentDevice")


def synchronize(device: Any = None) -> None:
    """RuntimeError."""
    _refuse()


def current_stream(device: Any = None) -> Any:
    """RuntimeError."""
    _refuse()


def default_stream(device: Any = None) -> Any:
    """RuntimeError."""
    _refuse()


def get_device_capability(device: Any = None) -> Any:
    """RuntimeError."""
    _refuse()


def get_device_properties(device: Any = None) -> Any:
    """RuntimeError."""
    _refuse()


def set_rng_state(new_state: Any, device: Any = "mtia") -> None:
    """RuntimeError."""
    _refuse()


def empty_cache() -> None:
    """RuntimeError."""
    _refuse("emptyCache")
