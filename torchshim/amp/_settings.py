"""Autocast's switches of one thread, as `torch.is_autocast_enabled` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim import _autocast
from torchshim._autocast import DEFAULTS, settings
from torchshim._core.device import device
from torchshim._core.dtypes import dtype as DType
from torchshim._core.record import local
from torchshim._functions._arguments import kind_of, missing, warn, wrong

__all__ = [
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "get_autocast_ipu_dtype",
    "get_autocast_xla_dtype",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "is_autocast_ipu_enabled",
    "is_autocast_xla_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
    "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled",
    "set_autocast_xla_dtype",
    "set_autocast_xla_enabled",
]

_MISSING: Any = object()
_NO_KEY = (
    "unknown device type for autocast in get_autocast_dispatch_key_from_device_type"
)


def device_type(function: str, value: Any) -> str:
    """The type of the device that a string names."""
    if not isinstance(value, str):
        raise TypeError(wrong(function, "device_type", 1, "str", value))
    return device(value).type


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a device type, in this thread.

    >>> is_autocast_enabled("cpu")
    False
    """
    kind = _device_type("is_autocast_enabled", device_type)
    if kind not in DEFAULTS:
        raise RuntimeError(_NO_KEY)
    return settings.enabled.get(kind, False)


_device_type = device_type


def set_autocast_enabled(
    device_type: Any = _MISSING, enabled: Any = _MISSING, /, **named: Any
) -> None:
    """Switches autocast for a device type (given alone, `enabled` is that of CUDA)."""
    kind = named.pop("device_type", device_type)
    on = named.pop("enabled", enabled)
    if named:
        raise TypeError(
            "set_autocast_enabled() got an unexpected keyword argument "
            f"'{next(iter(named))}'"
        )
    if on is _MISSING:
        if kind is _MISSING:
            raise TypeError(
                "set_autocast_enabled() received an invalid combination of arguments - "
                "got (), but expected one of:\n * (str device_type, bool enabled)\n * "
                "(bool enabled)\n"
            )
        if not isinstance(kind, bool):
            raise TypeError(wrong("set_autocast_enabled", "enabled", 1, "bool", kind))
        kind, on = "cuda", kind
    elif kind is _MISSING:
        kind = "cuda"
    if not isinstance(on, bool):
        raise TypeError(wrong("set_autocast_enabled", "enabled", 2, "bool", on))
    kind = _device_type("set_autocast_enabled", kind)
    if kind not in DEFAULTS:
        raise RuntimeError(_NO_KEY)
    local.rec.about_to_change()
    settings.enabled[kind] = on
    _autocast.apply()


def get_autocast_dtype(device_type: str) -> DType:
    """The dtype that autocast computes in on a device type.

    >>> get_autocast_dtype("cpu")
    torch.bfloat16
    """
    kind = _device_type("get_autocast_dtype", device_type)
    found = settings.dtypes.get(kind) or DEFAULTS.get(kind)
    if found is None:
        if kind == "hip":
            return DEFAULTS["cuda"]
        raise RuntimeError("unsupported scalarType")
    return found


def set_autocast_dtype(device_type: str, dtype: DType = _MISSING) -> None:
    """Sets the dtype that autocast computes in on a device type."""
    if dtype is _MISSING:
        raise missing("set_autocast_dtype", "dtype")
    if not isinstance(dtype, DType):
        raise TypeError(wrong("set_autocast_dtype", "dtype", 2, "torch.dtype", dtype))
    kind = _device_type("set_autocast_dtype", device_type)
    local.rec.about_to_change()
    settings.dtypes[kind] = dtype
    _autocast.apply()


def is_autocast_cache_enabled() -> bool:
    """Whether a parameter is cast once a region rather than at every use."""
    return settings.cache_enabled


def _check_switch(value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"enabled must be a bool (got {kind_of(value)})")


