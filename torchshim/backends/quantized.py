"""Engines of quantized operators: none. `torch.backends.quantized`."""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

from torchshim.backends import _module

__all__: list[str] = []


class QuantizedModule(ModuleType):
    """The module's attributes that are settings."""

    supported_engines: tuple[str, ...] = ()

    @property
    def engine(self) -> str:
        return "none"

    @engine.setter
    def engine(self, value: Any) -> NoReturn:
        raise RuntimeError(
            f"quantized engine {value} is not supported: torchshim has no quantized "
            "operators"
        )


_module.turn(__name__, QuantizedModule)
