"""Layers and the batch normalization behind them as one layer."""

from __future__ import annotations

import copy
from typing import Any

import torchshim
from torchshim.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _check_statistics(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_running(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does what it and the batch norm do, evaluating.

    AssertionError for modules in training. Follows
    ``torch.nn.utils.fuse_conv_bn_eval``.

    >>> import torchshim as torch
    >>> conv, bn = torch.nn.Conv1d(1, 2, 1).eval(), torch.nn.BatchNorm1d(2).eval()
    >>> x = torch.ones(1, 1, 3)
    >>> torch.allclose(fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)))
    True
    """
    _check_statistics(conv, bn)
    fused = copy.deepcopy(conv)
    _check_running(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the convolution that `fuse_conv_bn_eval` makes.

    Follows ``torch.nn.utils.fuse_conv_bn_weights``.
    """
    dtype = conv_w.dtype
    bias_dtype = dtype if conv_b is None else conv_b.dtype
    conv_b = torchshim.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = torchshim.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = torchshim.zeros_like(bn_rm) if bn_b is None else bn_b
    root = (bn_rv + bn_eps).rsqrt()
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.dim() - 2)
    weight = (conv_w * (bn_w * root).reshape(shape)).to(dtype=dtype)
    bias = ((conv_b - bn_rm) * root * bn_w + bn_b).to(dtype=bias_dtype)
    return (
        Parameter(weight, conv_w.requires_grad),
        Parameter(bias, conv_b.requires_grad),
    )


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that does what it and the batch norm do, evaluating.

    AssertionError for modules in training. Follows
    ``torch.nn.utils.fuse_linear_bn_eval``.
    """
    _check_statistics(linear, bn)
    fused = copy.deepcopy(linear)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, "
            f"got linear.out_features={linear.out_features} and "
            f"bn.num_features={bn.num_features}"
        )
    _check_running(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any,
    linear_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of the linear layer that `fuse_linear_bn_eval` makes.

    Follows ``torch.nn.utils.fuse_linear_bn_weights``.
    """
    dtype = linear_w.dtype
    bias_dtype = dtype if linear_b is None else linear_b.dtype
    linear_b = torchshim.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * (bn_rv + bn_eps).rsqrt()
    weight = linear_w * scale.unsqueeze(-1).to(dtype=dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return (
        Parameter(weight, linear_w.requires_grad),
        Parameter(bias, linear_b.requires_grad),
    )
