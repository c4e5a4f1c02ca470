"""Settings of CUDA's libraries, in whose place XLA chooses: `torch.backends.cuda`.

Follows https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-cuda.
`matmul.allow_tf32` and `matmul.fp32_precision` are honoured on accelerators.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any, NoReturn

from torchshim._core.device import device_count
from torchshim._core.precision import precision
from torchshim._functions._arguments import kind_of, warn
from torchshim._functions.nn_attention import sdp_switches as _sdp
from torchshim._settings import changing_precision, check_bool

__all__ = [
    "SDPAParams",
    "SDPBackend",
    "allow_fp16_bf16_reduction_math_sdp",
    "blas_workspace_size",
    "can_use_cudnn_attention",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cuBLASModule",
    "cuFFTPlanCache",
    "cuFFTPlanCacheManager",
    "cublas_workspace_size",
    "cublaslt_workspace_size",
    "cudnn_sdp_enabled",
    "cufft_plan_cache",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed",
    "is_built",
    "is_ck_sdpa_available",
    "is_flash_attention_available",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_blas_library",
    "preferred_linalg_library",
    "preferred_rocm_fa_library",
    "sdp_kernel",
]


def is_built() -> bool:
    """Whether JAX was installed with support for the GPUs of this machine."""
    return device_count("cuda") > 0


# Products ---------------------------------------------------------------------


class cuBLASModule:
    """`torch.backends.cuda.matmul`: how exactly products are computed."""

    _REDUCTIONS = (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
    )

    def __init__(self) -> None:
        # XLA accumulates half types in float32 whatever is allowed.
        for name in self._REDUCTIONS:
            object.__setattr__(self, "_" + name, True)
        object.__setattr__(self, "_allow_fp16_accumulation", False)

    def __getattr__(self, name: str) -> Any:
        if name == "allow_tf32":
            return precision.tf32_matmul()
        if name == "fp32_precision":
            return precision.get("cuda", "matmul")
        if name in (*self._REDUCTIONS, "allow_fp16_accumulation"):
            return self.__dict__["_" + name]
        raise AttributeError("Unknown attribute " + name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            check_bool("set_allow_tf32_cublas", value)
            with changing_precision() as chosen:
                chosen.set_tf32_matmul(value)
        elif name == "fp32_precision":
            if not isinstance(value, str):
                raise TypeError(f"fp32_precision must be str, not {kind_of(value)}")
            with changing_precision() as chosen:
                chosen.set("cuda", "matmul", value)
        elif name == "allow_fp16_accumulation":
            check_bool("set_allow_fp16_accumulation_cublas", value)
            self.__dict__["_" + name] = value
        elif name in self._REDUCTIONS:
            self.__dict__["_" + name] = _reduction(name, value)
        else:
            raise AttributeError("Unknown attribute " + name)


def _reduction(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, (tuple, list)) and all(isinstance(v, bool) for v in value):
        if value:
            return value[0]
    raise TypeError(
        f"{name} expects a bool or a tuple/list of bools, but got {type(value)}"
    )


matmul = cuBLASModule()


# Plans of Fourier transforms --------------------------------------------------


class cuFFTPlanCache:
    """The plans of one GPU: XLA keeps them with its programs, so none are here."""

    def __init__(self, device_index: int) -> None:
        self.device_index = device_index
        self.max_size = 4096

    @property
    def size(self) -> int:
        return 0

    def clear(self) -> None:
        """Forgets no plan, as there is none."""


class cuFFTPlanCacheManager:
    """The plan caches of all GPUs; itself that of the current one."""

    def __init__(self) -> None:
        self._caches: dict[int, cuFFTPlanCache] = {}

    def __getitem__(self, device: Any) -> cuFFTPlanCache:
        from torchshim.cuda._devices import index_of

        index = device if isinstance(device, int) else index_of(device)
        count = device_count("cuda")
        if not 0 <= index < count:
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {count}, but got "
                f"device with index {index}"
            )
        if index not in self._caches:
            self._caches[index] = cuFFTPlanCache(index)
        return self._caches[index]

    def _current(self) -> cuFFTPlanCache:
        from torchshim.cuda import current_device

        return self[current_device()]

    @property
    def size(self) -> int:
        return self._current().size

    @property
    def max_size(self) -> int:
        return self._current().max_size

    @max_size.setter
    def max_size(self, value: int) -> None:
        self._current().max_size = value

    def clear(self) -> None:
        """Forgets the plans of the current GPU."""
        self._current().clear()


cufft_plan_cache = cuFFTPlanCacheManager()


# Libraries --------------------------------------------------------------------


class _Backend(enum.IntEnum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class _LinalgBackend(_Backend):
    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(_Backend):
    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


class _ROCmFABackend(_Backend):
    Default = 0
    AOTriton = 1
    Ck = 2


_LINALG = {
    "default": _LinalgBackend.Default,
    "cusolver": _LinalgBackend.Cusolver,
    "magma": _LinalgBackend.Magma,
}
_BLAS = {
    "default": _BlasBackend.Default,
    "cublas": _BlasBackend.Cublas,
    "hipblas": _BlasBackend.Cublas,
    "cublaslt": _BlasBackend.Cublaslt,
    "hipblaslt": _BlasBackend.Cublaslt,
    "ck": _BlasBackend.Ck,
}
_ROCM_FA = {
    "default": _ROCmFABackend.Default,
    "aotriton": _ROCmFABackend.AOTriton,
    "ck": _ROCmFABackend.Ck,
}
_preferred: dict[str, Any] = {
    "linalg": _LinalgBackend.Default,
    "blas": _BlasBackend.Cublas,
    "rocm_fa": _ROCmFABackend.Default,
}


def _prefer(what: str, known: dict[str, Any], backend: Any) -> Any:
    if isinstance(backend, str):
        if backend not in known:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
        _preferred[what] = known[backend]
    elif backend in known.values() and isinstance(backend, enum.IntEnum):
        _preferred[what] = backend
    elif backend is not None:
        raise RuntimeError("Unknown input value type.")
    return _preferred[what]


def preferred_linalg_library(backend: Any = None) -> Any:
    """Keeps which library is preferred; XLA chooses."""
    if backend in ("magma", _LinalgBackend.Magma):
        raise RuntimeError(
            "Cannot set preferred backend to MAGMA if PyTorch has not been compiled "
            "with MAGMA."
        )
    return _prefer("linalg", _LINALG, backend)


def preferred_blas_library(backend: Any = None) -> Any:
    """Keeps which library is preferred; XLA chooses."""
    return _prefer("blas", _BLAS, backend)


def preferred_rocm_fa_library(backend: Any = None) -> Any:
    """Keeps which library is preferred; XLA chooses."""
    return _prefer("rocm_fa", _ROCM_FA, backend)


def _no_workspace() -> NoReturn:
    raise NotImplementedError(
        "XLA decides about the workspaces of CUDA's libraries; torchshim cannot tell "
        "or set their sizes"
    )


def blas_workspace_size(size: int | None = None, backend: Any = None) -> int:
    """Raises NotImplementedError: XLA decides about workspaces."""
    _no_workspace()


def cublas_workspace_size(size: int | None = None) -> int:
    """Raises NotImplementedError: XLA decides about workspaces."""
    _no_workspace()


def cublaslt_workspace_size(size: int | None = None) -> int:
    """Raises NotImplementedError: XLA decides about workspaces."""
    _no_workspace()


# Attention --------------------------------------------------------------------

# XLA chooses how attention is computed: the switches change no result.


def _enable(name: str, setter: str, enabled: bool) -> None:
    check_bool(setter, enabled)
    _sdp[name] = enabled


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` set."""
    return _sdp["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Keeps whether flash attention may be used."""
    _enable("flash", "set_sdp_use_flash", enabled)


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` set."""
    return _sdp["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Keeps whether memory-efficient attention may be used."""
    _enable("mem_efficient", "set_sdp_use_mem_efficient", enabled)


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` set."""
    return _sdp["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Keeps whether attention may be composed of other operators."""
    _enable("math", "set_sdp_use_math", enabled)


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` set."""
    return _sdp["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Keeps whether cuDNN's attention may be used."""
    _enable("cudnn", "set_sdp_use_cudnn", enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """What `allow_fp16_bf16_reduction_math_sdp` set."""
    return _sdp["fp16_bf16_reduction"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Keeps whether half types may be reduced as such; they never are."""
    _enable("fp16_bf16_reduction", "set_sdp_use_math", enabled)


def is_flash_attention_available() -> bool:
    """Whether PyTorch was built with flash attention: no."""
    return False


def is_ck_sdpa_available() -> bool:
    """Whether PyTorch was built with composable kernels: no."""
    return False


class SDPBackend(enum.Enum):
    """The kernels of scaled dot product attention."""

    __module__ = "torchshim.nn.attention"

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


class SDPAParams:
    """The arguments of an attention, for questions about kernels."""

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any,
        dropout: float,
        is_causal: bool,
        enable_gqa: bool,
        /,
    ) -> None:
        self.query, self.key, self.value = query, key, value
        self.attn_mask, self.dropout = attn_mask, dropout
        self.is_causal, self.enable_gqa = is_causal, enable_gqa


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """Whether PyTorch's flash attention would take these arguments: no."""
    return False


def can_use_efficient_attention(params: Any, debug: bool = False) -> bool:
    """Whether PyTorch's memory-efficient attention would take these arguments: no."""
    return False


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """Whether cuDNN's attention would take these arguments: no."""
    return False


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> contextlib.AbstractContextManager[dict[str, Any]]:
    """Deprecated: the four switches within a block."""
    warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context "
        "manager will be removed. Please see `torch.nn.attention.sdpa_kernel()` for "
        "the new context manager, with updated signature.",
        FutureWarning,
    )
    return _sdp_kernel(enable_flash, enable_math, enable_mem_efficient, enable_cudnn)


@contextlib.contextmanager
def _sdp_kernel(*switches: bool) -> Iterator[dict[str, Any]]:
    before = dict(_sdp)
    try:
        enable_flash_sdp(switches[0])
        enable_math_sdp(switches[1])
        enable_mem_efficient_sdp(switches[2])
        enable_cudnn_sdp(switches[3])
        yield {}
    finally:
        _sdp.update(before)
