"""Errors of `torch.compile`."""

from __future__ import annotations

__all__ = ["InvalidBackend", "TorchDynamoException", "Unsupported"]


class TorchDynamoException(RuntimeError):
    """What compiling raises."""


class InvalidBackend(TorchDynamoException):
    """A backend that there is not."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for "
            "available backends."
        )


class Unsupported(TorchDynamoException):
    """What PyTorch's compiler refuses; here nothing is refused."""
