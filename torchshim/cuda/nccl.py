"""NCCL, which is not used directly: `torch.cuda.nccl`."""

from __future__ import annotations

from typing import Any

from torchshim._functions._arguments import warn

__all__ = ["is_available"]


def is_available(tensors: Any) -> bool:
    """False: JAX talks to NCCL by itself."""
    warn("PyTorch is not compiled with NCCL support")
    return False
