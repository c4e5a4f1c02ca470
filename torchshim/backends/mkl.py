"""MKL, which is not used: `torch.backends.mkl`."""

from __future__ import annotations

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether PyTorch was built with MKL: no."""
    return False


class verbose:
    """Would print what MKL does within a block; there is nothing to print."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *exc_info: object) -> bool:
        return False
