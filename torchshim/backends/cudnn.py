"""cuDNN's settings. XLA decides by itself when it uses cuDNN and how it tunes.

Follows https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-cudnn.
`allow_tf32` and `fp32_precision` are honoured on accelerators; `benchmark` and
`deterministic` are answered as they were set.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from torchshim._core.device import device_count
from torchshim._core.precision import precision
from torchshim._settings import changing_precision, check_bool
from torchshim._tensor import Tensor
from torchshim.backends import _module

__all__ = ["flags", "is_acceptable", "is_available", "set_flags", "version"]

CUDNN_TENSOR_DTYPES = ("torch.float16", "torch.float32", "torch.float64")


def version() -> int | None:
    """The version of cuDNN; None, as JAX does not tell it."""
    return None


def is_available() -> bool:
    """Whether there is a GPU for which XLA may use cuDNN."""
    return device_count("cuda") > 0


def is_acceptable(tensor: Tensor) -> bool:
    """Whether cuDNN may compute on a tensor."""
    return (
        tensor.device.type == "cuda"
        and str(tensor.dtype) in CUDNN_TENSOR_DTYPES
        and is_available()
        and _this().enabled
    )


class CudnnModule(_module.Settings):
    """The module's attributes that are settings."""

    enabled = _module.Switch(True, "set_enabled_cudnn")
    deterministic = _module.Switch(False, "set_deterministic_cudnn")
    benchmark = _module.Switch(False, "set_benchmark_cudnn")
    benchmark_limit: int | None = None
    depthwise_kernel = "auto"
    conv = _module.Fp32Precision("cuda", "conv")
    rnn = _module.Fp32Precision("cuda", "rnn")
    fp32_precision = _module.fp32_precision("cuda", "all")

    @property
    def allow_tf32(self) -> bool:
        return precision.tf32_cudnn()

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        check_bool("set_allow_tf32_cublas", value)
        with changing_precision() as chosen:
            chosen.set_tf32_cudnn(value)


def _this() -> Any:
    return sys.modules[__name__]


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
    _depthwise_kernel: str | None = None,
) -> tuple[Any, ...]:
    """Changes several settings; what they were before."""
    module = _this()
    before = (
        module.enabled,
        module.benchmark,
        None,
        module.deterministic,
        module.allow_tf32,
        module.fp32_precision,
        module.depthwise_kernel,
    )
    changed = _module.given(
        enabled=_enabled,
        benchmark=_benchmark,
        deterministic=_deterministic,
        allow_tf32=_allow_tf32,
        fp32_precision=_fp32_precision,
        depthwise_kernel=_depthwise_kernel,
    )
    _module.put(__name__, changed)
    return before


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> contextlib.AbstractContextManager[None]:
    """Settings within a block. As in PyTorch, what is not named is the default."""
    return _module.temporarily(
        set_flags,
        enabled,
        benchmark,
        benchmark_limit,
        deterministic,
        allow_tf32,
        fp32_precision,
        depthwise_kernel,
    )


_module.turn(__name__, CudnnModule)
