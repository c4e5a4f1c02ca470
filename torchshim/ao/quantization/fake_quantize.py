"""Modules that round as quantization would (`torch.ao.quantization.fake_quantize`).

https://docs.pytorch.org/docs/2.13/quantization-support.html#torch-ao-quantization-fake-quantize
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.ao.quantization.observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _PartialWrapper,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from torchshim.ao.quantization.utils import is_per_channel as _is_per_channel
from torchshim.ao.quantization.utils import is_per_tensor as _is_per_tensor

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant",
    "default_dynamic_fake_quant",
    "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127",
    "fused_wt_fake_quant_range_neg_127_to_127",
]


def _is_symmetric_quant(qscheme: Any) -> bool:
    return qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)


def _is_float_qparams(qscheme: Any) -> bool:
    return qscheme is torch.per_channel_affine_float_qparams


class FakeQuantizeBase(ABC, nn.Module):
    """The base of modules that round what they get, and note how it is distributed.

    Both can be turned off. A subclass has `forward` and `calculate_qparams`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.fake_quantize.FakeQuantizeBase.html
    """

    fake_quant_enabled: Any
    observer_enabled: Any

    def __init__(self) -> None:
        super().__init__()
        # Buffers, so that copies of a module on other devices have them.
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, torch.tensor([1], dtype=torch.uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        pass

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """The scales and zero points for what was seen."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Has elements rounded, or not."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Hands on elements as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Has elements noted, or not."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Keeps the scales as they are."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs: Any) -> _PartialWrapper:
        """What makes instances with these arguments."""
        made = _with_args(cls, **kwargs)
        made.__module__ = __name__
        return made


