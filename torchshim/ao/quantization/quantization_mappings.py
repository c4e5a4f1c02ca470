"""What becomes what (`torch.ao.quantization.quantization_mappings`)."""

from __future__ import annotations

import copy
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import qat as nnqat
from torchshim.ao.nn import quantizable as nnqa
from torchshim.ao.nn import quantized as nnq
from torchshim.ao.nn.intrinsic import qat as nniqat
from torchshim.ao.nn.intrinsic import quantized as nniq
from torchshim.ao.nn.intrinsic.quantized import dynamic as nniqd
from torchshim.ao.nn.qat import dynamic as nnqatd
from torchshim.ao.nn.quantized import dynamic as nnqd
from torchshim.ao.nn.quantized import reference as nnqr
from torchshim.ao.nn.sparse import quantized as nnsq
from torchshim.ao.nn.sparse.quantized import dynamic as nnsqd
from torchshim.ao.quantization.fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from torchshim.ao.quantization.stubs import DeQuantStub, QuantStub
from torchshim.ao.quantization.utils import get_combined_dict
from torchshim.nn import functional as F
from torchshim.nn.modules.linear import NonDynamicallyQuantizableLinear
from torchshim.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings",
    "get_default_dynamic_sparse_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_default_static_quant_reference_module_mappings",
    "get_default_static_sparse_quant_module_mappings",
    "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_quantized_operator",
    "get_static_quant_module_class",
    "no_observer_set",
]

_STUBS: dict[Any, Any] = {QuantStub: nnq.Quantize, DeQuantStub: nnq.DeQuantize}

#: Layers that round their weight and compute with elements.
DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    **_STUBS,
    nn.Linear: nnqr.Linear,
    nn.Conv1d: nnqr.Conv1d,
    nn.Conv2d: nnqr.Conv2d,
    nn.Conv3d: nnqr.Conv3d,
    nn.ConvTranspose1d: nnqr.ConvTranspose1d,
    nn.ConvTranspose2d: nnqr.ConvTranspose2d,
    nn.ConvTranspose3d: nnqr.ConvTranspose3d,
    nn.Embedding: nnqr.Embedding,
    nn.EmbeddingBag: nnqr.EmbeddingBag,
    nn.GRUCell: nnqr.GRUCell,
    nn.LSTMCell: nnqr.LSTMCell,
    nn.RNNCell: nnqr.RNNCell,
    nn.LSTM: nnqr.LSTM,
}

#: Layers that compute with integers.
DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    **_STUBS,
    nn.BatchNorm2d: nnq.BatchNorm2d,
    nn.BatchNorm3d: nnq.BatchNorm3d,
    nn.Dropout: nnq.Dropout,
    nn.Conv1d: nnq.Conv1d,
    nn.Conv2d: nnq.Conv2d,
    nn.Conv3d: nnq.Conv3d,
    nn.ConvTranspose1d: nnq.ConvTranspose1d,
    nn.ConvTranspose2d: nnq.ConvTranspose2d,
    nn.ConvTranspose3d: nnq.ConvTranspose3d,
    nn.ELU: nnq.ELU,
    nn.Embedding: nnq.Embedding,
    nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.GroupNorm: nnq.GroupNorm,
    nn.Hardswish: nnq.Hardswish,
    nn.InstanceNorm1d: nnq.InstanceNorm1d,
    nn.InstanceNorm2d: nnq.InstanceNorm2d,
    nn.InstanceNorm3d: nnq.InstanceNorm3d,
    nn.LayerNorm: nnq.LayerNorm,
    nn.LeakyReLU: nnq.LeakyReLU,
    NonDynamicallyQuantizableLinear: nnq.Linear,
    nn.Linear: nnq.Linear,
    nn.ReLU6: nnq.ReLU6,
    nn.PReLU: nnq.PReLU,
    nnq.FloatFunctional: nnq.QFunctional,
    nni.BNReLU2d: nniq.BNReLU2d,
    nni.BNReLU3d: nniq.BNReLU3d,
    nni.ConvReLU1d: nniq.ConvReLU1d,
    nni.ConvReLU2d: nniq.ConvReLU2d,
    nni.ConvReLU3d: nniq.ConvReLU3d,
    nni.ConvAdd2d: nniq.ConvAdd2d,
    nni.ConvAddReLU2d: nniq.ConvAddReLU2d,
    nni.LinearReLU: nniq.LinearReLU,
    nni.LinearLeakyReLU: nniq.LinearLeakyReLU,
    nni.LinearTanh: nniq.LinearTanh,
    nniqat.ConvBn1d: nnq.Conv1d,
    nniqat.ConvBn2d: nnq.Conv2d,
    nniqat.ConvBn3d: nnq.Conv3d,
    nniqat.ConvBnReLU1d: nniq.ConvReLU1d,
    nniqat.ConvBnReLU2d: nniq.ConvReLU2d,
    nniqat.ConvBnReLU3d: nniq.ConvReLU3d,
    nniqat.ConvReLU2d: nniq.ConvReLU2d,
    nniqat.ConvReLU3d: nniq.ConvReLU3d,
    nniqat.LinearReLU: nniq.LinearReLU,
    nniqat.LinearBn1d: nnq.Linear,
    nnqat.Linear: nnq.Linear,
    nnqat.Conv2d: nnq.Conv2d,
    nnqat.Conv3d: nnq.Conv3d,
}

