"""The accelerator of this machine, whichever it is: a GPU or a TPU.

https://docs.pytorch.org/docs/2.13/accelerator.html
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchshim import _streams
from torchshim._core import device as devices
from torchshim._core import dtypes
from torchshim._core.device import device as Device
from torchshim._functions._arguments import warn
from torchshim.cuda import _devices as gpus
from torchshim.cuda import memory

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def current_accelerator(check_available: bool = False) -> Device | None:
    """The type of the accelerator; None where there is none."""
    return devices.current_accelerator()


def _needed() -> Device:
    found = devices.current_accelerator()
    if found is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return found


def device_count() -> int:
    """How many accelerators there are.

    >>> device_count() == 0 or is_available()
    True
    """
    found = devices.current_accelerator()
    return 0 if found is None else devices.device_count(found.type)


def is_available() -> bool:
    """Whether there is an accelerator."""
    return devices.current_accelerator() is not None


def current_device_index() -> int:
    """The number of the current accelerator. RuntimeError without one."""
    return devices.current_index(_needed().type)


def current_device_idx() -> int:
    """Deprecated: `current_device_index`."""
    warn("Use `current_device_index` instead.", FutureWarning)
    return current_device_index()


def _index(device: Any) -> int:
    """The number that an argument of this module names."""
    kind = _needed().type
    if device is None:
        return devices.current_index(kind)
    if isinstance(device, int):
        return device
    found = Device(device)
    if found.type != kind:
        raise ValueError(
            f"{found.type} doesn't match the current accelerator {_needed()}."
        )
    return devices.current_index(kind) if found.index is None else found.index


def set_device_index(device: Any, /) -> None:
    """Makes another accelerator the current one; negative numbers change nothing."""
    kind = _needed().type
    index = _index(device)
    if index >= 0:
        devices.set_current_index(kind, index)


def set_device_idx(device: Any, /) -> None:
    """Deprecated: `set_device_index`."""
    warn("Use `set_device_index` instead.", FutureWarning)
    set_device_index(device)


class device_index:
    """A block with another current accelerator; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """The dtypes that tensors on an accelerator can have."""
    index = _index(device)
    count = device_count()
    if not 0 <= index < count:
        raise RuntimeError(f"The device index is out of range: {index}")
    known = [d for d in dtypes.DTYPES if d.np is not None]
    return {"supported_dtypes": set(known)}


def current_stream(device: Any = None, /) -> Any:
    """The current stream of an accelerator. RuntimeError without one."""
    where = Device(_needed().type, _index(device))
    return _streams.current_stream(where) or _streams.Stream(where)


def set_stream(stream: Any) -> None:
    """Makes a stream the current one of its accelerator."""
    if not isinstance(stream, _streams.Stream):
        raise TypeError(
            "_accelerator_setStream(): incompatible function arguments. The following "
            "argument types are supported:\n    1. (arg0: torch.Stream) -> None\n\n"
            f"Invoked with: {stream!r}"
        )
    _needed()
    _streams.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Runs what was recorded, and waits for everything that was dispatched."""
    _index(device)
    _streams.wait_for_all()


# Memory -----------------------------------------------------------------------


def empty_cache() -> None:
    """Does nothing: XLA's allocator keeps its memory. RuntimeError without one."""
    _needed()


def empty_host_cache() -> None:
    """Does nothing: there is no cache of pinned memory."""
    _needed()


def _stats(device: Any) -> dict[str, int]:
    kind = _needed().type
    if kind == "cuda":
        return gpus.memory_stats_of(_index(device))
    found = devices.jax_device(Device(kind, _index(device)))
    return dict(found.memory_stats() or {})


def memory_stats(device_index: Any = None, /) -> OrderedDict[str, Any]:
    """The figures that JAX tells of an accelerator's memory, in PyTorch's names."""
    return memory.named_figures(_stats(device_index))


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes in use on an accelerator."""
    return memory_stats(device_index).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The most bytes that were in use on an accelerator."""
    return memory_stats(device_index).get("allocated_bytes.all.peak", 0)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes that XLA's allocator holds on an accelerator."""
    return memory_stats(device_index).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The most bytes that XLA's allocator held on an accelerator."""
    return memory_stats(device_index).get("reserved_bytes.all.peak", 0)


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Bytes that are free, and all that JAX may use of an accelerator."""
    found = _stats(device_index)
    total = int(found.get("bytes_limit", 0))
    return total - int(found.get("bytes_in_use", 0)), total


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Warns: XLA's allocator keeps the peak since it started."""
    _index(device_index)
    memory.warn_of_peak()


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Warns: XLA's allocator keeps its counts since it started."""
    _index(device_index)
    memory.warn_of_counts()
