"""PyTorch's functions by the name that copies of its layers call them by."""

from __future__ import annotations

from typing import Any

from torchshim._derived import namespace

_functions = namespace("torch")


def __getattr__(name: str) -> Any:
    try:
        return _functions[name]
    except KeyError:
        raise AttributeError(
            f"'torch._C._VariableFunctionsClass' object has no attribute '{name}'"
        ) from None
