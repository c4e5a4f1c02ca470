"""Numbers of devices, as PyTorch's own helpers tell them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchshim
from torchshim._core.device import device as Device


def _get_available_device_type() -> str | None:
    """The type of this machine's GPUs, if it has some."""
    return "cuda" if torchshim.cuda.is_available() else None


def _get_device_attr(get_member: Callable[[Any], Any]) -> Any:
    """What is asked of `torch.cuda`, where there are GPUs."""
    return get_member(torchshim.cuda) if torchshim.cuda.is_available() else None


def _get_current_device_index() -> Any:
    return _get_device_attr(lambda m: m.current_device())


def get_current_device_index() -> int:
    """The current GPU, -1 without one."""
    found = _get_current_device_index()
    return -1 if found is None else found


def _get_all_device_indices() -> Any:
    return _get_device_attr(lambda m: list(range(m.device_count())))


def _get_devices_properties(device_ids: Sequence[Any]) -> list[Any]:
    return [
        _get_device_attr(lambda m, i=i: m.get_device_properties(i)) for i in device_ids
    ]


def _get_device_index(
    device: Any, optional: bool = False, allow_cpu: bool = False
) -> Any:
    """The number of a device: of an integer, of a name, of a `torch.device`.

    The current GPU for None and for devices without a number, where `optional` allows
    these.
    """
    if isinstance(device, str):
        device = Device(device)
    index: Any = device if isinstance(device, int) else None
    if isinstance(device, Device):
        cpu = device.type == "cpu"
        if cpu and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if cpu else device.index
    if index is not None:
        return index
    if not optional:
        raise ValueError(
            "Expected a torch.device with a specified index or an integer, but "
            f"got:{device}"
        )
    return _get_current_device_index()


def _get_device_module(device_type: str) -> Any:
    """The module of a type of devices: `torch.cuda`."""
    found = getattr(torchshim, device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered "
            f"as 'torch.{device_type}'."
        )
    return found
