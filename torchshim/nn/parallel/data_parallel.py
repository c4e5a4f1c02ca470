"""A module whose inputs PyTorch divides among GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain as chain
from typing import Any

import torchshim
from torchshim._device_index import _get_all_device_indices as _get_all_device_indices
from torchshim._device_index import (
    _get_available_device_type as _get_available_device_type,
)
from torchshim._device_index import _get_device_index as _get_device_index
from torchshim._device_index import _get_devices_properties as _get_devices_properties
from torchshim._tensor import Tensor
from torchshim.nn.modules.module import Module
from torchshim.nn.parallel.parallel_apply import parallel_apply as parallel_apply
from torchshim.nn.parallel.replicate import replicate as replicate
from torchshim.nn.parallel.scatter_gather import gather as gather
from torchshim.nn.parallel.scatter_gather import scatter_kwargs as scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _devices(device_ids: Sequence[Any] | None) -> list[Any]:
    """The devices asked for; without accelerators there are none."""
    count = torchshim.cuda.device_count()
    if not count:
        return []
    asked = list(range(count)) if device_ids is None else list(device_ids)
    found = []
    for each in asked:
        device = torchshim.device("cuda", each) if isinstance(each, int) else each
        found.append(torchshim.device(device))
    if len(found) > 1:
        raise NotImplementedError(
            "DataParallel over several devices is not supported: give one in device_ids"
        )
    return found


def _moved(value: Any, device: Any) -> Any:
    """What stands in an argument, on a device."""
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {k: _moved(v, device) for k, v in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_moved(v, device) for v in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(v, device) for v in value)
    return value


class DataParallel(Module):
    """A module on one device; its inputs are moved there.

    Without accelerators it hands everything to the module, as in PyTorch. Several
    devices raise NotImplementedError. Follows ``torch.nn.DataParallel``.

    >>> import torchshim as torch
    >>> m = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    >>> m(torch.zeros(4, 2)).shape, list(m.state_dict())
    (torch.Size([4, 3]), ['module.weight', 'module.bias'])
    """

    module: Module

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        devices = _devices(device_ids)
        self.module = module
        self.device_ids = [device.index for device in devices]
        if not devices:
            return
        self.dim = dim
        self.output_device = (
            devices[0].index if output_device is None else output_device
        )
        self.src_device_obj = devices[0]
        module.to(devices[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self.device_ids:
            inputs = _moved(inputs, self.src_device_obj)
            kwargs = _moved(kwargs, self.src_device_obj)
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Calls a module on a device; RuntimeError where there is no accelerator."""
    devices = _devices(device_ids)
    if not devices:
        raise RuntimeError("device type could not be determined")
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    given = _moved(given if inputs is not None else (), devices[0])
    return module(*given, **_moved(module_kwargs or {}, devices[0]))
