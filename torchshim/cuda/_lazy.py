"""What programs call of PyTorch's start of CUDA: JAX starts GPUs by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torchshim._core.device import device as Device
from torchshim._errors import Unsupported
from torchshim.cuda import _devices
from torchshim.cuda import random as _random

_tls = threading.local()
_initialization_lock = threading.Lock()
_cudart = None
_CudaDeviceProperties = _devices.Properties


class cudaStatus:
    """Codes of the CUDA runtime."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


def _lazy_init() -> None:
    """Starts the GPUs, which JAX does by itself. AssertionError without one."""
    _devices.init()


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    """Calls a function when GPUs are in use: now, or never."""
    if _devices.is_initialized():
        callable()


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that used CUDA: PyTorch's own."""
    return False


def _is_compiled() -> bool:
    """Whether there is CUDA."""
    return _devices.is_available()


def _sleep(cycles: int) -> None:
    """Keeps a GPU busy: refused, as JAX has no such kernel."""
    if not _devices.is_available():
        _devices.no_binding("_cuda_sleep")
    raise Unsupported("torch.cuda._sleep is not supported")


def _get_device(device: Any) -> Device:
    """The GPU that an argument names."""
    return Device("cuda", device) if isinstance(device, int) else Device(device)


def _get_generator(device: Any) -> Any:
    """The generator of a GPU."""
    generators = tuple(_random.generator(i) for i in range(_devices.device_count()))
    return generators[device.index or 0]


def _exchange_device(device: int) -> int:
    """Makes "cuda" mean a GPU, by its number; gives the one that it meant.

    A negative number changes nothing, and is what it gives.
    """
    if device < 0:
        return -1
    if not _devices.is_available():
        raise RuntimeError("PyTorch was compiled without CUDA support")
    before = _devices.current_device()
    _devices.set_device(device)
    return before


_maybe_exchange_device = _exchange_device


class _DeviceGuard:
    """A block in which "cuda" means another GPU, by its number."""

    def __init__(self, index: int) -> None:
        self.idx = index
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _exchange_device(self.idx)

    def __exit__(self, *raised: Any) -> bool:
        self.idx = _maybe_exchange_device(self.prev_idx)
        return False
