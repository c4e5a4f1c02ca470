"""cuSPARSELt, which is not used: `torch.backends.cusparselt`."""

from __future__ import annotations

__all__ = ["get_max_alg_id", "is_available", "version"]


def version() -> int | None:
    """The version of cuSPARSELt: None."""
    return None


def is_available() -> bool:
    """Whether PyTorch was built with cuSPARSELt: no."""
    return False


def get_max_alg_id() -> int | None:
    """How many algorithms cuSPARSELt has: None."""
    return None
