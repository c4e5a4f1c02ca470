"""What observers and settings have in common (`torch.ao.quantization.utils`).

https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.ao.quantization.quant_type import QuantType
from torchshim.nn import functional as F
from torchshim.nn.utils.parametrize import is_parametrized

__all__ = [
    "DEPRECATION_WARNING",
    "MatchAllNode",
    "NodePattern",
    "Pattern",
    "activation_dtype",
    "activation_is_dynamically_quantized",
    "activation_is_int8_quantized",
    "activation_is_int32_quantized",
    "activation_is_statically_quantized",
    "calculate_qmin_qmax",
    "check_min_max_valid",
    "check_node",
    "determine_qparams",
    "get_combined_dict",
    "get_fqn_to_example_inputs",
    "get_qconfig_dtypes",
    "get_qparam_dict",
    "get_quant_type",
    "get_swapped_custom_module_class",
    "getattr_from_fqn",
    "has_no_children_ignoring_parametrizations",
    "is_per_channel",
    "is_per_tensor",
    "op_is_int8_dynamically_quantized",
    "to_underlying_dtype",
    "validate_qmin_qmax",
    "weight_dtype",
    "weight_is_quantized",
    "weight_is_statically_quantized",
]

DEPRECATION_WARNING = (
    "torch.ao.quantization is deprecated and will be removed in 2.10. \n"
    "For migrations of users: \n"
    "1. Eager mode quantization (torch.ao.quantization.quantize, "
    "torch.ao.quantization.quantize_dynamic), please migrate to use torchao eager mode "
    "quantize_ API instead \n"
    "2. FX graph mode quantization (torch.ao.quantization.quantize_fx.prepare_fx,"
    "torch.ao.quantization.quantize_fx.convert_fx, please migrate to use torchao pt2e "
    "quantization API instead (prepare_pt2e, convert_pt2e) \n"
    "3. pt2e quantization has been migrated to torchao "
    "(https://github.com/pytorch/ao/tree/main/torchao/quantization/pt2e) \n"
    "see https://github.com/pytorch/ao/issues/2259 for more details"
)


def deprecated(
    text: str, category: type[Warning] = DeprecationWarning
) -> Callable[[Any], Any]:
    """Makes a function say at each call that it will go."""

    def mark(function: Any) -> Any:
        @functools.wraps(function)
        def warned(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, category, stacklevel=2)
            return function(*args, **kwargs)

        function.__deprecated__ = warned.__deprecated__ = text  # type: ignore[attr-defined]
        return warned

    return mark


# Patterns of modules and functions ----------------------------------------------------

#: Nodes of a graph that are one pattern, innermost last.
NodePattern = Any
#: Functions and types that are one pattern, innermost last.
Pattern = Any
QuantizerCls = Any


class MatchAllNode:
    """Stands for any node in a pattern."""


module_type_list = {
    *(nn.ReLU, nn.ReLU6, nn.Identity, nn.Hardsigmoid, nn.Sigmoid, nn.Tanh),
    *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
    *(nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d),
}
func_list = {
    *(F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d),
    *(F.elu, F.hardswish, F.instance_norm, F.layer_norm, F.leaky_relu, F.silu, F.mish),
    *(F.dropout, F.max_pool1d, F.max_pool2d, F.max_pool3d, F.relu, F.hardtanh),
    *(F.hardtanh_, F.hardsigmoid, F.sigmoid, torch.transpose, torch.repeat_interleave),
    *(torch.sigmoid, torch.squeeze, torch.stack, torch.sum, torch.tanh),
    *(torch.unsqueeze, torch.cat),
}
method_list = {
    torch.mean,
    *("relu", "relu_", "contiguous", "detach", "detach_", "hardsigmoid"),
    *("hardsigmoid_", "permute", "repeat", "repeat_interleave", "reshape", "resize_"),
    *("shape", "sigmoid", "sigmoid_", "size", "squeeze", "squeeze_", "tanh", "tanh_"),
    *("transpose", "unsqueeze", "unsqueeze_", "view"),
}


def check_node(node: Any, modules: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Whether a node calls a function, method or module that works on integers, too."""
    return (
        node.op == "call_function" and node.target in func_list,
        node.op == "call_method" and node.target in method_list,
        node.op == "call_module"
        and type(modules[str(node.target)]) in module_type_list,
    )


