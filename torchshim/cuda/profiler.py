"""CUDA's profiler, which is refused: use `torch.profiler` or JAX's own."""

from __future__ import annotations

from typing import NoReturn

from torchshim.cuda._devices import need

__all__ = ["init", "profile", "start", "stop"]


def _refuse() -> NoReturn:
    need()
    raise NotImplementedError(
        "torch.cuda.profiler: use jax.profiler.start_trace and stop_trace"
    )


def init(*args: object, **kwargs: object) -> None:
    """Refused."""
    _refuse()


def start() -> None:
    """Refused."""
    _refuse()


def stop() -> None:
    """Refused."""
    _refuse()


def profile() -> None:
    """Refused."""
    _refuse()
