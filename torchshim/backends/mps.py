"""Apple's GPUs, which JAX does not reach here: `torch.backends.mps`."""

from __future__ import annotations

__all__ = [
    "get_core_count",
    "get_name",
    "is_available",
    "is_built",
    "is_macos13_or_newer",
    "is_macos_or_newer",
]


def is_built() -> bool:
    """Whether PyTorch was built with MPS: no."""
    return False


def is_available() -> bool:
    """Whether there is a GPU for MPS: no."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Raises RuntimeError, as a PyTorch without MPS does."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Raises RuntimeError, as a PyTorch without MPS does."""
    return is_macos_or_newer(13, minor)


def get_name() -> str:
    """Raises RuntimeError: there is no GPU of which to tell the name."""
    raise RuntimeError("Cannot execute getName() without MPS backend.")


def get_core_count() -> int:
    """Raises RuntimeError: there is no GPU of which to count the cores."""
    raise RuntimeError("Cannot execute getCoreCount() without MPS backend.")
