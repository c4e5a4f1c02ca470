"""NCCL, which is not used directly: `torch.cuda.nccl`."""

from __future__ import annotations

from typing import Any

from torchshim._functions._arguments import warn
from torchshim.cuda._devices import no_binding

__all__ = ["is_available"]


def is_available(tensors: Any) -> bool:
    """False: JAX talks to NCCL by itself."""
    warn("PyTorch is not compiled with NCCL support")
    return False


def version() -> tuple[int, ...]:
    """NCCL's version, which PyTorch's own library would tell."""
    no_binding("_nccl_version")


def unique_id() -> bytes:
    """A name of a group of processes, which PyTorch's own library would make."""
    no_binding("_nccl_unique_id")
