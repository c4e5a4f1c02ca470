"""Which GPUs JAX sees, which of them is the current one, and what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from torchshim import _warnings as warnings
from torchshim._core import device as devices
from torchshim._streams import wait_for_all
from torchshim._tensor import Tensor

ABSENT = "Torch not compiled with CUDA enabled"


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


def need() -> None:
    """Raises AssertionError where there is no GPU."""
    if not is_available():
        raise AssertionError(ABSENT)


def init() -> None:
    """Starts the GPUs, which JAX does by itself. AssertionError without one."""
    need()


def no_binding(name: str) -> NoReturn:
    """What a PyTorch without CUDA raises where it needs one of its C functions."""
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


def index_of(device: Any, optional: bool = True, allow_cpu: bool = False) -> int:
    """The number of the GPU that an argument names; -1 for the CPU.

    None is the current GPU, where `optional` allows it.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if device is None:
        if not optional:
            raise ValueError(
                "Expected a torch.device with a specified index or an integer, but "
                "got:None"
            )
        return current_device()
    found = devices.device(device)
    if found.type == "cpu" and allow_cpu:
        return -1
    if found.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {found}")
    if found.index is None:
        if not optional:
            raise ValueError(
                "Expected a torch.device with a specified index or an integer, but "
                f"got:{found}"
            )
        return current_device()
    return found.index


def jax_device(device: Any = None) -> Any:
    """The JAX device of a GPU."""
    return devices.jax_device(devices.device("cuda", index_of(device)))


def current_device() -> int:
    """The number of the GPU that "cuda" means. AssertionError without one."""
    need()
    return devices.current_index("cuda")


def set_device(device: Any) -> None:
    """Makes "cuda" mean this GPU. AttributeError without one, as in PyTorch."""
    index = index_of(device, optional=False)
    if index >= 0:
        if not is_available():
            no_binding("_cuda_setDevice")
        devices.set_current_index("cuda", index)


class device:
    """A block in which "cuda" means another GPU; a negative number changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device) if device is not None or is_available() else None
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is None or self.idx < 0:
            return
        if not is_available():
            raise RuntimeError("PyTorch was compiled without CUDA support")
        self.prev_idx = devices.current_index("cuda")
        devices.set_current_index("cuda", self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.prev_idx >= 0:
            devices.set_current_index("cuda", self.prev_idx)
            self.prev_idx = -1


class device_of(device):
    """A block in which "cuda" means the GPU of a tensor, if it is on one."""

    def __init__(self, obj: Any) -> None:
        on_gpu = isinstance(obj, Tensor) and obj.device.type == "cuda"
        super().__init__(obj.get_device() if on_gpu else -1)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU, as its driver gives it."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a GPU: (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


@dataclass(frozen=True)
class Properties:
    """What is known of a GPU. `total_memory` is what JAX may use of it."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    warp_size: int = 32

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, "
            f"minor={self.minor}, total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device: Any = None) -> Properties:
    """Name, compute capability, memory and processors of a GPU.

    AssertionError where there is no GPU, or none with this number.
    """
    need()
    index = index_of(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    found = jax_device(index)
    major, _, minor = str(getattr(found, "compute_capability", "0.0")).partition(".")
    return Properties(
        str(found.device_kind),
        int(major),
        int(minor or 0),
        int(memory_stats_of(index).get("bytes_limit", 0)),
        int(getattr(found, "core_count", 0)),
    )


def memory_stats_of(device: Any) -> dict[str, int]:
    """What JAX's allocator tells of a GPU."""
    return dict(jax_device(device).memory_stats() or {})


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one GPU can read another's memory; JAX copies where it cannot."""
    need()
    pair = index_of(device), index_of(peer_device)
    for index in pair:
        if not 0 <= index < device_count():
            raise AssertionError("Invalid device id")
    return pair[0] != pair[1]


def get_arch_list() -> list[str]:
    """The architectures that XLA compiles for: those of the GPUs that are there."""
    kinds = [get_device_capability(i) for i in range(device_count())]
    return [f"sm_{major}{minor}" for major, minor in dict.fromkeys(kinds)]


def get_gencode_flags() -> str:
    """The architectures as nvcc's options would name them."""
    numbers = [arch.removeprefix("sm_") for arch in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU computes in bfloat16 (or XLA in its place)."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Whether the current GPU computes in TF32."""
    return is_available() and get_device_capability()[0] >= 8


def synchronize(device: Any = None) -> None:
    """Runs what was recorded, and waits for everything that was dispatched."""
    need()
    index_of(device)
    wait_for_all()


def ipc_collect() -> None:
    """Does nothing: tensors are not shared between processes."""
    need()


_sync_debug_mode = [0]
_SYNC_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Keeps the mode; only reads of values synchronize here, and none is refused."""
    need()
    mode = debug_mode
    if isinstance(mode, str):
        if mode not in _SYNC_MODES:
            raise RuntimeError(
                "invalid value of debug_mode, expected one of `default`, `warn`, "
                "`error`"
            )
        mode = _SYNC_MODES[mode]
    if mode:
        warnings.warn(
            "Synchronization debug mode is not supported: nothing is reported.",
            stacklevel=2,
        )
    _sync_debug_mode[0] = mode


def get_sync_debug_mode() -> int:
    """What `set_sync_debug_mode` set."""
    need()
    return _sync_debug_mode[0]


def nvml(*unused: Any) -> NoReturn:
    """Refused: temperature, power and the like are not known to JAX."""
    raise ModuleNotFoundError(
        "nvidia-ml-py does not seem to be installed or it can't be imported."
    )


def utilization(device: Any = None) -> int:
    """Refused with ModuleNotFoundError: needs nvidia-ml-py."""
    nvml()


def temperature(device: Any = None) -> int:
    """Refused with ModuleNotFoundError: needs nvidia-ml-py."""
    nvml()


def power_draw(device: Any = None) -> int:
    """Refused with ModuleNotFoundError: needs nvidia-ml-py."""
    nvml()


def clock_rate(device: Any = None) -> int:
    """Refused with ModuleNotFoundError: needs nvidia-ml-py."""
    nvml()


def memory_usage(device: Any = None) -> int:
    """Refused with ModuleNotFoundError: needs nvidia-ml-py."""
    nvml()


def device_memory_used(device: Any = None) -> int:
    """Refused with ModuleNotFoundError: needs nvidia-ml-py."""
    nvml()


def no_handles(what: str) -> NoReturn:
    """What JAX keeps to itself."""
    need()
    raise NotImplementedError(f"{what}: JAX does not hand out its libraries' handles")


def cudart() -> Any:
    """Refused: JAX does not hand out the CUDA runtime."""
    no_handles("torch.cuda.cudart")


def current_blas_handle() -> Any:
    """Refused: JAX does not hand out cuBLAS handles."""
    no_handles("torch.cuda.current_blas_handle")


def current_solver_handle() -> Any:
    """Refused: JAX does not hand out cuSOLVER handles."""
    no_handles("torch.cuda.current_solver_handle")
