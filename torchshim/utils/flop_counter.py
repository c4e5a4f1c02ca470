"""Counting operations: not supported, XLA rewrites what is recorded."""

from torchshim._errors import unsupported

__all__ = ["FlopCounterMode"]

FlopCounterMode = unsupported(
    "utils.flop_counter.FlopCounterMode", "modes do not see what backward does"
)
