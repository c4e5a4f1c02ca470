"""Which layers become one, and how (`torch.ao.quantization.fuser_method_mappings`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from torchshim import nn
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.quantization.utils import MatchAllNode, get_combined_dict
from torchshim.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
    "get_fuser_method_new",
]


def _check_modes(kind: str, *modules: Any) -> None:
    if len({each.training for each in modules}) > 1:
        raise AssertionError(
            f"{kind} and BN both must be in the same mode (train or eval)."
        )


def _check_norm(bn: Any, channels: int, sizes: str, norm: str) -> None:
    """Refuses batch norms that cannot be trained as a part of a layer."""
    if bn.num_features != channels:
        raise AssertionError(sizes)
    if not bn.affine:
        raise AssertionError(f"Only support fusing {norm} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(
            f"Only support fusing {norm} with tracking_running_stats set to True"
        )


_SIZES = "Output channel of Conv2d must match num_features of BatchNorm2d"


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Any:
    """A convolution and its batch norm as one: with other weights, or for training.

    >>> fuse_conv_bn(False, nn.Conv2d(1, 2, 3).eval(), nn.BatchNorm2d(2).eval())
    Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    _check_modes("Conv", conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    _check_norm(bn, conv.out_channels, f"{_SIZES}.", "BatchNorm2d")
    kinds: dict[Any, Any] = {
        nn.Conv1d: nni.ConvBn1d,
        nn.Conv2d: nni.ConvBn2d,
        nn.Conv3d: nni.ConvBn3d,
    }
    if type(conv) not in kinds:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return kinds[type(conv)](conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Any:
    """As `fuse_conv_bn`, with the ReLU that follows.

    >>> layers = nn.Conv1d(1, 2, 3), nn.BatchNorm1d(2), nn.ReLU()
    >>> type(fuse_conv_bn_relu(True, *layers)).__name__
    'ConvBnReLU1d'
    """
    _check_modes("Conv", conv, bn, relu)
    kinds: dict[Any, Any]
    if is_qat:
        kinds = {
            nn.Conv1d: nni.ConvBnReLU1d,
            nn.Conv2d: nni.ConvBnReLU2d,
            nn.Conv3d: nni.ConvBnReLU3d,
        }
        _check_norm(bn, conv.out_channels, _SIZES, "BatchNorm2d")
    else:
        kinds = {
            nn.Conv1d: nni.ConvReLU1d,
            nn.Conv2d: nni.ConvReLU2d,
            nn.Conv3d: nni.ConvReLU3d,
        }
    if type(conv) not in kinds:
        mode = "train" if is_qat else "eval"
        raise NotImplementedError(f"Cannot fuse {mode} modules: {(conv, bn, relu)}")
    if is_qat:
        return kinds[type(conv)](conv, bn, relu)
    return kinds[type(conv)](fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Any:
    """A linear layer and its batch norm as one: with other weights, or for training.

    >>> fuse_linear_bn(False, nn.Linear(1, 2).eval(), nn.BatchNorm1d(2).eval())
    Linear(in_features=1, out_features=2, bias=True)
    """
    _check_modes("Linear", linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    sizes = "Output features of Linear must match num_features of BatchNorm1d"
    _check_norm(bn, linear.out_features, sizes, "BatchNorm1d")
    return nni.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Any:
    """A transposed convolution with the weights that its batch norm gives it."""
    _check_modes("ConvTranspose", convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def _sequential_wrapper2(sequential: Any) -> Callable[..., Any]:
    def fuser_method(is_qat: bool, m1: Any, m2: Any) -> Any:
        return sequential(m1, m2)

    return fuser_method


_DEFAULT_OP_LIST_TO_FUSER_METHOD: dict[Any, Any] = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn,
    (nn.Conv1d, nn.BatchNorm1d, nn.ReLU): fuse_conv_bn_relu,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn,
    (nn.Conv2d, nn.BatchNorm2d, nn.ReLU): fuse_conv_bn_relu,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn,
    (nn.Conv3d, nn.BatchNorm3d, nn.ReLU): fuse_conv_bn_relu,
    (nn.Conv1d, nn.ReLU): _sequential_wrapper2(nni.ConvReLU1d),
    (nn.Conv2d, nn.ReLU): _sequential_wrapper2(nni.ConvReLU2d),
    (nn.Conv3d, nn.ReLU): _sequential_wrapper2(nni.ConvReLU3d),
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.Linear, nn.ReLU): _sequential_wrapper2(nni.LinearReLU),
    (nn.BatchNorm2d, nn.ReLU): _sequential_wrapper2(nni.BNReLU2d),
    (nn.BatchNorm3d, nn.ReLU): _sequential_wrapper2(nni.BNReLU3d),
    (nn.ConvTranspose1d, nn.BatchNorm1d): fuse_convtranspose_bn,
    (nn.ConvTranspose2d, nn.BatchNorm2d): fuse_convtranspose_bn,
    (nn.ConvTranspose3d, nn.BatchNorm3d): fuse_convtranspose_bn,
}


def get_fuser_method(
    op_list: tuple[Any, ...],
    additional_fuser_method_mapping: dict[Any, Any] | None = None,
) -> Any:
    """What fuses modules of these types, in this order; AssertionError if nothing does.

    >>> get_fuser_method((nn.Linear, nn.BatchNorm1d)).__name__
    'fuse_linear_bn'
    """
    known = get_combined_dict(
        _DEFAULT_OP_LIST_TO_FUSER_METHOD, additional_fuser_method_mapping or {}
    )
    if known.get(op_list) is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return known[op_list]


def _reverse2(f: Any) -> Callable[..., Any]:
    def reversed(is_qat: bool, x: Any, y: Any) -> Any:
        return f(is_qat, y, x)

    return reversed


def _reverse3(f: Any) -> Callable[..., Any]:
    def reversed(is_qat: bool, x: Any, w: Any) -> Any:
        y, z = w
        return f(is_qat, z, y, x)

    return reversed


def _get_valid_patterns(op_pattern: Any) -> list[Any]:
    """The pattern, and those with any node in place of one or more of its parts."""
    if isinstance(op_pattern, (tuple, list)):
        parts = [_get_valid_patterns(each) for each in op_pattern]
        return list(itertools.product(*parts))
    return [op_pattern, MatchAllNode]


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: dict[Any, Any]) -> Any:
    """What fuses nodes of this pattern, whose last node comes first."""
    for pattern in (patterns := _get_valid_patterns(op_pattern)):
        found = fuser_method_mapping.get(pattern)
        if found is not None:
            return found
    raise AssertionError(f"did not find fuser method for: {patterns[-1]} ")