class FakeQuantize(FakeQuantizeBase):
    """Rounds to multiples of a scale that an observer finds.

    `observer` is called with `quant_min` and `quant_max`, if both are given, and with
    all further keywords.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.fake_quantize.FakeQuantize.html

    >>> fake = FakeQuantize(quant_min=0, quant_max=4)
    >>> fake(torch.tensor([0.0, 0.4, 2.0]))
    tensor([0.0000, 0.5000, 2.0000])
    >>> fake.scale, fake.zero_point
    (tensor([0.5000]), tensor([0], dtype=torch.int32))
    """

    scale: Any
    zero_point: Any
    activation_post_process: Any

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int | None = None,
        quant_max: int | None = None,
        is_dynamic: bool = False,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError(
                    "quant_min must be less than or equal to quant_max"
                )
            dtype = observer_kwargs.get("dtype", torch.quint8)
            if hasattr(observer, "p"):
                dtype = getattr(observer.p, "keywords", {}).get("dtype", dtype)
            limits = torch.iinfo(dtype)
            if limits.min > quant_min:
                raise AssertionError("quant_min out of bound")
            if quant_max > limits.max:
                raise AssertionError("quant_max out of bound")
            observer_kwargs.update({"quant_min": quant_min, "quant_max": quant_max})
        observer_kwargs["is_dynamic"] = is_dynamic
        self.activation_post_process = found = observer(**observer_kwargs)
        self.quant_min = found.quant_min
        self.quant_max = found.quant_max
        self.is_dynamic = found.is_dynamic
        floats = _is_float_qparams(found.qscheme)
        zero_dtype = torch.float if floats else torch.int
        self.register_buffer("scale", torch.tensor([1.0], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([0], dtype=zero_dtype))
        self.dtype = found.dtype
        self.qscheme = found.qscheme
        self.ch_axis = getattr(found, "ch_axis", -1)
        if not (_is_per_channel(self.qscheme) or _is_per_tensor(self.qscheme)):
            raise AssertionError(
                "Only per channel and per tensor quantization are supported in fake "
                f"quantize got qscheme: {self.qscheme}"
            )
        self.is_per_channel = _is_per_channel(self.qscheme)

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scales and zero points that the observer found."""
        return self.activation_post_process.calculate_qparams()

    def _observe(self, X: Any) -> None:
        self.activation_post_process(X.detach())
        pairs = zip(
            (self.scale, self.zero_point), self.calculate_qparams(), strict=True
        )
        for kept, found in pairs:
            if kept.shape != found.shape:
                kept.resize_(found.shape)
            kept.copy_(found.to(kept.device))

    def forward(self, X: Any) -> Any:
        # As lists, so that nothing is recorded for the questions.
        if self.observer_enabled.tolist()[0] == 1:
            self._observe(X)
        if self.fake_quant_enabled.tolist()[0] != 1:
            return X
        least = self.activation_post_process.quant_min
        most = self.activation_post_process.quant_max
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, least, most
            )
        return torch.fake_quantize_per_tensor_affine(
            X, self.scale, self.zero_point, least, most
        )

    def extra_repr(self) -> str:
        observer = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, "
            f"quant_min={observer.quant_min}, quant_max={observer.quant_max}, "
            f"dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )

    def _save_to_state_dict(
        self, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        # As they are, and not detached.
        for name in ("scale", "zero_point"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Scales of any number of channels are loaded into those of another number.
        for name in ("scale", "zero_point"):
            key = prefix + name
            if key in state_dict:
                getattr(self, name).resize_(state_dict[key].shape)
            elif strict:
                missing_keys.append(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class FixedQParamsFakeQuantize(FakeQuantize):
    """Rounds to multiples of a given scale: that of a `FixedQParamsObserver`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.fake_quantize.FixedQParamsFakeQuantize.html
    """

    def __init__(self, observer: Any) -> None:
        super().__init__(observer=observer)
        found = self.activation_post_process
        if type(found) is not FixedQParamsObserver:
            raise AssertionError(
                f"{self.__class__.__name__}'s observer must be a "
                f"{FixedQParamsObserver.__name__}"
            )
        self._observer_ctr = observer
        self.scale = found.scale
        self.zero_point = found.zero_point
        if not _is_per_tensor(self.qscheme):
            raise AssertionError(
                "Only per tensor quantization is supported FixedQParamsFakeQuantize "
                f"module, got qscheme:{self.qscheme}"
            )

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and zero point that were given."""
        return self.scale, self.zero_point

    def extra_repr(self) -> str:
        observer = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={observer.quant_min}, quant_max={observer.quant_max}, "
            f"qscheme={self.qscheme}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """As `FakeQuantize` with a moving average, in one function.

    Nothing is read while it computes, so that a training step is one program.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.fake_quantize.FusedMovingAvgObsFakeQuantize.html
    """

    def __init__(
        self,
        observer: Any = MovingAverageMinMaxObserver,
        quant_min: int = 0,
        quant_max: int = 255,
        **observer_kwargs: Any,
    ) -> None:
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        kinds = (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        if not isinstance(self.activation_post_process, kinds):
            raise AssertionError(
                "Fused observer+fake_quant module only works with "
                "MovingAverageMinMaxObserver"
            )
        for name in ("fake_quant_enabled", "observer_enabled"):
            self.register_buffer(name, torch.tensor([1], dtype=torch.long))
        self.is_symmetric_quant = _is_symmetric_quant(
            self.activation_post_process.qscheme
        )

    def extra_repr(self) -> str:
        observer = self.activation_post_process
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, "
            f"observer_enabled={self.observer_enabled}, "
            f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}, "
            f"quant_min={observer.quant_min}, quant_max={observer.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={observer.reduce_range}"
        )

    def forward(self, X: Any) -> Any:
        observer = self.activation_post_process
        return torch.fused_moving_avg_obs_fake_quant(
            X,
            self.observer_enabled,
            self.fake_quant_enabled,
            observer.min_val,
            observer.max_val,
            self.scale,
            self.zero_point,
            observer.averaging_constant,
            observer.quant_min,
            observer.quant_max,
            self.ch_axis,
            self.is_per_channel,
            self.is_symmetric_quant,
        )


# Modules with the settings that are used most -----------------------------------------

default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=torch.quint8,
    qscheme=torch.per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
    reduce_range=False,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=torch.quint8,
    averaging_constant=1,
)
#: For the results of tanh, and of sigmoid.
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = (
    default_fixed_qparams_range_neg1to1_fake_quant
)
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=torch.qint8,
    qscheme=torch.per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_affine_float_qparams,
    dtype=torch.quint8,
    quant_min=0,
    quant_max=255,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_affine_float_qparams,
    ch_axis=0,
    dtype=torch.quint4x2,
    averaging_constant=1,
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver,
    quant_min=0,
    quant_max=255,
    dtype=torch.quint8,
    qscheme=torch.per_tensor_affine,
    reduce_range=True,
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=torch.quint8,
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=torch.qint8,
    qscheme=torch.per_channel_symmetric,
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
    eps=2**-12,
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = (
    FusedMovingAvgObsFakeQuantize.with_args(
        observer=MovingAveragePerChannelMinMaxObserver,
        quant_min=-127,
        quant_max=127,
        dtype=torch.qint8,
        qscheme=torch.per_channel_symmetric,
        eps=2**-12,
    )
)


# For `Module.apply` -------------------------------------------------------------------


def disable_fake_quant(mod: Any) -> None:
    """Has a module of this kind hand on elements as they are; others stay.

    >>> model = nn.Sequential(FakeQuantize())
    >>> _ = model.apply(disable_fake_quant)
    >>> model[0].fake_quant_enabled
    tensor([0], dtype=torch.uint8)
    """
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod: Any) -> None:
    """Has a module of this kind round elements; others stay."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod: Any) -> None:
    """Has a module of this kind keep its scales; others stay."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod: Any) -> None:
    """Has a module of this kind note elements; others stay."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
