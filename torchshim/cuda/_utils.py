"""Numbers of GPUs, as `torch.cuda._utils` tells them."""

from __future__ import annotations

from typing import Any

from torchshim._core import device as devices
from torchshim.cuda._devices import device as _Device
from torchshim.cuda._devices import index_of


def _get_device_index(
    device: Any, optional: bool = False, allow_cpu: bool = False
) -> int:
    """The number of a GPU; ValueError for a device of another type.

    Of None the current GPU, where `optional` allows it; -1 of the CPU, where
    `allow_cpu` does.
    """
    if isinstance(device, _Device):
        device = device.idx
    elif isinstance(device, (str, devices.device)) and allow_cpu:
        device = devices.device(device)
        if device.type not in ("cuda", "cpu"):
            raise ValueError(f"Expected a cuda or cpu device, but got: {device}")
    return index_of(device, optional, allow_cpu)
