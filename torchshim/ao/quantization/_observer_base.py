"""What all observers are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.ao.quantization.utils import (
    calculate_qmin_qmax,
    scales_and_zero_points,
    validate_qmin_qmax,
)

_HOME = "torchshim.ao.quantization.observer"  # as files name it
EPS = torch.finfo(torch.float32).eps


class _PartialWrapper:
    """A `functools.partial` that can also call functions for arguments, each time."""

    __module__ = _HOME

    def __init__(self, p: Any) -> None:
        self.p = p
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        for name, made in self.callable_args.items():
            if name not in keywords:
                keywords[name] = made()
        return self.p(*args, **keywords)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)

    def with_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with these arguments as well."""
        return _with_args(self, **kwargs)

    def with_callable_args(self, **kwargs: Any) -> _PartialWrapper:
        """The same with arguments that these functions give when it is called."""
        result = _PartialWrapper(p=self.p)
        result.callable_args = {**self.callable_args, **kwargs}
        return result


def _with_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """What makes instances of a class with these arguments.

    >>> import torchshim as torch
    >>> make = torch.ao.quantization.MinMaxObserver.with_args(dtype=torch.qint8)
    >>> make().quant_min, make(quant_min=-8, quant_max=7).quant_min
    (-128, -8)
    """
    return _PartialWrapper(partial(cls_or_self, **kwargs))


def _with_callable_args(cls_or_self: Any, **kwargs: Any) -> _PartialWrapper:
    """What makes instances of a class with arguments that functions give each time."""
    return _PartialWrapper(partial(cls_or_self)).with_callable_args(**kwargs)


for _function in (_with_args, _with_callable_args):
    _function.__module__ = _HOME


class ObserverBase(ABC, nn.Module):
    """The base of modules that hand on what they get and note how it is distributed.

    A subclass has `forward`, which notes, and `calculate_qparams`, which gives scales
    and zero points.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.ObserverBase.html
    """

    __module__ = _HOME

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype = dtype
        self.is_dynamic = is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        pass

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scales and zero points for what was seen."""

    with_args = classmethod(_with_args)
    with_callable_args = classmethod(_with_callable_args)


_SCHEMES = (
    *(torch.per_tensor_affine, torch.per_tensor_symmetric, torch.per_channel_affine),
    *(torch.per_channel_symmetric, torch.per_channel_affine_float_qparams),
)
_ALLOWED_DTYPES = (
    *(torch.qint8, torch.quint8, torch.quint4x2, torch.qint32, torch.int8),
    *(torch.uint8, torch.int16, torch.int32, torch.float8_e5m2),
    *(torch.float8_e4m3fn, torch.uint16),
)


class UniformQuantizationObserverBase(ObserverBase):
    """The base of observers whose codes are multiples of a scale.

    `quant_min` and `quant_max` are the least and greatest code (default: those of the
    dtype); scales are `eps` or more.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.UniformQuantizationObserverBase.html
    """

    __module__ = _HOME
    # 2: `eps` is a buffer. 3: names and shapes of `min_val` and `max_val`.
    _version = 3

    eps: Any

    def __init__(
        self,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        made = nn.factory_kwargs(factory_kwargs)
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.qscheme = qscheme
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers."
                f" {' ' * 20}reduce_range will be deprecated in a future release of "
                "PyTorch.",
                stacklevel=2,
            )
        self.reduce_range = reduce_range
        self.register_buffer("eps", torch.tensor([eps], **made))
        if qscheme not in _SCHEMES:
            raise AssertionError(
                "Default Observer only works for per_tensor_affine, "
                "per_tensor_symmetric, per_channel_affine, per_channel_symmetric and "
                "per_channel_float_qparams quantization scheme"
            )
        if dtype not in _ALLOWED_DTYPES:
            raise AssertionError(
                f"Default Observer only works for {_ALLOWED_DTYPES} data type"
            )
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if quant_min is not None and quant_max is not None:
            validate_qmin_qmax(quant_min, quant_max)
        self.quant_min, self.quant_max = calculate_qmin_qmax(
            quant_min, quant_max, self.has_customized_qrange, dtype, reduce_range
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        if local_metadata.get("version", None) in (None, 1):
            state_dict[prefix + "eps"] = torch.tensor([EPS])
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _validate_qmin_qmax(self, quant_min: int, quant_max: int) -> None:
        validate_qmin_qmax(quant_min, quant_max)

    def _calculate_qparams(self, min_val: Any, max_val: Any) -> tuple[Any, Any]:
        return scales_and_zero_points(
            min_val,
            max_val,
            self.quant_min,
            self.quant_max,
            self.dtype,
            self.eps,
            self.has_customized_qrange,
            self.qscheme,
            2**15 if self.dtype is torch.uint16 else None,
        )

    def reset_min_max_vals(self) -> None:
        """Forgets the range that was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")


_ObserverBase = UniformQuantizationObserverBase
