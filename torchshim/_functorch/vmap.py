"""`vmap`, by its place in PyTorch."""

from __future__ import annotations

from torchshim._errors import unsupported
from torchshim._functions.vmap import vmap

__all__ = ["restore_vmap", "vmap"]

restore_vmap = unsupported(
    "_functorch.vmap.restore_vmap", "where `vmap` has put its dimension is not told"
)
