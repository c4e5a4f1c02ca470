"""Dimensions as objects: not supported, `torch.func.rearrange` has patterns."""

from __future__ import annotations

from torchshim._errors import unsupported
from torchshim.func._rearrange import DimensionBindError

__all__ = [
    "Dim",
    "DimList",
    "DimensionBindError",
    "DimensionMismatchError",
    "Tensor",
    "cat",
    "dimlists",
    "dims",
    "split",
    "stack",
]


class DimensionMismatchError(Exception):
    """Two dimensions that ought to be one."""


_REASON = "torch.func.rearrange names dimensions by patterns"
Dim = unsupported("functorch.dim.Dim", _REASON)
DimList = unsupported("functorch.dim.DimList", _REASON)
Tensor = unsupported("functorch.dim.Tensor", _REASON)
cat = unsupported("functorch.dim.cat", _REASON)
dimlists = unsupported("functorch.dim.dimlists", _REASON)
dims = unsupported("functorch.dim.dims", _REASON)
split = unsupported("functorch.dim.split", _REASON)
stack = unsupported("functorch.dim.stack", _REASON)
