"""Numbers of GPUs, as `torch.cuda._utils` tells them."""

from __future__ import annotations

from typing import Any

from torchshim._core.device import device as Device
from torchshim._device_index import _get_device_index as _index_of_any
from torchshim.cuda._devices import device as _Block


def _get_device_index(
    device: Any, optional: bool = False, allow_cpu: bool = False
) -> Any:
    """The number of a GPU; ValueError for a device of another type.

    Of None the current GPU, where `optional` allows it; -1 of the CPU, where
    `allow_cpu` does.
    """
    if isinstance(device, str):
        device = Device(device)
    if isinstance(device, Device):
        allowed = ("cuda", "cpu") if allow_cpu else ("cuda",)
        if device.type not in allowed:
            kinds = " or ".join(allowed)
            raise ValueError(f"Expected a {kinds} device, but got: {device}")
    if isinstance(device, _Block):
        return device.idx
    return _index_of_any(device, optional, allow_cpu)
