"""Copies of a module on several devices: one device goes."""

from __future__ import annotations

from collections import OrderedDict as OrderedDict
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._device_index import _get_device_index as _get_device_index
from torchshim.nn.modules.module import Module

__all__ = ["replicate"]


def replicate(
    network: Module, devices: Sequence[Any], detach: bool = False
) -> list[Module]:
    """The module on each of the devices: itself, on the one that it is on.

    ValueError for the CPU, AssertionError for a module on the CPU, NotImplementedError
    for several devices. Follows ``torch.nn.parallel.replicate``.
    """
    if not devices:
        return []
    for each in devices:
        if not isinstance(each, int) and torchshim.device(each).type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {each}")
    held = [*network.parameters(), *network.buffers()]
    if any(tensor.device.type == "cpu" for tensor in held):
        raise AssertionError("Broadcast function not implemented for CPU tensors")
    if len(devices) > 1 or detach:
        raise NotImplementedError("torchshim computes on one device only")
    return [network]
