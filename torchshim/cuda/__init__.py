"""GPUs as JAX sees them: which there are, their memory, streams and random numbers.

Follows https://docs.pytorch.org/docs/2.13/cuda.html. Where JAX has no GPU the answers
and errors are those of a PyTorch that was built without CUDA.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any

from torchshim._errors import AcceleratorError as AcceleratorError
from torchshim._errors import OutOfMemoryError
from torchshim._functions.legacy import CUDA_TENSOR_TYPES as _TENSOR_TYPES
from torchshim._functions.legacy_storage import CUDA_STORAGE_TYPES as _STORAGE_TYPES
from torchshim.cuda import (
    amp,
    graphs,
    memory,
    nccl,
    nvtx,
    profiler,
    random,
    streams,
)
from torchshim.cuda._devices import (
    can_device_access_peer,
    clock_rate,
    cudart,
    current_blas_handle,
    current_device,
    current_solver_handle,
    device,
    device_count,
    device_memory_used,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    get_sync_debug_mode,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    memory_usage,
    power_draw,
    set_device,
    set_sync_debug_mode,
    synchronize,
    temperature,
    utilization,
)
from torchshim.cuda._lazy import _CudaDeviceProperties as _CudaDeviceProperties
from torchshim.cuda._lazy import _cudart as _cudart
from torchshim.cuda._lazy import _DeviceGuard as _DeviceGuard
from torchshim.cuda._lazy import _exchange_device as _exchange_device
from torchshim.cuda._lazy import _get_device as _get_device
from torchshim.cuda._lazy import _get_generator as _get_generator
from torchshim.cuda._lazy import _initialization_lock as _initialization_lock
from torchshim.cuda._lazy import _is_compiled as _is_compiled
from torchshim.cuda._lazy import _is_in_bad_fork as _is_in_bad_fork
from torchshim.cuda._lazy import _lazy_call as _lazy_call
from torchshim.cuda._lazy import _lazy_init as _lazy_init
from torchshim.cuda._lazy import _maybe_exchange_device as _maybe_exchange_device
from torchshim.cuda._lazy import _sleep as _sleep
from torchshim.cuda._lazy import _tls as _tls
from torchshim.cuda._lazy import cudaStatus as cudaStatus
from torchshim.cuda._utils import _get_device_index as _get_device_index
from torchshim.cuda.graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from torchshim.cuda.memory import CUDAPluggableAllocator as CUDAPluggableAllocator
from torchshim.cuda.memory import MemPool as MemPool
from torchshim.cuda.memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_enable,
    change_current_allocator,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torchshim.cuda.memory import (
    caching_allocator_disabled as caching_allocator_disabled,
)
from torchshim.cuda.memory import use_mem_pool as use_mem_pool
from torchshim.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torchshim.cuda.streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
)

has_half = True
has_magma = False


class CudaError(RuntimeError):
    """An error of the CUDA runtime, by its code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"CUDA error {code}")


class DeferredCudaCallError(Exception):
    """An error of a call that waited for CUDA to start."""


globals().update(_TENSOR_TYPES)
globals().update(_STORAGE_TYPES)


def _default_generators() -> tuple[Any, ...]:
    return tuple(random.generator(i) for i in range(device_count()))


if _TYPE_CHECKING:
    default_generators: tuple[Any, ...]
else:

    def __getattr__(name: str) -> Any:
        # JAX is not asked for its devices before a program wants to know.
        if name == "default_generators":
            return _default_generators()
        if name == "_initialized":
            return is_initialized()
        raise AttributeError(f"module 'torch.cuda' has no attribute '{name}'")


__all__ = [
    "CUDAGraph",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_enable",
    "can_device_access_peer",
    "change_current_allocator",
    "clock_rate",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_solver_handle",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "memory_usage",
    "nccl",
    "nvtx",
    "power_draw",
    "profiler",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "streams",
    "synchronize",
    "temperature",
    "utilization",
]
