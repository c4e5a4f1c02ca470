"""oneDNN's settings. XLA takes its place, so that it is never available.

Follows https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-mkldnn.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from torchshim._functions._arguments import warn
from torchshim._settings import check_bool
from torchshim.backends import _module

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "flags", "is_available", "set_flags", "verbose"]

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2


def is_available() -> bool:
    """Whether PyTorch was built with oneDNN: no."""
    return False


class verbose:
    """Would print what oneDNN does within a block; there is nothing to print."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc_info: object) -> bool:
        return False


class MkldnnModule(_module.Settings):
    """The module's attributes that are settings."""

    enabled = _module.Switch(True, "set_enabled_mkldnn")
    deterministic = _module.Switch(False, "set_deterministic_mkldnn")
    matmul = _module.Fp32Precision("mkldnn", "matmul")
    conv = _module.Fp32Precision("mkldnn", "conv")
    rnn = _module.Fp32Precision("mkldnn", "rnn")
    fp32_precision = _module.fp32_precision("mkldnn", "all")

    @property
    def allow_tf32(self) -> None:
        return None

    @allow_tf32.setter
    def allow_tf32(self, value: Any) -> None:
        check_bool("_set_onednn_allow_tf32", value)
        warn(
            "TF32 acceleration on top of oneDNN is available for Intel GPUs. The "
            "current Torch version does not have Intel GPU Support. (Triggered "
            "internally at /__w/pytorch/pytorch/aten/src/ATen/Context.cpp:265.)"
        )


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Changes several settings; what they were before."""
    module: Any = sys.modules[__name__]
    before = module.enabled, module.deterministic, False, module.fp32_precision
    changed = _module.given(
        enabled=_enabled,
        deterministic=_deterministic,
        allow_tf32=_allow_tf32,
        fp32_precision=_fp32_precision,
    )
    _module.put(__name__, changed)
    return before


def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool | None = None,
    fp32_precision: str = "none",
) -> contextlib.AbstractContextManager[None]:
    """Settings within a block. As in PyTorch, what is not named is the default."""
    return _module.temporarily(
        set_flags, enabled, deterministic, allow_tf32, fp32_precision
    )


_module.turn(__name__, MkldnnModule)
