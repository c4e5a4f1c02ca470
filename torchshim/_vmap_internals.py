"""`vmap`, by the place that it once had in PyTorch (``torch._vmap_internals``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim import _warnings as warnings
from torchshim._functions.vmap import plain_vmap


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Any:
    """As `torch.vmap`, with a warning that names it."""
    warnings.warn(
        "Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.",
        FutureWarning,
        stacklevel=2,
    )
    return _vmap(func, in_dims, out_dims)


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Any:
    """As `torch.vmap`, but custom functions do not see it."""
    return plain_vmap(func, in_dims, out_dims)
