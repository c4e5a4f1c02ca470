"""How much memory is in use on GPUs, as JAX's allocator tells it.

https://docs.pytorch.org/docs/2.13/cuda.html#memory-management
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NoReturn

from torchshim._errors import Unsupported as Unsupported
from torchshim._errors import unsupported as unsupported
from torchshim._functions._arguments import warn, warn_once
from torchshim.cuda._devices import (
    index_of,
    is_available,
    memory_stats_of,
    need,
    no_binding,
)
from torchshim.cuda._devices import is_initialized as is_initialized
from torchshim.cuda._utils import _get_device_index as _get_device_index

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "change_current_allocator",
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

# PyTorch's names of the figures that JAX tells.
_FIGURES = {
    "active_bytes.all.current": "bytes_in_use",
    "active_bytes.all.peak": "peak_bytes_in_use",
    "allocated_bytes.all.current": "bytes_in_use",
    "allocated_bytes.all.peak": "peak_bytes_in_use",
    "allocation.all.allocated": "num_allocs",
    "reserved_bytes.all.current": "pool_bytes",
    "reserved_bytes.all.peak": "peak_pool_bytes",
}


def empty_cache() -> None:
    """Does nothing: XLA's allocator keeps its memory."""


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The figures of `memory_stats` by the parts of their names."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        at = nested
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return nested


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """The figures that JAX tells of a GPU's memory, in PyTorch's names."""
    if not is_available():
        return OrderedDict()
    return named_figures(memory_stats_of(index_of(device)))


def named_figures(found: dict[str, int]) -> OrderedDict[str, Any]:
    """JAX's figures of a device's memory in PyTorch's names."""
    known = {n: int(found[k]) for n, k in _FIGURES.items() if k in found}
    return OrderedDict(sorted(known.items()))


def memory_allocated(device: Any = None) -> int:
    """Bytes in use on a GPU, as JAX reports them; 0 without one."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that were in use on a GPU; 0 without one."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes that XLA's allocator holds on a GPU; 0 without one."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes that XLA's allocator held on a GPU; 0 without one."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def _renamed(old: str, new: str) -> None:
    warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


def memory_cached(device: Any = None) -> int:
    """Deprecated: `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """Deprecated: `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Warns: XLA's allocator keeps the peak since it started."""
    if not is_available():
        no_binding("_cuda_resetPeakMemoryStats")
    index_of(device)
    warn_of_peak()


def warn_of_peak() -> None:
    """That a peak cannot be reset."""
    warn_once(
        "XLA's allocator cannot forget its peak: max_memory_allocated() goes on "
        "telling the most that was in use since the start"
    )


def warn_of_counts() -> None:
    """That counts cannot be reset."""
    warn_once("XLA's allocator cannot forget how often it was asked for memory")


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Warns: XLA's allocator keeps its counts since it started."""
    if not is_available():
        no_binding("_cuda_resetAccumulatedMemoryStats")
    index_of(device)
    warn_of_counts()


def _reset(name: str, device: Any) -> None:
    warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets "
        "/all/ peak memory stats.",
        FutureWarning,
    )
    reset_peak_memory_stats(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """Deprecated: `reset_peak_memory_stats`."""
    _reset("reset_max_memory_allocated", device)


def reset_max_memory_cached(device: Any = None) -> None:
    """Deprecated: `reset_peak_memory_stats`."""
    _reset("reset_max_memory_cached", device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free, and all that JAX may use of a GPU."""
    need()
    found = memory_stats_of(index_of(device))
    total = int(found.get("bytes_limit", 0))
    return total - int(found.get("bytes_in_use", 0)), total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The figures of `memory_stats` as a table. KeyError without a GPU."""
    figures = memory_stats(device)
    if not figures:
        raise KeyError("allocated_bytes.all.current")
    width = max(map(len, figures))
    rows = [f"| {n:<{width}} | {v / 2**20:>12.1f} MiB |" for n, v in figures.items()]
    line = "=" * len(rows[0])
    title = f"JAX memory summary, device {index_of(device)}"
    return "\n".join([line, f"| {title:<{len(line) - 4}} |", line, *rows, line])


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> NoReturn:
    """Refused: XLA's allocator does not list its blocks."""
    if not is_available():
        no_binding("_cuda_memorySnapshot")
    raise NotImplementedError("memory_snapshot: XLA's allocator does not list blocks")


def list_gpu_processes(device: Any = None) -> str:
    """That it cannot be told, in the words of PyTorch without nvidia-ml-py."""
    return "pynvml module not found, please install nvidia-ml-py"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Refused: JAX takes its share when it starts."""
    need()
    raise NotImplementedError(
        "set_per_process_memory_fraction: JAX takes its share of a GPU's memory when "
        "it starts; set XLA_PYTHON_CLIENT_MEM_FRACTION in the environment"
    )


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Refused: JAX does not tell its share."""
    need()
    raise NotImplementedError(
        "get_per_process_memory_fraction: JAX does not tell its share of the memory"
    )


def get_allocator_backend() -> str:
    """Refused: memory is XLA's, in none of PyTorch's ways."""
    if not is_available():
        no_binding("_cuda_getAllocatorBackend")
    raise NotImplementedError("get_allocator_backend: memory is allocated by XLA")


def host_memory_stats() -> OrderedDict[str, Any]:
    """Empty: there is no cache of pinned memory."""
    return OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Empty: there is no cache of pinned memory."""
    return {}


def reset_peak_host_memory_stats() -> None:
    """Does nothing: there is no cache of pinned memory. Needs a GPU, as in PyTorch."""
    if not is_available():
        no_binding("_cuda_resetPeakHostMemoryStats")


def reset_accumulated_host_memory_stats() -> None:
    """Does nothing: there is no cache of pinned memory. Needs a GPU, as in PyTorch."""
    if not is_available():
        no_binding("_cuda_resetAccumulatedHostMemoryStats")


def _xla_allocates(name: str) -> NoReturn:
    need()
    raise NotImplementedError(f"{name}: memory is allocated by XLA")


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> Any:
    """Refused: memory is XLA's."""
    _xla_allocates("caching_allocator_alloc")


def caching_allocator_delete(mem_ptr: int) -> None:
    """Refused: memory is XLA's."""
    _xla_allocates("caching_allocator_delete")


def caching_allocator_enable(value: bool = True) -> None:
    """Refused where there is a GPU: memory is XLA's."""
    if is_available():
        _xla_allocates("caching_allocator_enable")


def change_current_allocator(allocator: Any) -> None:
    """Refused: memory is XLA's."""
    _xla_allocates("change_current_allocator")


def _refused(name: str, binding: str) -> Any:
    """What of PyTorch's allocator cannot be had: JAX has its own.

    Without a GPU it fails as in a PyTorch without CUDA.
    """

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if not is_initialized():
            no_binding(binding)
        raise Unsupported(
            f"torch.cuda.memory.{name} is not supported: see "
            "jax.profiler.device_memory_profile"
        )

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


_record_memory_history = _refused(
    "_record_memory_history", "_cuda_record_memory_history"
)
_snapshot = _refused("_snapshot", "_cuda_memorySnapshot")
_dump_snapshot = _refused("_dump_snapshot", "_cuda_memorySnapshot")
_REASON = "JAX has its own allocator"
MemPool = unsupported("cuda.memory.MemPool", _REASON)
CUDAPluggableAllocator = unsupported("cuda.memory.CUDAPluggableAllocator", _REASON)
use_mem_pool = unsupported("cuda.memory.use_mem_pool", _REASON)
caching_allocator_disabled = unsupported(
    "cuda.memory.caching_allocator_disabled", _REASON
)
