"""Questions about GPUs, answered for JAX's devices.

Follows https://docs.pytorch.org/docs/2.13/cuda.html. Where JAX has no GPU the answers
and errors are those of a PyTorch that was built without CUDA.
"""

from __future__ import annotations

from typing import Any

import jax

from torchshim._core import device as devices
from torchshim._core.random import of_device
from torchshim._core.record import local

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "get_device_name",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "set_device",
    "synchronize",
]

_ABSENT = "Torch not compiled with CUDA enabled"


def is_available() -> bool:
    """Whether JAX sees a GPU.

    >>> import torchshim as torch
    >>> torch.cuda.is_available() == (torch.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """How many GPUs JAX sees."""
    return devices.device_count("cuda")


def is_initialized() -> bool:
    """Whether GPUs are in use; JAX starts them all at once."""
    return is_available()


def _need() -> None:
    if not is_available():
        raise AssertionError(_ABSENT)


def current_device() -> int:
    """The number of the GPU that "cuda" means. AssertionError without one."""
    _need()
    return devices.current_index("cuda")


def set_device(device: Any) -> None:
    """Makes "cuda" mean this GPU."""
    if isinstance(device, int):
        index = device
    else:
        found = devices.device(device)
        if found.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {found}")
        if found.index is None:
            raise ValueError(
                "Expected a torch.device with a specified index or an integer, but "
                f"got:{found}"
            )
        index = found.index
    if index >= 0:
        _need()
        devices.set_current_index("cuda", index)


def _jax_device(device: Any = None) -> Any:
    index = device if isinstance(device, int) else None
    if device is not None and index is None:
        index = devices.device(device).index
    if index is None:
        index = current_device()
    return devices.jax_device(devices.device("cuda", index))


def get_device_name(device: Any = None) -> str:
    """The name of a GPU, as its driver gives it."""
    _need()
    return str(_jax_device(device).device_kind)


def synchronize(device: Any = None) -> None:
    """Runs what was recorded, and waits for everything that was dispatched."""
    _need()
    local.rec.flush()
    jax.effects_barrier()
    for array in jax.live_arrays():
        array.block_until_ready()


def empty_cache() -> None:
    """Does nothing: XLA's allocator keeps its memory."""


def manual_seed(seed: int) -> None:
    """Seeds the numbers drawn for the current GPU; ignored where there is none."""
    if is_available():
        of_device(devices.device("cuda", current_device())).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seeds the numbers drawn for every GPU; ignored where there is none."""
    for index in range(device_count()):
        of_device(devices.device("cuda", index)).manual_seed(int(seed))


def _statistic(name: str, device: Any) -> int:
    if not is_available():
        return 0
    return int((_jax_device(device).memory_stats() or {}).get(name, 0))


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a GPU, as JAX reports them; 0 without one."""
    return _statistic("bytes_in_use", device)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use on a GPU; 0 without one."""
    return _statistic("peak_bytes_in_use", device)