#: Layers that are trained with a weight that is rounded.
DEFAULT_QAT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Conv2d: nnqat.Conv2d,
    nn.Conv3d: nnqat.Conv3d,
    nn.Linear: nnqat.Linear,
    NonDynamicallyQuantizableLinear: nnqat.Linear,
    nni.ConvBn1d: nniqat.ConvBn1d,
    nni.ConvBn2d: nniqat.ConvBn2d,
    nni.ConvBn3d: nniqat.ConvBn3d,
    nni.ConvBnReLU1d: nniqat.ConvBnReLU1d,
    nni.ConvBnReLU2d: nniqat.ConvBnReLU2d,
    nni.ConvBnReLU3d: nniqat.ConvBnReLU3d,
    nni.ConvReLU2d: nniqat.ConvReLU2d,
    nni.ConvReLU3d: nniqat.ConvReLU3d,
    nni.LinearReLU: nniqat.LinearReLU,
    nni.LinearBn1d: nniqat.LinearBn1d,
}

#: Layers that find the scale of what comes in at each call.
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.GRUCell: nnqd.GRUCell,
    nn.Linear: nnqd.Linear,
    nnqatd.Linear: nnqd.Linear,
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    nn.LSTM: nnqd.LSTM,
    nn.GRU: nnqd.GRU,
    nn.LSTMCell: nnqd.LSTMCell,
    nn.RNNCell: nnqd.RNNCell,
    nni.LinearReLU: nniqd.LinearReLU,
    nn.EmbeddingBag: nnq.EmbeddingBag,
    nn.Embedding: nnq.Embedding,
}

_INCLUDE_QCONFIG_PROPAGATE_LIST: set[Any] = {nn.Sequential}

#: Functions of elements, and of integers.
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: dict[Any, Any] = {
    F.elu: torch.ops.quantized.elu,
    F.hardswish: torch.ops.quantized.hardswish,
    F.instance_norm: torch.ops.quantized.instance_norm,
    F.layer_norm: torch.ops.quantized.layer_norm,
    F.leaky_relu: torch.ops.quantized.leaky_relu,
    F.dropout: torch.ops.quantized.dropout,
}

#: Layers with results of a known range, and what rounds these in training.
DEFAULT_MODULE_TO_ACT_POST_PROCESS: dict[Any, Any] = {
    nn.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    nn.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    nn.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}

#: Layers with sparse weights, which refuse to be made.
DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Linear: vars(nnsq)["Linear"]
}
DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS: dict[Any, Any] = {
    nn.Linear: vars(nnsqd)["Linear"]
}


def no_observer_set() -> set[Any]:
    """Layers that observe what is within them, and get no observer of their own."""
    return {nnqa.LSTM, nnqa.MultiheadAttention}


