"""Layers that follow each other as one (`torch.ao.quantization.fuse_modules`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from torchshim import nn
from torchshim.ao.quantization.fuser_method_mappings import (
    fuse_conv_bn as fuse_conv_bn,
)
from torchshim.ao.quantization.fuser_method_mappings import (
    fuse_conv_bn_relu as fuse_conv_bn_relu,
)
from torchshim.ao.quantization.fuser_method_mappings import get_fuser_method
from torchshim.ao.quantization.utils import getattr_from_fqn as _get_module
from torchshim.nn.utils.parametrize import type_before_parametrizations

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def _set_module(model: Any, submodule_key: str, module: Any) -> None:
    parent, _, name = submodule_key.rpartition(".")
    setattr(_get_module(model, parent) if parent else model, name, module)


def fuse_known_modules(
    mod_list: Sequence[Any],
    is_qat: bool,
    additional_fuser_method_mapping: dict[Any, Any] | None = None,
) -> list[Any]:
    """These modules as one, and identities for all but the first.

    Hooks before the first and after the last are hooks of the one.

    >>> fuse_known_modules([nn.Linear(1, 2), nn.ReLU()], False)
    [LinearReLU(
      (0): Linear(in_features=1, out_features=2, bias=True)
      (1): ReLU()
    ), Identity()]
    """
    types = tuple(type_before_parametrizations(each) for each in mod_list)
    fuser_method = get_fuser_method(types, additional_fuser_method_mapping)
    fused = fuser_method(is_qat, *mod_list)
    first, last = mod_list[0], mod_list[-1]
    for hook in first._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    first._forward_pre_hooks.clear()
    for hook in last._forward_hooks.values():
        fused.register_forward_hook(hook)
    last._forward_hooks.clear()
    others = [nn.Identity() for _ in mod_list[1:]]
    for each in others:
        each.training = first.training
    return [fused, *others]


def _fuse_modules_helper(
    model: Any,
    modules_to_fuse: Sequence[str],
    is_qat: bool,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> None:
    settings = fuse_custom_config_dict or {}
    further = settings.get("additional_fuser_method_mapping", {})
    found = [_get_module(model, each) for each in modules_to_fuse]
    made = fuser_func(found, is_qat, further)
    for i, name in enumerate(modules_to_fuse):
        _set_module(model, name, made[i])


def _fuse_modules(
    model: Any,
    modules_to_fuse: Sequence[Any],
    is_qat: bool,
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    if not inplace:
        model = copy.deepcopy(model)
    lists = modules_to_fuse
    if all(isinstance(each, str) for each in modules_to_fuse):
        lists = [modules_to_fuse]
    for each in lists:
        _fuse_modules_helper(model, each, is_qat, fuser_func, fuse_custom_config_dict)
    return model


def fuse_modules(
    model: Any,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """A copy of a model, or the model, with layers that follow each other as one.

    `modules_to_fuse` are their names, or lists of names: convolution or linear layer,
    batch norm, ReLU. AssertionError for other sequences of types, unless
    `fuse_custom_config_dict` has an `additional_fuser_method_mapping` for them. The
    model is in evaluation mode.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.fuse_modules.fuse_modules.html

    >>> model = nn.Sequential(nn.Linear(1, 2), nn.ReLU()).eval()
    >>> fuse_modules(model, ["0", "1"])
    Sequential(
      (0): LinearReLU(
        (0): Linear(in_features=1, out_features=2, bias=True)
        (1): ReLU()
      )
      (1): Identity()
    )
    """
    return _fuse_modules(
        model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict
    )


def fuse_modules_qat(
    model: Any,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: dict[str, Any] | None = None,
) -> Any:
    """As `fuse_modules`, of a model in training mode: batch norms are trained on."""
    return _fuse_modules(
        model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict
    )
