"""Whether mixed precision can be had on GPUs."""

from __future__ import annotations

from torchshim._core.device import device_count

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """True where JAX sees no GPU."""
    return not device_count("cuda")
