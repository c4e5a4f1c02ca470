"""Windows for signals: https://docs.pytorch.org/docs/2.13/signal.html."""

from torchshim.signal import windows

__all__ = ["windows"]