def set_autocast_cache_enabled(enabled: bool, /) -> None:
    """Whether a parameter is to be cast once a region."""
    _check_switch(enabled)
    local.rec.about_to_change()
    settings.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Forgets the parameters that were cast."""
    settings.casts.clear()


def autocast_increment_nesting() -> int:
    """Enters a region; how deep the thread is then."""
    settings.nesting += 1
    return settings.nesting


def autocast_decrement_nesting() -> int:
    """Leaves a region; how deep the thread is then."""
    settings.nesting -= 1
    return settings.nesting


# Deprecated names, one for each device type -----------------------------------

# The lines that PyTorch's warnings name, in init.cpp.
_LINES = {
    "set_autocast_cpu_enabled": 874,
    "is_autocast_cpu_enabled": 883,
    "set_autocast_ipu_enabled": 900,
    "is_autocast_ipu_enabled": 909,
    "set_autocast_xla_enabled": 926,
    "is_autocast_xla_enabled": 935,
    "set_autocast_gpu_dtype": 952,
    "set_autocast_cpu_dtype": 967,
    "set_autocast_ipu_dtype": 982,
    "set_autocast_xla_dtype": 997,
    "get_autocast_gpu_dtype": 1007,
    "get_autocast_cpu_dtype": 1016,
    "get_autocast_ipu_dtype": 1025,
    "get_autocast_xla_dtype": 1034,
}
_CHANGED = {"dtype": set_autocast_dtype, "enabled": set_autocast_enabled}
_ASKED = {"dtype": get_autocast_dtype, "enabled": is_autocast_enabled}


def _say(name: str, argument: str, instead: str) -> None:
    warn(
        f"torch.{name}({argument}) is deprecated. Please use torch.{instead} instead. "
        "(Triggered internally at /__w/pytorch/pytorch/torch/csrc/autograd/init.cpp:"
        f"{_LINES[name]}.)",
        DeprecationWarning,
    )


def _setter(short: str, what: str) -> Callable[[Any], None]:
    name, kind = f"set_autocast_{short}_{what}", "cuda" if short == "gpu" else short

    def setter(value: Any, /) -> None:
        if what == "enabled":
            _check_switch(value)
        elif not isinstance(value, DType):
            raise TypeError(f"dtype must be a torch.dtype (got {kind_of(value)})")
        _say(name, what, f"set_autocast_{what}('{kind}', {what})")
        _CHANGED[what](kind, value)

    setter.__name__ = setter.__qualname__ = name
    setter.__doc__ = f"Deprecated: `set_autocast_{what}` for '{kind}'."
    return setter


def _getter(short: str, what: str) -> Callable[[], Any]:
    prefix = "is" if what == "enabled" else "get"
    name, kind = (
        f"{prefix}_autocast_{short}_{what}",
        "cuda" if short == "gpu" else short,
    )

    def getter() -> Any:
        _say(name, "", f"{prefix}_autocast_{what}('{kind}')")
        return _ASKED[what](kind)

    getter.__name__ = getter.__qualname__ = name
    getter.__doc__ = f"Deprecated: `{prefix}_autocast_{what}` for '{kind}'."
    return getter


set_autocast_cpu_enabled = _setter("cpu", "enabled")
set_autocast_ipu_enabled = _setter("ipu", "enabled")
set_autocast_xla_enabled = _setter("xla", "enabled")
is_autocast_cpu_enabled = _getter("cpu", "enabled")
is_autocast_ipu_enabled = _getter("ipu", "enabled")
is_autocast_xla_enabled = _getter("xla", "enabled")
set_autocast_gpu_dtype = _setter("gpu", "dtype")
set_autocast_cpu_dtype = _setter("cpu", "dtype")
set_autocast_ipu_dtype = _setter("ipu", "dtype")
set_autocast_xla_dtype = _setter("xla", "dtype")
get_autocast_gpu_dtype = _getter("gpu", "dtype")
get_autocast_cpu_dtype = _getter("cpu", "dtype")
get_autocast_ipu_dtype = _getter("ipu", "dtype")
get_autocast_xla_dtype = _getter("xla", "dtype")
