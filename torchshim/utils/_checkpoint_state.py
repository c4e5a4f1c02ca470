"""What a checkpointed function's second run finds as in its first."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from torchshim import _warnings as warnings
from torchshim import accelerator, amp
from torchshim._core.device import device, get_default_device
from torchshim._core.placement import platform
from torchshim._core.random import of_device
from torchshim._core.record import local
from torchshim._core.state import CALL
from torchshim._tensor import Tensor
from torchshim.amp import _settings as autocast
from torchshim.utils._pytree import tree_leaves


class DefaultDeviceType:
    """The device type whose state is kept if no argument lies on an accelerator.

    https://docs.pytorch.org/docs/2.13/checkpoint.html
    """

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Chooses the type."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type chosen, else that of the machine's accelerator, else "cpu"."""
        if not DefaultDeviceType._default_device_type:
            found = accelerator.current_accelerator(True)
            DefaultDeviceType._default_device_type = found.type if found else "cpu"
        return DefaultDeviceType._default_device_type


def _elsewhere(args: Any) -> list[Any]:
    """The devices of tensors that are not on the CPU."""
    return [
        leaf.device
        for leaf in tree_leaves(args)
        if isinstance(leaf, Tensor) and leaf.device.type != "cpu"
    ]


def infer_device_type(*args: Any) -> str:
    """The type of the device that arguments lie on; warns if there are several."""
    types = [device.type for device in _elsewhere(args)]
    if len(set(types)) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two "
            "types of devices. Device state will only be saved for devices of a single "
            "device type, and the remaining devices will be ignored. Consequently, if "
            "any checkpointed functions involve randomness, this may result in "
            "incorrect gradients. (Note that if CUDA devices are among the devices "
            "detected, it will be prioritized; otherwise, the first device encountered "
            f"will be selected.)\nDevice types: {sorted(set(types))} first device "
            f"type: {types[0]}",
            stacklevel=2,
        )
    if not types:
        return DefaultDeviceType.get_device_type()
    return "cuda" if "cuda" in types else types[0]


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Numbers of the devices that arguments lie on, and their generators' states."""
    found = [d for d in _elsewhere(args) if d.type != "meta"]
    return [d.index for d in found], [of_device(d).get_state() for d in found]


def set_device_states(
    devices: Any, states: Any, *, device_type: str | None = None
) -> None:
    """Puts the generators of devices into these states."""
    if device_type is None:
        device_type = DefaultDeviceType.get_device_type()
    if device_type == "meta":
        return
    for index, state in zip(devices, states, strict=False):
        of_device(device(device_type, index)).set_state(state)


def forward_settings(device_type: str) -> Callable[[], Any]:
    """A context of autocast and the default device as they are now."""
    kinds = dict.fromkeys((device_type, "cpu"))
    casts = [
        {
            "device_type": kind,
            "enabled": autocast.is_autocast_enabled(kind),
            "dtype": autocast.get_autocast_dtype(kind),
            "cache_enabled": autocast.is_autocast_cache_enabled(),
        }
        for kind in kinds
        if amp.is_autocast_available(kind)
    ]
    device = get_default_device()

    @contextlib.contextmanager
    def settings() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for cast in casts:
                stack.enter_context(amp.autocast(**cast))
            stack.enter_context(device)
            yield

    return settings


# XLA's CPU compiler drops optimization barriers before it decides on an order, so that
# one program holds all at once what checkpointing is to compute one after the other.
# Where that is more than this, each second run begins a program of its own.
_LARGE = 4 * 2**20


class Size:
    """How much memory the values take that are recorded within it."""

    def __init__(self) -> None:
        self.bytes = 0

    def __enter__(self) -> None:
        self.start = local.rec.state

    def __exit__(self, *args: object) -> None:
        state = local.rec.state
        while state is not None and state is not self.start:
            for meta in state.metas if state.kind == CALL and not state.view else ():
                self.bytes += math.prod(meta.shape) * meta.dtype.itemsize
            state = state.parent

    def make_room(self) -> None:
        """Runs what was recorded so far, if what is to come is large."""
        rec = local.rec
        if self.bytes > _LARGE and not rec.levels and platform() == "cpu":
            rec.flush()
