"""The device on which new tensors are made, as a mode (`torch.utils._device`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim._core.device import device as Device
from torchshim.overrides import TorchFunctionMode
from torchshim.utils._contextlib import context_decorator as context_decorator

_NAMES = (
    "empty empty_permuted empty_strided ones arange bartlett_window blackman_window eye"
    " fft.fftfreq fft.rfftfreq full hamming_window hann_window kaiser_window linspace "
    "logspace rand randn randint randperm range sparse_coo_tensor "
    "sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor "
    "sparse_bsc_tensor tril_indices triu_indices zeros asarray tensor as_tensor "
    "scalar_tensor"
)


@functools.lru_cache(1)
def _device_constructors() -> set[Callable[..., Any]]:
    """The functions that take the default device where none is given."""
    found = set()
    for name in _NAMES.split():
        outer, _, inner = name.rpartition(".")
        found.add(getattr(getattr(torchshim, outer) if outer else torchshim, inner))
    return found


class DeviceContext(TorchFunctionMode):
    """Gives a device to functions that make tensors, where none is given."""

    def __init__(self, device: Any) -> None:
        self.device = Device(device)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs = kwargs | {"device": self.device}
        return func(*args, **kwargs)


def device_decorator(device: Any, func: Any) -> Any:
    """A function, or a generator, within which a device is the default."""
    return context_decorator(lambda: device, func)


def set_device(device: Any) -> Callable[[Any], Any]:
    """Decorates functions that make their tensors on a device."""
    return lambda func: device_decorator(Device(device), func)
