"""How to quantize a module (`torch.ao.quantization.qconfig`).

https://docs.pytorch.org/docs/2.13/quantization-support.html#torch-ao-quantization-qconfig
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.ao.quantization.fake_quantize import (
    FakeQuantize,
    FakeQuantizeBase,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from torchshim.ao.quantization.observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    NoopObserver,
    PerChannelMinMaxObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)
from torchshim.ao.quantization.utils import deprecated

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qat_qconfig_dict",
    "get_default_qconfig",
    "get_default_qconfig_dict",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """The observers of a module's activations and weights: what makes one of each.

    ValueError for observers instead of their classes.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.qconfig.QConfig.html

    >>> signed = MinMaxObserver.with_args(dtype=torch.qint8)
    >>> QConfig(activation=MinMaxObserver, weight=signed).weight().quant_max
    127
    """

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class "
                "instead. Use MyObserver.with_args(x=1) to override arguments to "
                "constructor if needed"
            )
        return super().__new__(cls, activation, weight)


#: A setting, or None.
QConfigAny = Any


class QConfigDynamic(namedtuple("QConfigDynamic", ["activation", "weight"])):
    """An older `QConfig` for scales of activations that are found at each call."""

    __slots__ = ()

    def __new__(
        cls, activation: Any = nn.Identity, weight: Any = nn.Identity
    ) -> QConfigDynamic:
        warnings.warn(
            "`QConfigDynamic` is going to be deprecated in PyTorch 1.12, please use "
            "`QConfig` instead",
            FutureWarning,
            stacklevel=2,
        )
        if isinstance(weight, nn.Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class "
                "instead. Use MyObserver.with_args(x=1) to override arguments to "
                "constructor if needed"
            )
        return super().__new__(cls, activation, weight)


# Settings that are used most

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(
    default_observer, default_per_channel_weight_observer
)
default_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_weight_observer
)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=torch.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float16),
    PlaceholderObserver.with_args(dtype=torch.float16),
)
per_channel_dynamic_qconfig = QConfig(
    default_dynamic_quant_observer, default_per_channel_weight_observer
)
float_qparams_weight_only_qconfig = QConfig(
    default_placeholder_observer, default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(
    default_dynamic_fake_quant, default_weight_fake_quant
)
default_weight_only_qconfig = QConfig(nn.Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, nn.Identity)
#: In one function, so that a training step is one program.
default_qat_qconfig_v2 = QConfig(
    default_fused_act_fake_quant, default_fused_wt_fake_quant
)
default_reuse_input_qconfig = QConfig(default_reuse_input_observer, NoopObserver)
#: Codes from -127, so that negatives are codes, and scales that are not too small.
default_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(dtype=torch.qint8, reduce_range=False, eps=2**-12),
    weight_observer_range_neg_127_to_127,
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    HistogramObserver.with_args(dtype=torch.qint8, reduce_range=False, eps=2**-12),
    per_channel_weight_observer_range_neg_127_to_127,
)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=torch.float32), default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=torch.float32), default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)


def _signed_activation() -> _PartialWrapper:
    return FusedMovingAvgObsFakeQuantize.with_args(
        observer=MovingAverageMinMaxObserver,
        quant_min=-128,
        quant_max=127,
        dtype=torch.qint8,
        reduce_range=False,
        eps=2**-12,
    )


default_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_activation(), fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    _signed_activation(), fused_per_channel_wt_fake_quant_range_neg_127_to_127
)
_default_fp32_placeholder_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.float32),
    PlaceholderObserver.with_args(dtype=torch.float32),
)
_default_quint8_placeholder_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=torch.quint8), None
)

_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


def _check_backend(backend: str) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(
            f"backend: {backend} not supported. backend must be one of {_BACKENDS}"
        )


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """The setting for observing a trained model, for one of PyTorch's engines.

    >>> get_default_qconfig("qnnpack").activation().quant_max
    255
    """
    _check_backend(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. "
            "Version number must be 0"
        )
    if backend == "onednn" and not torch.cpu._is_vnni_supported():
        warnings.warn(
            "Default qconfig of oneDNN backend with reduce_range of false may have "
            "accuracy issues on CPU without Vector Neural Network Instruction support.",
            stacklevel=2,
        )
    reduced = backend in ("fbgemm", "x86")
    return QConfig(
        HistogramObserver.with_args(reduce_range=reduced),
        default_weight_observer
        if backend == "qnnpack"
        else default_per_channel_weight_observer,
    )


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """The setting for training with rounded numbers, for one of PyTorch's engines.

    `version` 0 has modules that note and round in steps, 1 those that do so at once.

    >>> get_default_qat_qconfig("qnnpack").weight().quant_min
    -128
    """
    _check_backend(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version}in get_default_qat_qconfig is not supported. "
            "Version number must be 0 or 1"
        )
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    reduced: dict[str, Any] = {"reduce_range": backend in ("fbgemm", "x86")}
    if backend == "onednn":
        reduced = {}
    activation = kind.with_args(
        observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **reduced
    )
    if backend == "qnnpack":
        weights = default_weight_fake_quant, default_fused_wt_fake_quant
    else:
        weights = (
            default_per_channel_weight_fake_quant,
            default_fused_per_channel_wt_fake_quant,
        )
    return QConfig(activation, weights[version])


def _replaced(name: str) -> str:
    return (
        f"`torch.ao.quantization.{name}_dict` is deprecated and will be removed in a "
        f"future version. Please use `torch.ao.quantization.{name}_mapping` instead."
    )


@deprecated(_replaced("get_default_qconfig"), FutureWarning)
def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dict."""
    from torchshim.ao.quantization import qconfig_mapping

    return qconfig_mapping.get_default_qconfig_mapping(backend, version).to_dict()


