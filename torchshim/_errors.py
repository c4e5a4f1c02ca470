"""The kinds of errors that PyTorch has of its own."""

from __future__ import annotations

from typing import Any

__all__ = ["AcceleratorError", "OutOfMemoryError"]


class OutOfMemoryError(RuntimeError):
    """A device has no room left."""


class AcceleratorError(RuntimeError):
    """A device failed."""


for _kind in (OutOfMemoryError, AcceleratorError):
    _kind.__module__ = "torch"


class Unsupported(NotImplementedError):
    """What PyTorch has and torchshim does not; test cases are skipped by it."""


def unsupported(name: str, reason: str) -> Any:
    """A class that can be imported and named, and refuses to be made or called."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise Unsupported(f"torch.{name} is not supported: {reason}")

    module, _, short = f"torch.{name}".rpartition(".")
    return type(short, (), {"__init__": refuse, "__module__": module})
