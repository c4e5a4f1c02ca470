"""Engines of quantized operators. `torch.backends.quantized`.

PyTorch has its products of integers from one of several libraries. Here they are the
same under each name; programs ask by it for an engine's settings.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from torchshim.backends import _module

__all__: list[str] = []

_ENGINES = ("qnnpack", "onednn", "x86", "fbgemm")
_chosen = ["x86"]


class QuantizedModule(ModuleType):
    """The module's attributes that are settings."""

    @property
    def supported_engines(self) -> list[str]:
        return [*_ENGINES]

    @supported_engines.setter
    def supported_engines(self, value: Any) -> None:
        raise RuntimeError("Assignment not supported")

    @property
    def engine(self) -> str:
        return _chosen[0]

    @engine.setter
    def engine(self, value: Any) -> None:
        if value in ("none", "", None):
            raise RuntimeError("quantized engine NoQEngine is not supported")
        if value not in _ENGINES:
            raise RuntimeError(f"{value} is not a valid value for quantized engine")
        _chosen[0] = value


_module.turn(__name__, QuantizedModule)