@deprecated(_replaced("get_default_qat_qconfig"), FutureWarning)
def get_default_qat_qconfig_dict(
    backend: str = "x86", version: int = 1
) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dict."""
    from torchshim.ao.quantization import qconfig_mapping

    return qconfig_mapping.get_default_qat_qconfig_mapping(backend, version).to_dict()


def _assert_valid_qconfig(qconfig: Any, mod: Any) -> None:
    """Refuses scales for each channel of transposed convolutions' weights."""
    transposed = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
    if qconfig is None or not isinstance(mod, transposed) or qconfig.weight is None:
        return
    kinds = (PerChannelMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
    if isinstance(qconfig.weight(), kinds):
        raise AssertionError(
            "Per channel weight observer is not supported yet for ConvTranspose{n}d."
        )


def _add_module_to_qconfig_obs_ctr(qconfig: Any, module: Any) -> Any:
    """The setting whose observers are made on the device that the module is on."""
    fields = ("activation", "weight")
    if module is None or qconfig is None or qconfig._fields != fields:
        return qconfig

    def where() -> dict[str, Any] | None:
        devices = {each.device for each in (*module.parameters(), *module.buffers())}
        return {"device": next(iter(devices))} if devices else None

    def placed(make: Any) -> Any:
        try:
            make.with_args(factory_kwargs=None)()
            return make.with_callable_args(factory_kwargs=where)
        except (AttributeError, TypeError):  # it knows of no devices
            return make

    return QConfig(placed(qconfig.activation), placed(qconfig.weight))


def _obs_or_fq_ctr_equals(first: Any, second: Any) -> bool:
    if isinstance(first, _PartialWrapper) and isinstance(second, _PartialWrapper):
        return _partial_wrapper_equals(first, second)
    return first == second


def _partial_wrapper_equals(first: _PartialWrapper, second: _PartialWrapper) -> bool:
    keywords, others = dict(first.p.keywords), dict(second.p.keywords)
    same = True
    if "observer" in keywords and "observer" in others:
        pair = keywords.pop("observer"), others.pop("observer")
        same = _obs_or_fq_ctr_equals(*pair)
    same = same and keywords == others
    return same and first.p.func == second.p.func and first.p.args == second.p.args


def qconfig_equals(q1: Any, q2: Any) -> bool:
    """Whether two settings have the same observers with the same arguments.

    >>> qconfig_equals(get_default_qconfig("x86"), get_default_qconfig("fbgemm"))
    True
    """
    if q1 is None or q2 is None:
        return q1 == q2
    try:
        return _obs_or_fq_ctr_equals(
            q1.activation, q2.activation
        ) and _obs_or_fq_ctr_equals(q1.weight, q2.weight)
    except AttributeError:
        return q1 == q2


def _activation_is_memoryless(qconfig: Any) -> bool:
    """Whether activations get the range of what comes in, and of nothing before."""
    made = qconfig.activation()
    if isinstance(made, FakeQuantizeBase):
        made = getattr(made, "activation_post_process", made)
    return getattr(made, "averaging_constant", None) == 1


def _is_reuse_input_qconfig(qconfig: Any) -> bool:
    return (
        qconfig is not None
        and isinstance(qconfig.activation(), ReuseInputObserver)
        and isinstance(qconfig.weight(), NoopObserver)
    )