def get_combined_dict(
    default_dict: dict[Any, Any], additional_dict: dict[Any, Any]
) -> dict[Any, Any]:
    """A copy of a dict with the entries of another in it.

    >>> get_combined_dict({"a": 1, "b": 2}, {"b": 3})
    {'a': 1, 'b': 3}
    """
    return {**default_dict, **additional_dict}


def getattr_from_fqn(obj: Any, fqn: str) -> Any:
    """The attribute of an attribute that a path with dots names.

    >>> getattr_from_fqn(nn.Linear(2, 3), "weight.shape")
    torch.Size([3, 2])
    """
    return functools.reduce(getattr, fqn.split("."), obj)


def _parent_name(target: str) -> tuple[str, str]:
    parent, _, name = target.rpartition(".")
    return parent, name


def has_no_children_ignoring_parametrizations(module: Any) -> bool:
    """Whether a module has no submodules but those of its parametrizations."""
    children = module._modules
    if is_parametrized(module):
        return not children or list(children) == ["parametrizations"]
    return not children


# Schemes and dtypes -------------------------------------------------------------------


def is_per_tensor(qscheme: Any) -> bool:
    """Whether there is one scale for all elements."""
    return qscheme in (torch.per_tensor_affine, torch.per_tensor_symmetric)


def is_per_channel(qscheme: Any) -> bool:
    """Whether there are scales for each index of a dimension."""
    return qscheme in (
        torch.per_channel_affine,
        torch.per_channel_affine_float_qparams,
        torch.per_channel_symmetric,
    )


_FLOATS = (torch.float8_e5m2, torch.float8_e4m3fn)
_INT8 = (torch.quint8, torch.qint8, torch.uint8, torch.int8)
_UNDERLYING = {
    **{torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32},
    **dict.fromkeys((torch.quint4x2, torch.quint2x4), torch.uint8),
    **{
        each: each
        for each in (
            *(torch.uint8, torch.int8, torch.uint16, torch.int16, torch.int32),
            *_FLOATS,
        )
    },
}


def to_underlying_dtype(qdtype: Any) -> Any:
    """The dtype of the codes of a quantized one; others are their own.

    >>> to_underlying_dtype(torch.qint8)
    torch.int8
    """
    if qdtype not in _UNDERLYING:
        raise AssertionError("Unsupported dtype: " + str(qdtype))
    return _UNDERLYING[qdtype]


def get_qparam_dict(observer_or_fake_quant: Any) -> dict[str, Any]:
    """What an observer found: scheme, dtype, scales, zero points and range of codes."""
    from torchshim.ao.quantization.observer import PlaceholderObserver

    given = observer_or_fake_quant
    qscheme, dtype = getattr(given, "qscheme", None), given.dtype
    if not qscheme or isinstance(given, PlaceholderObserver):
        return {"qscheme": None, "dtype": dtype}
    found = {"qscheme": qscheme, "dtype": dtype}
    if is_per_tensor(qscheme):
        found["qscheme"] = torch.per_tensor_affine
    elif is_per_channel(qscheme):
        if qscheme is torch.per_channel_symmetric:
            found["qscheme"] = torch.per_channel_affine
        found["axis"] = given.ch_axis
    else:
        raise RuntimeError(f"Unrecognized qscheme: {qscheme}")
    found["scale"], found["zero_point"] = given.calculate_qparams()
    for name in ("quant_min", "quant_max"):
        if hasattr(given, name):
            found[name] = getattr(given, name)
    return found


# Settings -----------------------------------------------------------------------------


def get_swapped_custom_module_class(
    custom_module: Any, custom_module_class_mapping: dict[Any, Any], qconfig: Any
) -> Any:
    """The class that a mapping has for this kind of quantization and module."""
    mapping = custom_module_class_mapping.get(get_quant_type(qconfig), {})
    if type(custom_module) not in mapping:
        raise AssertionError(
            "did not find corresponding observed module class for "
            f"{type(custom_module)} in mapping: {mapping}"
        )
    return mapping[type(custom_module)]


