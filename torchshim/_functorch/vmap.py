"""`vmap`, by its place in PyTorch."""

from __future__ import annotations

from torchshim._functions.vmap import restore_vmap, vmap

__all__ = ["restore_vmap", "vmap"]
