"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import Any

from torchshim.nn.modules.conv import (
    Conv2d,
    Conv3d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from torchshim.nn.modules.module import Module

__all__ = [
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
]


def _convert(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for each in module.modules():
        if isinstance(each, kinds):
            data = each.weight.detach().clone(memory_format=memory_format)
            each.weight.data = data
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Any:
    """Gives the weights of two-dimensional convolutions another memory format.

    Follows ``torch.nn.utils.convert_conv2d_weight_memory_format``.

    >>> import torchshim as torch
    >>> conv = torch.nn.Conv2d(2, 1, 2)
    >>> _ = convert_conv2d_weight_memory_format(conv, torch.channels_last)
    >>> conv.weight.stride()
    (8, 1, 4, 2)
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Any:
    """Gives the weights of three-dimensional convolutions another memory format.

    Follows ``torch.nn.utils.convert_conv3d_weight_memory_format``.
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
