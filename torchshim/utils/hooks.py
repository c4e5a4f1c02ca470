"""Handles of hooks, and the machinery of full backward hooks."""

from torchshim._hooks import (
    RemovableHandle,
    unserializable_hook,
    warn_if_has_hooks,
)
from torchshim.nn.modules._backward_hooks import BackwardHook

__all__ = [
    "BackwardHook",
    "RemovableHandle",
    "unserializable_hook",
    "warn_if_has_hooks",
]
