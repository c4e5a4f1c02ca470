"""Which of JAX's devices a program runs on, and how arrays get to one.

A recording is of one device (`State.device`), and so is its program. No array is
committed to a device: what a program takes from another one (a number on the CPU that
is multiplied by a tensor on a GPU) JAX moves to where the program runs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax

from torchshim._core.device import JaxDevice, device, jax_device


def place_of(where: device | None) -> JaxDevice | None:
    """JAX's device for programs on a device; None: its default one, or any."""
    if where is None or where.type == "meta":
        return None
    found = jax_device(where)
    return None if found == jax.devices()[0] else found


def computing_on(place: JaxDevice | None) -> AbstractContextManager[Any]:
    """What JAX computes within is computed on a device that `place_of` gave."""
    return nullcontext() if place is None else jax.default_device(place)


def put(array: Any, where: device) -> Any:
    """An array on a device; uncommitted, like the results of programs."""
    with computing_on(place_of(where)):
        return jax.device_put(array)


def platform() -> str:
    """The platform that JAX computes on here: "cpu", "gpu" or "tpu"."""
    place: Any = getattr(jax.config, "jax_default_device", None)
    if place is None:
        return jax.default_backend()
    return place.partition(":")[0] if isinstance(place, str) else place.platform