def get_default_static_quant_module_mappings() -> dict[Any, Any]:
    """A copy of what `convert` turns layers into.

    >>> get_default_static_quant_module_mappings()[nn.Linear] is nnq.Linear
    True
    """
    return copy.deepcopy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_static_quant_reference_module_mappings() -> dict[Any, Any]:
    """A copy of what `convert` turns layers into with `is_reference`."""
    return copy.deepcopy(DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> dict[Any, Any]:
    """As `get_default_static_quant_module_mappings`, with embeddings after training."""
    embeddings = {nnqat.EmbeddingBag: nnq.EmbeddingBag, nnqat.Embedding: nnq.Embedding}
    return {**get_default_static_quant_module_mappings(), **embeddings}


def get_default_static_sparse_quant_module_mappings() -> dict[Any, Any]:
    """What layers with sparse weights would become; these classes refuse to be made."""
    return copy.deepcopy(DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS)


def _counterpart(
    defaults: dict[Any, Any], further: dict[Any, Any] | None, float_class: Any
) -> Any:
    found = get_combined_dict(defaults, further or {}).get(float_class)
    if found is None:
        raise AssertionError(
            f"Floating point module class {float_class} does not have a corresponding "
            "quantized module class"
        )
    return copy.deepcopy(found)


def get_static_quant_module_class(
    float_module_class: Any,
    additional_static_quant_mapping: dict[Any, Any] | None = None,
    is_reference: bool = False,
) -> Any:
    """What `convert` turns layers of a class into; AssertionError for others.

    >>> get_static_quant_module_class(nn.Linear) is nnq.Linear
    True
    """
    defaults = DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
    if is_reference:
        defaults = DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS
    return _counterpart(defaults, additional_static_quant_mapping, float_module_class)


def get_dynamic_quant_module_class(
    float_module_class: Any,
    additional_dynamic_quant_mapping: dict[Any, Any] | None = None,
) -> Any:
    """What `quantize_dynamic` turns layers of a class into; AssertionError for others.

    >>> get_dynamic_quant_module_class(nn.Linear) is nnqd.Linear
    True
    """
    return _counterpart(
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        additional_dynamic_quant_mapping,
        float_module_class,
    )


def get_default_qat_module_mappings() -> dict[Any, Any]:
    """A copy of what `prepare_qat` turns layers into."""
    return copy.deepcopy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> dict[Any, Any]:
    """As `get_default_qat_module_mappings`, with embeddings."""
    embeddings = {nn.EmbeddingBag: nnqat.EmbeddingBag, nn.Embedding: nnqat.Embedding}
    return {**get_default_qat_module_mappings(), **embeddings}


def get_default_dynamic_quant_module_mappings() -> dict[Any, Any]:
    """What `quantize_dynamic` turns layers into: the dict itself."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_default_dynamic_sparse_quant_module_mappings() -> dict[Any, Any]:
    """What layers with sparse weights would become; these classes refuse to be made."""
    return DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS


def get_default_qconfig_propagation_list() -> set[Any]:
    """The classes of layers that get an observer, if they have a setting."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        *DEFAULT_QAT_MODULE_MAPPINGS,
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
        *_INCLUDE_QCONFIG_PROPAGATE_LIST,
    }


def get_default_compare_output_module_list() -> set[Any]:
    """The classes of layers before and after, whose results can be compared."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS.values(),
        *DEFAULT_QAT_MODULE_MAPPINGS.values(),
        *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS.values(),
        *get_default_qconfig_propagation_list(),
    }


def get_default_float_to_quantized_operator_mappings() -> dict[Any, Any]:
    """A copy of which function of integers stands for which of elements."""
    return copy.copy(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Any) -> Any:
    """The function of integers for one of elements; AssertionError if there is none."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(
            f"Operator {float_op} does not have corresponding quantized op"
        )
    return found


def _get_special_act_post_process(module: Any) -> Any:
    return DEFAULT_MODULE_TO_ACT_POST_PROCESS.get(type_before_parametrizations(module))


def _has_special_act_post_process(module: Any) -> bool:
    return module.training and type(module) in DEFAULT_MODULE_TO_ACT_POST_PROCESS
