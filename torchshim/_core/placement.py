"""Which of JAX's devices a program runs on, and how arrays get to one.

A recording is of one device (`State.device`), and so is its program. No array is
committed to a device: what a program takes from another one (a number on the CPU that
is multiplied by a tensor on a GPU) JAX moves to where the program runs.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

try:
    # What `device_put` comes to, which takes twenty times as long.
    from jax.core import ShapedArray
    from jaxlib.xla_client import batched_device_put
except ImportError:  # another release: it is no public name
    ShapedArray: Any = None
    batched_device_put = None

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
    place = place_of(where)
    if place is None and array.__class__ is np.ndarray:
        return put_default(array)
    with computing_on(place):
        return jax.device_put(array)


def put_default(array: np.ndarray) -> Any:
    """NumPy's array, which nobody will write to, on JAX's default device.

    >>> put_default(np.arange(3.0)).dtype
    dtype('float64')
    """
    with jax.enable_x64(True):
        if batched_device_put is not None and array.dtype.isnative:
            default: Any = getattr(jax.config, "jax_default_device", None)
            if default is None and (found := _default_cpu()) is not None:
                aval = ShapedArray(array.shape, array.dtype)
                where, sharding = found
                return batched_device_put(aval, sharding, [array], [where], False)
        return jax.device_put(array)


@functools.cache
def _default_cpu() -> tuple[JaxDevice, Any] | None:
    """JAX's default device, if it is a CPU, and the sharding of arrays on it."""
    [default, *_] = jax.devices()
    if default.platform != "cpu" or jax.process_count() > 1:
        return None
    return default, jax.sharding.SingleDeviceSharding(default)


def platform() -> str:
    """The platform that JAX computes on here: "cpu", "gpu" or "tpu"."""
    place: Any = getattr(jax.config, "jax_default_device", None)
    if place is None:
        return jax.default_backend()
    return place.partition(":")[0] if isinstance(place, str) else place.platform
