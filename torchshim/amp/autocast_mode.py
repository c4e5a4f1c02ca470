"""Regions in which operators run in a lower precision where that is safe.

https://docs.pytorch.org/docs/2.13/amp.html#autocasting
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from torchshim import _warnings as warnings
from torchshim._autocast import DEFAULTS
from torchshim._core import dtypes
from torchshim._core.device import device_count
from torchshim._core.dtypes import dtype as DType
from torchshim._tensor import Tensor
from torchshim.amp import _settings

__all__ = [
    "autocast",
    "autocast_decorator",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]

_SUPPORTED = [dtypes.bfloat16, dtypes.float16]


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a device type.

    https://docs.pytorch.org/docs/2.13/amp.html#torch.amp.is_autocast_available

    >>> is_autocast_available("cpu"), is_autocast_available("meta")
    (True, False)
    """
    return _settings.device_type("_is_autocast_available", device_type) in DEFAULTS


def autocast_decorator(
    autocast_instance: autocast, func: Callable[..., Any]
) -> Callable[..., Any]:
    """`func`, called within a region."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """A region of mixed precision: a context manager and a decorator.

    Follows https://docs.pytorch.org/docs/2.13/amp.html#torch.autocast: products and
    convolutions run in `dtype`, what loses much by that in float32. Raises RuntimeError
    for a device type without autocast; where the dtype (or CUDA) is not available it
    warns and changes nothing.

    >>> import torchshim as torch
    >>> with torch.autocast("cpu"):
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: DType | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"Expected `device_type` of type `str`, got: `{type(device_type)}`"
            )
        self.fast_dtype = (
            _settings.get_autocast_dtype(device_type) if dtype is None else dtype
        )
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'"
            )
        self.custom_backend_name = "privateuseone"
        if device_type == self.custom_backend_name:
            raise AssertionError(
                f"Tried to use AMP with the `{device_type}` backend, but the backend "
                "has not registered a module or  the module miss some necessary funcs. "
                "The backend should register a module by "
                "`torch._register_device_module`, and the module must have these "
                "funcs: \n`get_amp_supported_dtype() -> List[torch.dtype]`. \n"
            )
        self._cache_enabled = (
            _settings.is_autocast_cache_enabled()
            if cache_enabled is None
            else cache_enabled
        )
        if enabled and device_type == "cuda":
            if not device_count("cuda"):
                warnings.warn(
                    "CUDA is not available or torch_xla is imported. Disabling "
                    "autocast.",
                    stacklevel=2,
                )
                enabled = False
        elif enabled and self.fast_dtype not in _SUPPORTED:
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling "
                f"autocast.\n{name} Autocast only supports dtypes of "
                f"{', '.join(map(str, _SUPPORTED))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled

    def __enter__(self) -> Any:
        self.prev_cache_enabled = _settings.is_autocast_cache_enabled()
        self.prev = _settings.is_autocast_enabled(self.device)
        self.prev_fastdtype = _settings.get_autocast_dtype(self.device)
        _settings.set_autocast_enabled(self.device, self._enabled)
        _settings.set_autocast_dtype(self.device, self.fast_dtype)
        _settings.autocast_increment_nesting()
        _settings.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> Any:
        if _settings.autocast_decrement_nesting() == 0:
            _settings.clear_autocast_cache()
        _settings.set_autocast_enabled(self.device, self.prev)
        _settings.set_autocast_dtype(self.device, self.prev_fastdtype)
        _settings.set_autocast_cache_enabled(self.prev_cache_enabled)
        return False

    def __call__(self, func: Any) -> Any:
        if not callable(func):
            raise TypeError(
                "autocast()(func) requires a callable, but got "
                f"{type(func).__name__}. Did you mean to use autocast as a context "
                "manager? For example:\n    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def _enter_autocast(*arguments: Any) -> autocast:
    mode = autocast(*arguments)
    mode.__enter__()
    return mode


def _exit_autocast(mode: autocast) -> None:
    mode.__exit__(None, None, None)


def _cast(value: Any, device_type: str, dtype: DType) -> Any:
    """The floating-point tensors of a device type in another dtype, at any depth."""
    if isinstance(value, Tensor):
        kind = value.dtype
        eligible = (
            kind.is_floating_point
            and value.device.type == device_type
            and kind is not dtypes.float64
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype)
            for k, v in value.items()
        }
    if isinstance(value, Iterable):
        made = (_cast(v, device_type, dtype) for v in value)
        return type(value)(made) if isinstance(value, (list, tuple)) else made
    return value


def _check_device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(
            f"Expected `device_type` of type `str`, got: `{type(device_type)}`"
        )


def custom_fwd(
    fwd: Any = None, *, device_type: str, cast_inputs: DType | None = None
) -> Any:
    """Decorates `forward` of an `autograd.Function` that is used in regions.

    With `cast_inputs` its floating-point inputs come in that dtype, and it runs without
    autocast. See https://docs.pytorch.org/docs/2.13/amp.html#torch.amp.custom_fwd.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(
            custom_fwd, device_type=device_type, cast_inputs=cast_inputs
        )

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = _settings.get_autocast_dtype(device_type)
        active = _settings.is_autocast_enabled(device_type)
        args[0]._fwd_used_autocast = active and cast_inputs is None
        if cast_inputs is None or not active:
            return fwd(*args, **kwargs)
        with autocast(device_type=device_type, enabled=False):
            return fwd(
                *_cast(args, device_type, cast_inputs),
                **_cast(kwargs, device_type, cast_inputs),
            )

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorates `backward` of an `autograd.Function`: autocast as it was in forward.

    See https://docs.pytorch.org/docs/2.13/amp.html#torch.amp.custom_bwd.
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(
            device_type=device_type,
            enabled=args[0]._fwd_used_autocast,
            dtype=args[0]._dtype,
        ):
            return bwd(*args, **kwargs)

    return decorate_bwd
