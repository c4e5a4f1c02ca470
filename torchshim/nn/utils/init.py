"""Modules whose parameters are not filled."""

from __future__ import annotations

import inspect
from typing import Any

from torchshim.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters hold anything, as nothing initialized them.

    RuntimeError for classes without an argument `device`. Follows
    ``torch.nn.utils.skip_init``.

    >>> import torchshim as torch
    >>> skip_init(torch.nn.Linear, 2, 3).weight.shape
    torch.Size([3, 2])
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
