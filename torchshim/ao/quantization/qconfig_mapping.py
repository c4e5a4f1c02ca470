"""Which module gets which setting (`torch.ao.quantization.qconfig_mapping`).

https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.qconfig_mapping.QConfigMapping.html
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.ao.quantization.fake_quantize import (
    FixedQParamsFakeQuantize,
    default_weight_fake_quant,
)
from torchshim.ao.quantization.observer import (
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_placeholder_observer,
    default_weight_observer,
)
from torchshim.ao.quantization.qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    default_symmetric_qnnpack_qat_qconfig,
    default_symmetric_qnnpack_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from torchshim.nn import functional as F

__all__ = [
    "QConfigMapping",
    "get_default_qat_qconfig_mapping",
    "get_default_qconfig_mapping",
]

# The keys of a mapping as a dict.
_GLOBAL_DICT_KEY = ""
_OBJECT_TYPE_DICT_KEY = "object_type"
_MODULE_NAME_REGEX_DICT_KEY = "module_name_regex"
_MODULE_NAME_DICT_KEY = "module_name"
_MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY = "module_name_object_type_order"

_FIXED_QPARAMS_OP_TO_OBSERVER: dict[Any, Any] = {
    **dict.fromkeys(
        (
            *(nn.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_"),
            *(nn.Sigmoid, torch.sigmoid, "sigmoid", "sigmoid_", nn.Softmax),
        ),
        default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys(
        (nn.Tanh, torch.tanh, "tanh", "tanh_"),
        default_fixed_qparams_range_neg1to1_observer,
    ),
}

_QCONFIG_STYLE_ORDER = [
    "global_qconfig",
    "object_type_qconfigs",
    "module_name_regex_qconfigs",
    "module_name_qconfigs",
    "module_name_object_type_order_qconfigs",
]


class QConfigMapping:
    """The settings of modules and functions, by type, name, or place.

    What is more special counts: in this order a module's place, its name, a regular
    expression that matches the name, its type, and the setting for all others.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.qconfig_mapping.QConfigMapping.html

    >>> setting = get_default_qconfig()
    >>> mapping = QConfigMapping().set_global(setting).set_module_name("last", None)
    >>> list(mapping.module_name_qconfigs.items())
    [('last', None)]
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, Any] = (
            OrderedDict()
        )

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """The setting of all that has none of its own."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """The setting of modules of a type, of a function, or a method of this name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(
        self, module_name_regex: str, qconfig: Any
    ) -> QConfigMapping:
        """The setting of modules whose names match; the first expression counts."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """The setting of the module of this name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """The setting of the one of this type that comes at `index` in a module."""
        place = module_name, object_type, index
        self.module_name_object_type_order_qconfigs[place] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{self.__class__.__name__} ("]
        for name in _QCONFIG_STYLE_ORDER:
            lines.append(f" {name}")
            held = getattr(self, name)
            if isinstance(held, OrderedDict) and held:
                lines += [f"  {key}: {qconfig}" for key, qconfig in held.items()]
            else:
                lines.append(f"  {held}")
        return "\n".join((*lines, ")"))

    def to_dict(self) -> dict[str, Any]:
        """The settings as lists of tuples."""
        places = self.module_name_object_type_order_qconfigs
        return {
            _GLOBAL_DICT_KEY: self.global_qconfig,
            _OBJECT_TYPE_DICT_KEY: list(self.object_type_qconfigs.items()),
            _MODULE_NAME_REGEX_DICT_KEY: list(self.module_name_regex_qconfigs.items()),
            _MODULE_NAME_DICT_KEY: list(self.module_name_qconfigs.items()),
            _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY: [
                (*place, qconfig) for place, qconfig in places.items()
            ],
        }

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping that `to_dict` gave; keys may be left out."""
        made = cls()
        if _GLOBAL_DICT_KEY in qconfig_dict:
            made.set_global(qconfig_dict[_GLOBAL_DICT_KEY])
        for key, add in (
            (_OBJECT_TYPE_DICT_KEY, made.set_object_type),
            (_MODULE_NAME_REGEX_DICT_KEY, made.set_module_name_regex),
            (_MODULE_NAME_DICT_KEY, made.set_module_name),
            (
                _MODULE_NAME_OBJECT_TYPE_ORDER_DICT_KEY,
                made.set_module_name_object_type_order,
            ),
        ):
            for entry in qconfig_dict.get(key, []):
                add(*entry)
        return made


def _default_mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    get = get_default_qat_qconfig if is_qat else get_default_qconfig
    qconfig = get(backend, version)
    weight = default_weight_fake_quant if is_qat else default_weight_observer
    transposed = qconfig
    if backend in ("fbgemm", "x86"):  # whose scales are for channels
        transposed = QConfig(activation=qconfig.activation, weight=weight)
    normalized = QConfig(
        activation=qconfig.activation, weight=default_placeholder_observer
    )
    made = QConfigMapping().set_global(qconfig)
    made.set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (
        *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
        *(F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d),
    ):
        made.set_object_type(kind, transposed)
    for kind in (F.layer_norm, nn.LayerNorm):
        made.set_object_type(kind, normalized)
    made.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    known: dict[Any, QConfig] = {}
    for kind, observer in _FIXED_QPARAMS_OP_TO_OBSERVER.items():
        if observer not in known:
            activation = observer
            if is_qat:
                activation = FixedQParamsFakeQuantize.with_args(observer=observer)
            known[observer] = QConfig(activation=activation, weight=weight)
        made.set_object_type(kind, known[observer])
    return made


def get_default_qconfig_mapping(
    backend: str = "x86", version: int = 0
) -> QConfigMapping:
    """The settings for observing a trained model, for one of PyTorch's engines.

    >>> mapping = get_default_qconfig_mapping()
    >>> mapping.object_type_qconfigs[nn.Sigmoid].activation().scale
    tensor([0.0039])
    """
    return _default_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(
    backend: str = "x86", version: int = 1
) -> QConfigMapping:
    """The settings for training with rounded numbers, for one of PyTorch's engines.

    >>> get_default_qat_qconfig_mapping().global_qconfig == get_default_qat_qconfig()
    False
    """
    return _default_mapping(True, backend, version)


def _get_symmetric_qnnpack_qconfig_mapping() -> QConfigMapping:
    return _with_default(
        get_default_qconfig_mapping("qnnpack"), default_symmetric_qnnpack_qconfig
    )


def _get_symmetric_qnnpack_qat_qconfig_mapping() -> QConfigMapping:
    return _with_default(
        get_default_qat_qconfig_mapping("qnnpack"),
        default_symmetric_qnnpack_qat_qconfig,
    )


def _get_default_qconfig_mapping_with_default_qconfig(
    is_qat: bool, backend: str, default_qconfig: Any
) -> QConfigMapping:
    get = get_default_qat_qconfig_mapping if is_qat else get_default_qconfig_mapping
    return _with_default(get(backend), default_qconfig)


def _with_default(mapping: QConfigMapping, qconfig: Any) -> QConfigMapping:
    """The mapping with one setting for all but functions of a known range."""
    mapping.set_global(qconfig)
    for kind in mapping.object_type_qconfigs:
        if kind not in _FIXED_QPARAMS_OP_TO_OBSERVER:
            mapping.set_object_type(kind, qconfig)
    return mapping
