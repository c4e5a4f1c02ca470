"""Models of elements turned into models of integers (`torch.ao.quantization.quantize`).

https://docs.pytorch.org/docs/2.13/quantization.html
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection
from typing import Any

import torchshim as torch
from torchshim import _warnings as warnings
from torchshim import nn
from torchshim.ao.nn import quantizable as nnqa
from torchshim.ao.nn import quantized as nnq
from torchshim.ao.nn.intrinsic import _FusedModule
from torchshim.ao.quantization.observer import _is_activation_post_process
from torchshim.ao.quantization.qconfig import (
    _activation_is_memoryless,
    _add_module_to_qconfig_obs_ctr,
    _assert_valid_qconfig,
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from torchshim.ao.quantization.quantization_mappings import (
    _get_special_act_post_process,
    _has_special_act_post_process,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    get_default_static_quant_reference_module_mappings,
    no_observer_set,
)
from torchshim.ao.quantization.stubs import DeQuantStub, QuantWrapper
from torchshim.ao.quantization.utils import (
    DEPRECATION_WARNING,
    deprecated,
    get_qparam_dict,
    has_no_children_ignoring_parametrizations,
)
from torchshim.nn.utils.parametrize import type_before_parametrizations

__all__ = [
    "add_quant_dequant",
    "convert",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

is_activation_post_process = _is_activation_post_process

_DEFAULT_CUSTOM_CONFIG_DICT: dict[str, dict[Any, Any]] = {
    "float_to_observed_custom_module_class": {
        nn.LSTM: nnqa.LSTM,
        nn.MultiheadAttention: nnqa.MultiheadAttention,
    },
    "observed_to_quantized_custom_module_class": {
        nnqa.LSTM: nnq.LSTM,
        nnqa.MultiheadAttention: nnq.MultiheadAttention,
    },
}


def get_default_custom_config_dict() -> dict[str, dict[Any, Any]]:
    """Layers that are made of others to be observed: the dict itself."""
    return _DEFAULT_CUSTOM_CONFIG_DICT


# Settings -----------------------------------------------------------------------------


def _propagate_qconfig_helper(
    module: Any,
    qconfig_dict: dict[Any, Any],
    qconfig_parent: Any = None,
    prefix: str = "",
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> None:
    kind = type_before_parametrizations(module)
    found = qconfig_dict.get(kind, qconfig_parent)
    found = qconfig_dict.get(prefix, found)
    found = getattr(module, "qconfig", found)
    _assert_valid_qconfig(found, module)
    module.qconfig = found = _add_module_to_qconfig_obs_ctr(found, module)
    settings = prepare_custom_config_dict or {}
    names = settings.get("non_traceable_module_name", [])
    kinds = settings.get("non_traceable_module_class", [])
    for name, child in module.named_children():
        if name in names or type(child) in kinds:
            continue
        path = f"{prefix}.{name}" if prefix else name
        _propagate_qconfig_helper(child, qconfig_dict, found, path)


def propagate_qconfig_(
    module: Any,
    qconfig_dict: dict[Any, Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> None:
    """Gives each submodule a `qconfig`: its own, else its name's, type's, or parent's.

    `qconfig_dict` has settings of names and types.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.quantize.propagate_qconfig_.html

    >>> from torchshim.ao.quantization.qconfig import default_qconfig
    >>> model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    >>> propagate_qconfig_(model, {nn.Linear: default_qconfig})
    >>> model[0].qconfig.activation().quant_max, model[1].qconfig
    (127, None)
    """
    _propagate_qconfig_helper(
        module,
        qconfig_dict or {},
        prepare_custom_config_dict=prepare_custom_config_dict or {},
    )


# Observers ----------------------------------------------------------------------------


def _observer_forward_hook(self: Any, input: Any, output: Any) -> Any:
    """Has the observer note the result."""
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self: Any, input: Any) -> Any:
    """Has the observer note the first argument."""
    return self.activation_post_process(input[0])


def _register_activation_post_process_hook(module: Any, pre_hook: bool = False) -> None:
    if not hasattr(module, "activation_post_process"):
        raise AssertionError(
            "Expect activation_post_process attribute already attached to the module"
        )
    # First, so that other hooks get what the observer hands on.
    if pre_hook:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _needs_observation(module: Any) -> bool:
    return getattr(module, "qconfig", None) is not None


def _made_observer(qconfig: Any, device: Any, make: Any = None) -> Any:
    made = qconfig.activation() if make is None else make()
    if device is not None:
        made.to(device)
    return made


def _insert(module: Any, device: Any, make: Any = None) -> None:
    """Puts an observer and its hook on a module, if it is to have one."""
    if not _needs_observation(module) or isinstance(module, DeQuantStub):
        return
    observer = _made_observer(module.qconfig, device, make)
    module.add_module("activation_post_process", observer)
    before = _activation_is_memoryless(module.qconfig)
    _register_activation_post_process_hook(module, pre_hook=before)


def _add_observer_(
    module: Any,
    qconfig_propagation_list: Collection[Any] | None = None,
    non_leaf_module_list: Collection[Any] | None = None,
    device: Any = None,
    custom_module_class_mapping: dict[Any, Any] | None = None,
) -> None:
    """Puts observers on the layers within a module, and on it if it is one."""
    if qconfig_propagation_list is None:
        qconfig_propagation_list = get_default_qconfig_propagation_list()
    observed = custom_module_class_mapping or {}
    if device is None:
        device = _device_of(module, "_add_observer_ only works")
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if _needs_observation(child):
                if not hasattr(child, "activation_post_process"):
                    raise AssertionError(
                        f"functional class {kind} has no pre-defined "
                        "`activation_post_process`"
                    )
                child.activation_post_process = _made_observer(child.qconfig, device)
        elif isinstance(child, _FusedModule) or kind in (non_leaf_module_list or ()):
            _insert(child, device)
        elif _has_special_act_post_process(child):
            _insert(child, device, _get_special_act_post_process(child))
        elif _needs_observation(child) and kind in observed:
            made = observed[kind].from_float(child)
            setattr(module, name, made)
            if not issubclass(observed[kind], tuple(no_observer_set())):
                _insert(made, device)
        else:
            _add_observer_(
                child, qconfig_propagation_list, non_leaf_module_list, device, observed
            )
    known = type_before_parametrizations(module) in qconfig_propagation_list
    if not known or isinstance(module, nn.Sequential):
        return
    if has_no_children_ignoring_parametrizations(module):
        _insert(module, device)
    # A layer that rounds its weight has that module as a child.
    if hasattr(module, "weight_fake_quant"):
        _insert(module, device)


def _get_unique_devices_(module: Any) -> set[Any]:
    found = (each.device for each in (*module.parameters(), *module.buffers()))
    return {device for device in found if device.type != "meta"}


def _device_of(module: Any, what: str) -> Any:
    devices = _get_unique_devices_(module)
    if len(devices) > 1:
        raise AssertionError(
            f"{what} with cpu or single-device CUDA modules, but got devices {devices}"
        )
    return next(iter(devices), None)


def add_quant_dequant(module: Any) -> Any:
    """A model with each layer that has a setting within a `QuantWrapper`.

    The model itself is changed, unless it is a layer.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.add_quant_dequant.html

    >>> from torchshim.ao.quantization.qconfig import default_qconfig
    >>> layer = nn.ReLU()
    >>> layer.qconfig = default_qconfig
    >>> add_quant_dequant(layer)
    QuantWrapper(
      (quant): QuantStub()
      (dequant): DeQuantStub()
      (module): ReLU()
    )
    """
    leaf = has_no_children_ignoring_parametrizations(module)
    if leaf and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


@deprecated(DEPRECATION_WARNING)
def prepare(
    model: Any,
    inplace: bool = False,
    allow_list: Collection[Any] | None = None,
    observer_non_leaf_module_list: Collection[Any] | None = None,
    prepare_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """A copy of a model with observers on all layers that have a setting (`qconfig`).

    Called with examples, it notes the ranges that `convert` needs. `allow_list` are the
    classes of layers (default: those that `convert` knows),
    `observer_non_leaf_module_list` those of modules that are observed as one, and
    `prepare_custom_config_dict` has a `float_to_observed_custom_module_class`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.prepare.html
    """
    if prepare_custom_config_dict is None:
        prepare_custom_config_dict = get_default_custom_config_dict()
    observed = prepare_custom_config_dict.get(
        "float_to_observed_custom_module_class", {}
    )
    if not inplace:
        model = copy.deepcopy(model)
    if allow_list is None:
        allow_list = get_default_qconfig_propagation_list()
    propagate_qconfig_(model, qconfig_dict=None)
    if not any(getattr(each, "qconfig", None) for each in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct "
            "configuration through `qconfig_dict` or by assigning the `.qconfig` "
            "attribute directly on submodules",
            stacklevel=2,
        )
    _add_observer_(
        model,
        allow_list,
        observer_non_leaf_module_list,
        custom_module_class_mapping=observed,
    )
    return model


def _remove_activation_post_process(module: Any) -> None:
    observer = getattr(module, "activation_post_process", None)
    if _is_activation_post_process(observer):
        del module.activation_post_process
    for hooks, ours in (
        (module._forward_pre_hooks, _observer_forward_pre_hook),
        (module._forward_hooks, _observer_forward_hook),
    ):
        for key in [key for key, hook in hooks.items() if hook is ours]:
            hooks.pop(key)


def _remove_qconfig(module: Any) -> None:
    """Takes settings and observers off a module and what is within it."""
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


# Models -------------------------------------------------------------------------------


@deprecated(DEPRECATION_WARNING)
def quantize(
    model: Any,
    run_fn: Callable[..., Any],
    run_args: Collection[Any],
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
) -> Any:
    """A copy of a model with layers of integers, whose scales `run_fn` has found.

    It is called with the model that has observers, and `run_args`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.quantize.html
    """
    if mapping is None:
        mapping = get_default_static_quant_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


_RECURRENT = (nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)
# For each dtype of weights the setting, and the layers that have it by default.
_DYNAMIC: dict[Any, tuple[Any, tuple[Any, ...]]] = {
    torch.qint8: (default_dynamic_qconfig, (nn.Linear, *_RECURRENT)),
    torch.float16: (float16_dynamic_qconfig, (nn.Linear, *_RECURRENT)),
    torch.quint8: (
        float_qparams_weight_only_qconfig,
        (nn.EmbeddingBag, nn.Embedding),
    ),
    torch.quint4x2: (float_qparams_weight_only_qconfig_4bit, (nn.EmbeddingBag,)),
}


@deprecated(DEPRECATION_WARNING)
def quantize_dynamic(
    model: Any,
    qconfig_spec: Any = None,
    dtype: Any = torch.qint8,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
) -> Any:
    """A copy of a model whose linear and recurrent layers have weights of integers.

    Scales of what comes in are found at each call. `qconfig_spec` is a set of classes
    or names of layers, or a dict with their settings (default: by `dtype`).

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.quantize_dynamic.html

    >>> import warnings
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> with warnings.catch_warnings(action="ignore"):
    ...     quantize_dynamic(model)[0].weight().dtype
    torch.qint8
    """
    if qconfig_spec is None:
        if dtype not in _DYNAMIC:
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. "
                "Provide full qconfig please"
            )
        setting, kinds = _DYNAMIC[dtype]
        qconfig_spec = dict.fromkeys(kinds, setting)
    elif isinstance(qconfig_spec, set):
        if dtype not in _DYNAMIC:
            raise RuntimeError(
                "Unknown dtype specified for quantize_dynamic: ", str(dtype)
            )
        qconfig_spec = dict.fromkeys(qconfig_spec, _DYNAMIC[dtype][0])
    if mapping is None:
        mapping = get_default_dynamic_quant_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    convert(model, mapping, inplace=True)
    return model


@deprecated(DEPRECATION_WARNING)
def prepare_qat(
    model: Any, mapping: dict[Any, Any] | None = None, inplace: bool = False
) -> Any:
    """A copy of a model whose weights and results are rounded while it is trained.

    AssertionError unless it is in training mode. `mapping` has the classes of layers
    that replace others.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.prepare_qat.html
    """
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    if mapping is None:
        mapping = get_default_qat_module_mappings()
    if not inplace:
        model = copy.deepcopy(model)
    propagate_qconfig_(model, qconfig_dict=None)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


@deprecated(DEPRECATION_WARNING)
def quantize_qat(
    model: Any,
    run_fn: Callable[..., Any],
    run_args: Collection[Any],
    inplace: bool = False,
) -> Any:
    """A copy of a model with layers of integers, which `run_fn` has trained.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.quantize_qat.html
    """
    if not inplace:
        model = copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


@deprecated(DEPRECATION_WARNING)
def convert(
    module: Any,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: dict[str, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """A copy of a model with its observed layers replaced by layers of integers.

    `mapping` has the class for each class; `is_reference` has layers that round their
    weights and compute with elements. `convert_custom_config_dict` has an
    `observed_to_quantized_custom_module_class`. With `use_precomputed_fake_quant` the
    scales of weights of linear layers are those that training left; as in PyTorch,
    other layers find theirs anew.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.convert.html

    >>> import warnings
    >>> from torchshim.ao.quantization import default_qconfig
    >>> model = QuantWrapper(nn.Linear(2, 2))
    >>> model.qconfig = default_qconfig
    >>> with warnings.catch_warnings(action="ignore"):
    ...     observed = prepare(model)
    ...     x = observed(torch.eye(2))
    ...     converted = convert(observed)
    >>> type(converted.module).__name__, converted.quant.zero_point
    ('Linear', tensor([0]))
    """
    if not inplace:
        module = copy.deepcopy(module)
    _convert(
        module,
        mapping,
        inplace=True,
        is_reference=is_reference,
        convert_custom_config_dict=convert_custom_config_dict,
        use_precomputed_fake_quant=use_precomputed_fake_quant,
    )
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(
    module: Any,
    mapping: dict[Any, Any] | None = None,
    inplace: bool = False,
    is_reference: bool = False,
    convert_custom_config_dict: dict[str, Any] | None = None,
    use_precomputed_fake_quant: bool = False,
) -> Any:
    if mapping is None and is_reference:
        mapping = get_default_static_quant_reference_module_mappings()
    elif mapping is None:
        mapping = get_default_static_quant_module_mappings()
    if convert_custom_config_dict is None:
        convert_custom_config_dict = get_default_custom_config_dict()
    custom = convert_custom_config_dict.get(
        "observed_to_quantized_custom_module_class", {}
    )
    if not inplace:
        module = copy.deepcopy(module)
    swapped = {}
    for name, child in module.named_children():
        fused = isinstance(child, _FusedModule)
        if not fused and type_before_parametrizations(child) not in custom:
            _convert(
                child,
                mapping,
                True,
                is_reference,
                convert_custom_config_dict,
                use_precomputed_fake_quant=use_precomputed_fake_quant,
            )
        swapped[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)
    module._modules.update(swapped)
    return module


def swap_module(
    mod: Any,
    mapping: dict[Any, Any],
    custom_module_class_mapping: dict[Any, Any],
    use_precomputed_fake_quant: bool = False,
) -> Any:
    """The layer of integers for an observed layer, or the layer if there is none.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.swap_module.html
    """
    if getattr(mod, "qconfig", None) is None:
        return mod
    kind = type_before_parametrizations(mod)
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        made = _from_float(mapping[kind], mod, use_precomputed_fake_quant)
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    device = _device_of(mod, "swap_module only works")
    if device:
        made.to(device)
    return made


def _from_float(kind: Any, mod: Any, precomputed: bool) -> Any:
    if getattr(kind, "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight)
        return kind.from_float(mod, get_qparam_dict(observer))
    if "use_precomputed_fake_quant" in inspect.signature(kind.from_float).parameters:
        return kind.from_float(mod, use_precomputed_fake_quant=precomputed)
    return kind.from_float(mod)


def _get_observer_dict(mod: Any, target_dict: dict[str, Any], prefix: str = "") -> None:
    """Puts the observers within a module into a dict, by their names."""
    start = f"{prefix}." if prefix else ""
    if hasattr(mod, "activation_post_process"):
        target_dict[start + "activation_post_process"] = mod.activation_post_process
    for name, child in mod.named_children():
        _get_observer_dict(child, target_dict, start + name)
