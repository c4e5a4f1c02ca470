"""Modules that note how elements are distributed (`torch.ao.quantization.observer`).

https://docs.pytorch.org/docs/2.13/quantization-support.html#torch-ao-quantization-observer
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.ao.quantization._granularity import (
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from torchshim.ao.quantization._histogram_observer import HistogramObserver
from torchshim.ao.quantization._observer_base import (
    EPS,
    ObserverBase,
    UniformQuantizationObserverBase,
)
from torchshim.ao.quantization._observer_base import _ObserverBase as _ObserverBase
from torchshim.ao.quantization._observer_base import _PartialWrapper as _PartialWrapper
from torchshim.ao.quantization._observer_base import _with_args as _with_args
from torchshim.ao.quantization._observer_base import (
    _with_callable_args as _with_callable_args,
)
from torchshim.ao.quantization._rangeless_observers import (
    FixedQParamsObserver,
    NoopObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)
from torchshim.ao.quantization.utils import is_per_channel, is_per_tensor

__all__ = [
    "AffineQuantizedObserverBase",
    "FixedQParamsObserver",
    "Granularity",
    "HistogramObserver",
    "MappingType",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerAxis",
    "PerBlock",
    "PerChannelMinMaxObserver",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "PerToken",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "TorchAODType",
    "UniformQuantizationObserverBase",
    "ZeroPointDomain",
    "default_affine_fixed_qparams_observer",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_symmetric_fixed_qparams_observer",
    "default_weight_observer",
    "get_block_size",
    "get_observer_state_dict",
    "load_observer_state_dict",
    "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]

_GAP = " " * 20


class MinMaxObserver(UniformQuantizationObserverBase):
    """Notes the least and the greatest of all elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.MinMaxObserver.html

    >>> observer = MinMaxObserver()
    >>> x = observer(torch.tensor([-1.0, 0.5])), observer(torch.tensor([2.0]))
    >>> observer
    MinMaxObserver(min_val=-1.0, max_val=2.0)
    >>> observer.calculate_qparams()
    (tensor([0.0118]), tensor([85], dtype=torch.int32))
    """

    min_val: Any
    max_val: Any

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
        if not is_per_tensor(qscheme):
            raise NotImplementedError(
                "MinMaxObserver's qscheme only support torch.per_tensor_symmetric "
                f"{_GAP}and torch.per_tensor_affine."
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        made = nn.factory_kwargs(factory_kwargs)
        self.register_buffer("min_val", torch.tensor(float("inf"), **made))
        self.register_buffer("max_val", torch.tensor(float("-inf"), **made))
        symmetric = qscheme is torch.per_tensor_symmetric
        if symmetric and reduce_range and dtype is torch.quint8:
            raise NotImplementedError(
                f"Cannot reduce range for symmetric {' ' * 39}quantization for quint8"
            )

    def forward(self, x_orig: Any) -> Any:
        if x_orig.numel() == 0:
            return x_orig
        low, high = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
        self.min_val.copy_(torch.min(low, self.min_val))
        self.max_val.copy_(torch.max(high, self.max_val))
        return x_orig

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and zero point for the range."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self) -> None:
        self.min_val.copy_(torch.tensor(float("inf")))
        self.max_val.copy_(torch.tensor(float("-inf")))


def _moved(before: Any, found: Any, part: float) -> Any:
    return before + part * (found - before)


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Notes moving averages of the least and the greatest element.

    They go `averaging_constant` of the way to those of what comes in.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.MovingAverageMinMaxObserver.html

    >>> observer = MovingAverageMinMaxObserver(averaging_constant=0.5)
    >>> x = observer(torch.tensor([0.0, 1.0])), observer(torch.tensor([-1.0, 3.0]))
    >>> observer
    MovingAverageMinMaxObserver(min_val=-0.5, max_val=2.0)
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_tensor_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if not is_per_tensor(qscheme):
            gap = " " * 16
            raise NotImplementedError(
                f"MovingAverageMinMaxObserver's qscheme only support {gap}"
                f"torch.per_tensor_symmetric and torch.per_tensor_affine. {gap}"
                f"but got: {qscheme}"
            )
        self.averaging_constant = averaging_constant
        if is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                "MovingAverageMinMaxObserver doesn't support dynamic quantization for "
                f"averaging constant of {averaging_constant}"
            )
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )

    def forward(self, x_orig: Any) -> Any:
        if x_orig.numel() == 0:
            return x_orig
        low, high = torch.aminmax(x_orig.detach().to(self.min_val.dtype))
        # Chosen by an operator, so that nothing is read and a training step is one
        # program.
        unseen = (self.min_val == float("inf")) & (self.max_val == float("-inf"))
        part = self.averaging_constant
        for kept, found in ((self.min_val, low), (self.max_val, high)):
            kept.copy_(torch.where(unseen, found, _moved(kept, found, part)))
        return x_orig


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """Notes the least and the greatest element for each index of `ch_axis`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.PerChannelMinMaxObserver.html

    >>> observer = PerChannelMinMaxObserver()
    >>> x = observer(torch.tensor([[-1.0, 1.0], [0.0, 2.0]]))
    >>> observer
    PerChannelMinMaxObserver(min_val=tensor([-1.,  0.]), max_val=tensor([1., 2.]))
    """

    min_val: Any
    max_val: Any

    def __init__(
        self,
        ch_axis: int = 0,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        factory_kwargs: dict[str, Any] | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        _check_channels("PerChannelMinMaxObserver", qscheme, is_dynamic)
        super().__init__(
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            factory_kwargs=factory_kwargs,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        made = nn.factory_kwargs(factory_kwargs)
        self.ch_axis = ch_axis
        self.register_buffer("min_val", torch.tensor([], **made))
        self.register_buffer("max_val", torch.tensor([], **made))
        symmetric = qscheme is torch.per_channel_symmetric
        if symmetric and reduce_range and dtype is torch.quint8:
            raise NotImplementedError(
                "Cannot reduce range for symmetric quantization for quint8"
            )

    def _rows(self, x_orig: Any) -> Any:
        """What comes in as a matrix with a row for each channel."""
        x = x_orig.detach()
        order = list(range(x.dim()))
        order[self.ch_axis], order[0] = 0, self.ch_axis
        x = x.permute(order).to(self.min_val.dtype)
        return torch.flatten(x, start_dim=1)

    def _keep(self, low: Any, high: Any) -> None:
        for kept, found in ((self.min_val, low), (self.max_val, high)):
            kept.resize_(found.shape)
            kept.copy_(found)

    def _unseen(self) -> bool:
        return self.min_val.numel() == 0 or self.max_val.numel() == 0

    def forward(self, x_orig: Any) -> Any:
        return self._forward(x_orig)

    def _forward(self, x_orig: Any) -> Any:
        if x_orig.numel() == 0:
            return x_orig
        low, high = torch.aminmax(self._rows(x_orig), dim=1)
        if not self._unseen():
            low = torch.min(low, self.min_val)
            high = torch.max(high, self.max_val)
        self._keep(low, high)
        return x_orig

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scales and zero points for the ranges."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        old = "s" if version is not None and version < 3 else ""
        # Ranges of any number of channels are loaded into those of none.
        for kept, name in (
            (self.min_val, f"min_val{old}"),
            (self.max_val, f"max_val{old}"),
        ):
            if prefix + name in state_dict:
                kept.resize_(state_dict[prefix + name].shape)
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            False,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def _load_from_state_dict_script(self, *args: Any) -> None:
        self._load_from_state_dict(*args)

    def reset_min_max_vals(self) -> None:
        self.min_val = torch.rand(0)
        self.max_val = torch.rand(0)


def _check_channels(name: str, qscheme: Any, is_dynamic: bool) -> None:
    if not is_per_channel(qscheme):
        raise NotImplementedError(
            f"{name}'s qscheme only support {_GAP}torch.per_channel_symmetric, "
            "torch.per_channel_affine and torch.per_channel_affine_float_qparams."
        )
    if is_dynamic:
        raise NotImplementedError(f"{name} doesn't support dynamic quantization")


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Notes moving averages of the ranges for each index of `ch_axis`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.observer.MovingAveragePerChannelMinMaxObserver.html
    """

    def __init__(
        self,
        averaging_constant: float = 0.01,
        ch_axis: int = 0,
        dtype: Any = torch.quint8,
        qscheme: Any = torch.per_channel_affine,
        reduce_range: bool = False,
        quant_min: int | None = None,
        quant_max: int | None = None,
        eps: float = EPS,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        _check_channels("MovingAveragePerChannelMinMaxObserver", qscheme, is_dynamic)
        super().__init__(
            ch_axis=ch_axis,
            dtype=dtype,
            qscheme=qscheme,
            reduce_range=reduce_range,
            quant_min=quant_min,
            quant_max=quant_max,
            eps=eps,
            is_dynamic=is_dynamic,
            **kwargs,
        )
        self.averaging_constant = averaging_constant

    def forward(self, x_orig: Any) -> Any:
        if x_orig.numel() == 0:
            return x_orig
        low, high = torch.aminmax(self._rows(x_orig), dim=1)
        if not self._unseen():
            part = self.averaging_constant
            low = _moved(self.min_val, low, part)
            high = _moved(self.max_val, high, part)
        self._keep(low, high)
        return x_orig


# States of observers ------------------------------------------------------------------


def _is_activation_post_process(module: Any) -> bool:
    from torchshim.ao.quantization.fake_quantize import FakeQuantizeBase

    kinds = (ObserverBase, FakeQuantizeBase, AffineQuantizedObserverBase)
    return isinstance(module, kinds)


def get_observer_state_dict(mod: Any) -> Any:
    """The part of a module's state that its observers noted.

    >>> model = nn.Sequential(nn.Linear(1, 1))
    >>> model.add_module("activation_post_process", MinMaxObserver())
    >>> list(get_observer_state_dict(model))[-1]
    'activation_post_process.max_val'
    """
    state = mod.state_dict()
    found: Any = OrderedDict(
        (name, each) for name, each in state.items() if _OBSERVED in name
    )
    found._metadata = state._metadata
    return found


_OBSERVED = "activation_post_process"


def load_observer_state_dict(mod: Any, obs_dict: Any) -> None:
    """Loads what `get_observer_state_dict` gave into a module's observers."""
    missing: list[str] = []
    unexpected: list[str] = []
    for name, module in mod.named_modules():
        if _is_activation_post_process(module):
            module._load_from_state_dict(
                obs_dict, name + ".", {}, False, missing, unexpected, []
            )
    for kind, keys in (("Missing", missing), ("Unexpected", unexpected)):
        for key in keys:
            if "observer" in key or _OBSERVED in key:
                raise Exception(f"{kind} keys for observer {key} in state_dict")


# Observers with the settings that are used most ---------------------------------------

#: Half of the codes, so that sums of products do not overflow.
default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric
)
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=torch.qint8,
    qscheme=torch.per_tensor_symmetric,
    quant_min=-127,
    quant_max=127,
    eps=2**-12,
)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8,
    qscheme=torch.per_channel_symmetric,
    quant_min=-127,
    quant_max=127,
    eps=2**-12,
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint8, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
)
#: The results of tanh, and of sigmoid.
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