def _required(qconfig: Any, wanted: str) -> None:
    if qconfig is None:
        raise AssertionError(f"qconfig must be provided to {wanted}")


def activation_dtype(qconfig: Any) -> Any:
    """The dtype in which a setting has activations."""
    _required(qconfig, "determine activation dtype")
    return qconfig.activation().dtype


def weight_dtype(qconfig: Any) -> Any:
    """The dtype in which a setting has weights."""
    _required(qconfig, "determine weight dtype")
    return qconfig.weight().dtype


def get_qconfig_dtypes(qconfig: Any) -> tuple[Any, Any, bool]:
    """The dtypes of activation and weight, and whether scales are found in calls."""
    _required(qconfig, "extract dtypes")
    activation, weight = qconfig.activation(), qconfig.weight()
    return activation.dtype, weight.dtype, getattr(activation, "is_dynamic", False)


def activation_is_statically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantized with scales that were found before."""
    known = (
        *(*_INT8, torch.qint32, torch.float16, torch.int16, torch.int32, *_FLOATS),
    )
    dynamic = activation_is_dynamically_quantized(qconfig)
    return activation_dtype(qconfig) in known and not dynamic


def activation_is_dynamically_quantized(qconfig: Any) -> bool:
    """Whether activations are quantized with scales that are found at each call."""
    return get_qconfig_dtypes(qconfig)[2]


def activation_is_int8_quantized(qconfig: Any) -> bool:
    """Whether activations have codes of one byte."""
    return activation_dtype(qconfig) in _INT8


def activation_is_int32_quantized(qconfig: Any) -> bool:
    """Whether activations have codes of four bytes."""
    return activation_dtype(qconfig) in (torch.qint32, torch.int32)


def weight_is_quantized(qconfig: Any) -> bool:
    """Whether weights are quantized, or in half precision."""
    wide = (torch.float16, torch.quint4x2, torch.int16, torch.int32, *_FLOATS)
    return weight_dtype(qconfig) in (*_INT8, *wide)


def weight_is_statically_quantized(qconfig: Any) -> bool:
    """Whether weights have codes of one byte."""
    return weight_dtype(qconfig) in _INT8


def op_is_int8_dynamically_quantized(qconfig: Any) -> bool:
    """Whether products are of bytes, with scales of activations found at each call."""
    activation, weight, dynamic = get_qconfig_dtypes(qconfig)
    return (
        activation in (torch.quint8, torch.uint8)
        and weight in (torch.qint8, torch.int8)
        and dynamic
    )


def get_quant_type(qconfig: Any) -> QuantType:
    """How a setting quantizes."""
    _required(qconfig, "determine quant type")
    activation, weight = qconfig.activation(), qconfig.weight()
    static = (
        *(*_INT8, torch.quint4x2, torch.qint32, torch.int16, torch.int32, *_FLOATS),
    )
    dynamic = getattr(activation, "is_dynamic", False)
    if weight.dtype in static:
        if dynamic:
            return QuantType.DYNAMIC
        if activation.dtype in static:
            return QuantType.STATIC
        return QuantType.WEIGHT_ONLY
    if weight.dtype is torch.float16:
        if dynamic:
            return QuantType.DYNAMIC
        if activation.dtype is torch.float16:
            return QuantType.STATIC
    raise Exception(
        "Unrecognized dtype combination in get_quant_type: "
        f"activation({activation.dtype}),weight({weight.dtype})"
    )


# Ranges and scales --------------------------------------------------------------------


def check_min_max_valid(min_val: Any, max_val: Any) -> bool:
    """Whether a range was seen at all; AssertionError for ends in the wrong order."""
    missing = not min_val.numel() or not max_val.numel()
    if not missing and (not min_val.dim() or not max_val.dim()):
        missing = bool(min_val == float("inf")) and bool(max_val == float("-inf"))
    if missing:
        warnings.warn(
            "must run observer before calling calculate_qparams. "
            "Returning default values.",
            stacklevel=2,
        )
        return False
    if bool((min_val > max_val).any()):
        raise AssertionError(f"min {min_val} should be less than max {max_val}")
    return True


_RANGES = {
    **dict.fromkeys((torch.qint8, torch.int8), (-128, 127)),
    **dict.fromkeys((torch.quint8, torch.uint8), (0, 255)),
    **dict.fromkeys((torch.qint32, torch.int32), (-(2**31), 2**31 - 1)),
    torch.uint16: (0, 2**16 - 1),
    torch.int16: (-(2**15), 2**15 - 1),
}


def calculate_qmin_qmax(
    quant_min: int | None,
    quant_max: int | None,
    has_customized_qrange: bool,
    dtype: Any,
    reduce_range: bool,
) -> tuple[int, int]:
    """The least and greatest code: those asked for, or those of the dtype.

    `reduce_range` halves the range, as some processors need it.

    >>> calculate_qmin_qmax(None, None, False, torch.qint8, True)
    (-64, 63)
    """
    eight_bits = dtype in _INT8
    if has_customized_qrange:
        wide = dtype in (torch.qint32, torch.int32)
        least, most = 0, 2**32 - 1 if wide else 255
        if quant_min is not None and quant_max is not None:
            least, most = quant_min, quant_max
        limit = 2**32 if wide else 256
        checked = wide or dtype in (torch.qint8, torch.int8)
        if checked and not 0 < most - least + 1 <= limit:
            raise AssertionError(
                "quantization range should be positive and not exceed the maximum bit "
                f"range (={limit})."
            )
        assert quant_min is not None and quant_max is not None
        halved = reduce_range
        least, most = quant_min, quant_max
    else:
        least, most = _RANGES.get(dtype, (0, 15))
        halved = reduce_range and eight_bits
    return (least // 2, most // 2) if halved else (least, most)


def validate_qmin_qmax(quant_min: int, quant_max: int) -> None:
    """Refuses ranges of codes that are empty or without zero."""
    if not quant_min <= 0 <= quant_max:
        raise AssertionError("Used-specified quantization range must include 0.")
    if quant_min >= quant_max:
        raise AssertionError(
            "qmin must be strictly less than qmax for user-specified quantization "
            "range."
        )


def scales_and_zero_points(
    min_val: Any,
    max_val: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    eps: Any,
    customized: bool,
    qscheme: Any,
    middle: int | None = None,
) -> tuple[Any, Any]:
    """The scales and zero points for these ranges, as tensors of at least one element.

    `middle`: the zero point of symmetric codes, if that is not of the dtype.
    """
    if not check_min_max_valid(min_val, max_val):
        return _unseen(min_val)
    given = min_val, max_val, quant_min, quant_max, dtype, eps, customized, qscheme
    return _of_range(*given, middle)


def _unseen(min_val: Any) -> tuple[Any, Any]:
    """The scale and zero point where no range was seen."""
    made = {"device": min_val.device.type}
    return torch.tensor([1.0], **made), torch.tensor([0], **made)


def _of_range(
    min_val: Any,
    max_val: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    eps: Any,
    customized: bool,
    qscheme: Any,
    middle: int | None = None,
) -> tuple[Any, Any]:
    low = torch.min(min_val, torch.zeros_like(min_val))
    high = torch.max(max_val, torch.zeros_like(max_val))
    codes = float(quant_max - quant_min)
    if qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric):
        scale = torch.max(torch.max(-low, high) / (codes / 2), eps)
        if middle is None:
            middle = 0
            if dtype in (torch.quint8, torch.uint8):
                middle = (quant_min + quant_max) // 2 if customized else 128
        zero_point = torch.full(low.size(), middle, dtype=torch.int64)
        zero_point = zero_point.to(low.device)
    elif qscheme is torch.per_channel_affine_float_qparams:
        scale = (max_val - min_val) / codes
        scale = torch.where(scale > eps, scale, torch.ones_like(scale))
        # Codes are round(x / scale + zero_point), so that the least is code 0.
        zero_point = -1 * min_val / scale
    else:
        scale = torch.max((high - low) / codes, eps)
        zero_point = quant_min - torch.round(low / scale).to(torch.int)
        zero_point = torch.clamp(zero_point, quant_min, quant_max)
    return torch.atleast_1d(scale), torch.atleast_1d(zero_point)


def determine_qparams(
    min_val: Any,
    max_val: Any,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    eps: Any,
    has_customized_qrange: bool,
    qscheme: Any = torch.per_tensor_affine,
) -> tuple[Any, Any]:
    """The scales in float64 and zero points in int64 for these ranges.

    >>> least, most = torch.tensor(-1.0), torch.tensor(2.0)
    >>> given = least, most, 0, 255, torch.quint8, torch.tensor([1e-8]), False
    >>> determine_qparams(*given)
    (tensor([0.0118], dtype=torch.float64), tensor([85]))
    """
    if not check_min_max_valid(min_val, max_val):
        return _unseen(min_val)
    limits = quant_min, quant_max, dtype, eps.to(min_val.device)
    scale, zero_point = _of_range(
        min_val, max_val, *limits, has_customized_qrange, qscheme
    )
    return scale.to(torch.double), zero_point.to(torch.int64)


# Calls of submodules ------------------------------------------------------------------


def _get_path_of_module(root: Any, submodule: Any) -> str | None:
    for name, each in root.named_modules():
        if each is submodule:
            return name
    return None


def _get_signature_locals(f: Callable[..., Any], loc: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in loc.items() if k in inspect.signature(f).parameters}


def _get_default_kwargs(f: Callable[..., Any]) -> OrderedDict[str, Any]:
    found: OrderedDict[str, Any] = OrderedDict()
    for name, parameter in inspect.signature(f).parameters.items():
        if parameter.default is not parameter.empty:
            found[name] = parameter.default
        elif parameter.kind is parameter.VAR_POSITIONAL:
            found[name] = ()
        elif parameter.kind is parameter.VAR_KEYWORD:
            found[name] = {}
    return found


def _normalize_kwargs(
    func: Callable[..., Any], loc: dict[str, Any]
) -> OrderedDict[str, Any]:
    found = _get_default_kwargs(func)
    given = _get_signature_locals(func, loc)
    found.update({name: value for name, value in given.items() if name in found})
    return found


def _get_num_pos_args(f: Callable[..., Any]) -> int:
    return len(inspect.getfullargspec(f).args)


def get_fqn_to_example_inputs(
    model: Any, example_inputs: tuple[Any, ...]
) -> dict[str, tuple[Any, ...]]:
    """What each submodule is given when the model is called, by its path.

    Keywords that a submodule's `forward` takes follow by position, with defaults.

    >>> found = get_fqn_to_example_inputs(nn.Sequential(nn.ReLU()), (torch.ones(1),))
    >>> found["0"]
    (tensor([1.]),)
    """
    found: dict[str, tuple[Any, ...]] = {}
    call = nn.Module.__call__

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        keywords = _normalize_kwargs(self.forward, kwargs)
        missing = _get_num_pos_args(self.forward) - 1 - len(args)
        while missing and keywords:
            keywords.popitem(last=False)
            missing -= 1
        path = _get_path_of_module(model, self)
        if path is not None:
            found[path] = (*args, *keywords.values())
        return call(self, *args, **kwargs)

    nn.Module.__call__ = noted
    try:
        model(*example_inputs)
    finally:
        nn.Module.__call__ = call
    return found


def _assert_and_get_unique_device(module: Any) -> Any:
    devices = {each.device for each in (*module.parameters(), *module.buffers())}
    if devices == {torch.device("cpu"), torch.device("meta")}:
        warnings.warn(
            "Both 'meta' and 'cpu' are present in the list of devices. Module can have "
            "one device. We Select 'cpu'.",
            stacklevel=2,
        )
        devices = {torch.device("cpu")}
    if len(devices) > 1:
        raise AssertionError(
            "prepare only works with cpu or single-device CUDA modules, but got "
            f"devices {devices}"
        )
    return next(iter(devices), None)
