"""Intel's GPUs, which JAX does not reach here: a PyTorch that was built without them.

https://docs.pytorch.org/docs/2.13/xpu.html
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NoReturn

from torchshim._core.device import device as _Device
from torchshim.cuda._devices import no_binding as _no_binding

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_generators",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

default_generators: tuple[Any, ...] = ()


def _refuse() -> NoReturn:
    raise AssertionError("Torch not compiled with XPU enabled")


def is_available() -> bool:
    """Whether there is such a GPU: no."""
    return False


def device_count() -> int:
    """How many such GPUs there are: 0."""
    return 0


def is_initialized() -> bool:
    """Whether such GPUs are in use: no."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes in bfloat16: no."""
    return False


def is_tf32_supported() -> bool:
    """Whether the current GPU computes in TF32: no."""
    return False


def get_arch_list() -> list[str]:
    """The architectures that PyTorch was built for: none."""
    return []


def get_gencode_flags() -> str:
    """The options that PyTorch was built with: none."""
    return ""


# What is ignored or empty, as there is nothing to act on.


def manual_seed(seed: int) -> None:
    """Ignored."""


def manual_seed_all(seed: int) -> None:
    """Ignored."""


def seed() -> None:
    """Ignored."""


def seed_all() -> None:
    """Ignored."""


def set_rng_state(new_state: Any, device: Any = "xpu") -> None:
    """Ignored."""


def set_rng_state_all(new_states: Any) -> None:
    """Ignored."""


def get_rng_state_all() -> list[Any]:
    """Empty."""
    return []


def empty_cache() -> None:
    """Ignored."""


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Empty."""
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Empty."""
    return {}


def set_stream(stream: Any) -> None:
    """Ignores None; AssertionError for a stream."""
    if stream is not None:
        _refuse()


# What needs a GPU.


def init() -> None:
    """AssertionError."""
    _refuse()


def current_device() -> int:
    """AssertionError."""
    _refuse()


def set_device(device: Any) -> None:
    """AssertionError."""
    _refuse()


def get_device_name(device: Any = None) -> str:
    """AssertionError."""
    _refuse()


def get_device_properties(device: Any = None) -> Any:
    """AssertionError."""
    _refuse()


def get_device_capability(device: Any = None) -> Any:
    """AssertionError."""
    _refuse()


def synchronize(device: Any = None) -> None:
    """AssertionError."""
    _refuse()


def current_stream(device: Any = None) -> Any:
    """AssertionError."""
    _refuse()


def get_rng_state(device: Any = "xpu") -> Any:
    """AssertionError."""
    _refuse()


def initial_seed() -> int:
    """AssertionError."""
    _refuse()


def mem_get_info(device: Any = None) -> Any:
    """AssertionError."""
    _refuse()


def reset_peak_memory_stats(device: Any = None) -> None:
    """AttributeError, as in a PyTorch without such GPUs."""
    _no_binding("_xpu_resetPeakMemoryStats")


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """AttributeError, as in a PyTorch without such GPUs."""
    _no_binding("_xpu_resetAccumulatedMemoryStats")


class Stream:
    """RuntimeError."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Stream")


class Event:
    """RuntimeError."""

    def __init__(self, enable_timing: bool = False) -> None:
        raise RuntimeError("Tried to instantiate dummy base class Event")


class StreamContext:
    """A block that needs no stream: None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        set_stream(self.stream)

    def __exit__(self, *exc_info: object) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """A block in which a stream would be the current one."""
    return StreamContext(stream)


class device:
    """A block with another current GPU: NotImplementedError on entering it."""

    def __init__(self, device: Any) -> None:
        self.idx = device if isinstance(device, int) else _Device(device).index

    def __enter__(self) -> None:
        if self.idx is not None and self.idx >= 0:
            raise NotImplementedError("PyTorch was compiled without XPU support")

    def __exit__(self, *exc_info: object) -> None:
        pass


class device_of(device):
    """A block with the GPU of a tensor: no tensor is on one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)
