"""Convolutions with batch normalization and ReLU that are trained as one layer."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim import nn
from torchshim._tensor import Tensor
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import qat as nnqat
from torchshim.ao.nn.intrinsic.qat.modules.batch_stats import FoldedNorm
from torchshim.ao.nn.qat.modules.conv import plain, settings
from torchshim.ao.nn.qat.modules.utils import check_configured, required
from torchshim.nn import functional as F
from torchshim.nn import init
from torchshim.nn.parameter import Parameter
from torchshim.nn.utils.fusion import fuse_conv_bn_weights

__all__ = [
    "ConvBn1d",
    "ConvBn2d",
    "ConvBn3d",
    "ConvBnReLU1d",
    "ConvBnReLU2d",
    "ConvBnReLU3d",
    "ConvReLU1d",
    "ConvReLU2d",
    "ConvReLU3d",
    "freeze_bn_stats",
    "update_bn_stats",
]

# What the first version of states called the parts of the normalization.
_RENAMED = {
    "bn.weight": "gamma",
    "bn.bias": "beta",
    "bn.running_mean": "running_mean",
    "bn.running_var": "running_var",
    "bn.num_batches_tracked": "num_batches_tracked",
}


class _ConvBnNd(FoldedNorm, nn.modules.conv._ConvNd, nni._FusedModule):
    """What the convolutions share; stands before the class of the same dimensions.

    What is rounded is the weight with the normalization's running scale in it:
    https://arxiv.org/abs/1806.08342, section 3.2.2.
    """

    _version = 2
    _FLOAT_MODULE: Any
    _FLOAT_CONV_MODULE: Any
    _FLOAT_BN_MODULE: Any
    _FLOAT_RELU_MODULE: Any = None
    _FUSED_FLOAT_MODULE: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: Any = None,
        padding_mode: str = "zeros",
        eps: float = 1e-5,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding, dilation
        self._FLOAT_CONV_MODULE.__init__(self, *sizes, groups, False, padding_mode)
        self.qconfig = required(qconfig)
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = self._FLOAT_BN_MODULE(out_channels, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        if bias:
            self.bias = Parameter(torchshim.empty(out_channels))
        self._start(freeze_bn)
        self._enable_slow_path_for_better_numerical_stability = False

    def reset_bn_parameters(self) -> None:
        """As that of all such layers; draws the bias of the convolution anew, too."""
        super().reset_bn_parameters()
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def _rounded(self, factor: Tensor) -> Tensor:
        """The weight with a factor for each channel, rounded as it will be."""
        shape = [-1] + [1] * (self.weight.dim() - 1)
        return self.weight_fake_quant(self.weight * factor.reshape(shape))

    def _along(self, channels: Any) -> Any:
        """A number for each channel, as it broadcasts over results."""
        return channels.reshape([1, -1] + [1] * (self.weight.dim() - 2))

    def _zeros(self, input: Tensor) -> Tensor:
        device = self.weight.device
        return torchshim.zeros(self.out_channels, device=device, dtype=input.dtype)

    def _forward(self, input: Tensor) -> Tensor:
        if self._enable_slow_path_for_better_numerical_stability:
            return self._forward_slow(input)
        return self._forward_approximate(input)

    def _forward_approximate(self, input: Tensor) -> Tensor:
        """One convolution, whose result is divided by the running scale again."""
        self._check_running()
        factor = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        made = self._conv_forward(input, self._rounded(factor), self._zeros(input))
        made = made / self._along(factor)
        if self.bias is not None:
            made = made + self._along(self.bias)
        return self.bn(made)

    def _forward_slow(self, input: Tensor) -> Tensor:
        """Two convolutions; the weight of the normalization may be zero."""
        self._check_running()
        bn, bias, zeros = self.bn, self.bias, self._zeros(input)
        if bn.running_mean is None:
            raise AssertionError("self.bn.running_mean must not be None")
        if bn.training:
            plain_out = self._conv_forward(input, self.weight, zeros)
            with torchshim.no_grad():
                bn(plain_out if bias is None else plain_out + self._along(bias))
        running = (bn.running_var + bn.eps).sqrt()
        made = self._conv_forward(input, self._rounded(bn.weight / running), zeros)
        if bn.training:
            dims = [0, *range(2, self.weight.dim())]
            mean = plain_out.mean(dims)
            spread = (plain_out - self._along(mean)).square().mean(dims)
            deviation = (spread + bn.eps).sqrt()
            made *= self._along(running / deviation)
        else:
            mean = bn.running_mean - (0 if bias is None else bias)
            deviation = running
        made += self._along(bn.bias - bn.weight * mean / deviation)
        if bias is not None:  # has a gradient, which is zero
            made += self._along(bias - bias)
        return made

    def forward(self, input: Tensor) -> Tensor:
        return self._forward(input)

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
        if local_metadata.get("version") in (None, 1):
            for new, old in _RENAMED.items():
                if prefix + old in state_dict:
                    state_dict[prefix + new] = state_dict.pop(prefix + old)
                elif prefix + new not in state_dict and strict:
                    missing_keys.append(prefix + new)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for fused ones of floating point that have a `qconfig`."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for "
                f"{cls._FLOAT_MODULE.__name__}"
            )
        check_configured(mod)
        conv, bn = mod[0], mod[1]
        norm = bn.eps, bn.momentum, False, mod.qconfig
        given: tuple[Any, ...] = (*settings(conv), *norm)
        return cls(*given)._adopt(conv, bn)

    def to_float(self) -> Any:
        """A convolution with the normalization in its parameters, and the ReLU."""
        cls = type(self)
        conv = plain(self, cls._FLOAT_CONV_MODULE)
        self._check_fusible()
        conv.weight, conv.bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, *self._statistics()
        )
        if cls._FLOAT_RELU_MODULE is None:
            return conv.train(self.training)
        fused = cls._FUSED_FLOAT_MODULE(conv, cls._FLOAT_RELU_MODULE())
        return fused.train(self.training)


class ConvBn1d(_ConvBnNd, nn.Conv1d):
    """A `Conv1d` and a `BatchNorm1d` (`bn`) with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvBn1d
    _FLOAT_CONV_MODULE: Any = nn.Conv1d
    _FLOAT_BN_MODULE: Any = nn.BatchNorm1d


class ConvBn2d(_ConvBnNd, nn.Conv2d):
    """A `Conv2d` and a `BatchNorm2d` (`bn`) with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvBn2d
    _FLOAT_CONV_MODULE: Any = nn.Conv2d
    _FLOAT_BN_MODULE: Any = nn.BatchNorm2d


class ConvBn3d(_ConvBnNd, nn.Conv3d):
    """A `Conv3d` and a `BatchNorm3d` (`bn`) with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvBn3d
    _FLOAT_CONV_MODULE: Any = nn.Conv3d
    _FLOAT_BN_MODULE: Any = nn.BatchNorm3d


class _AndReLU:
    """Stands before a convolution with normalization."""

    _FLOAT_RELU_MODULE: Any = nn.ReLU

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(self._forward(input))  # type: ignore[attr-defined]


class ConvBnReLU1d(_AndReLU, ConvBn1d):
    """A `Conv1d`, a `BatchNorm1d` (`bn`) and a ReLU with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvBnReLU1d
    _FUSED_FLOAT_MODULE: Any = nni.ConvReLU1d


class ConvBnReLU2d(_AndReLU, ConvBn2d):
    """A `Conv2d`, a `BatchNorm2d` (`bn`) and a ReLU with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvBnReLU2d
    _FUSED_FLOAT_MODULE: Any = nni.ConvReLU2d


class ConvBnReLU3d(_AndReLU, ConvBn3d):
    """A `Conv3d`, a `BatchNorm3d` (`bn`) and a ReLU with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvBnReLU3d
    _FUSED_FLOAT_MODULE: Any = nni.ConvReLU3d


class _ConvReLU(nn.Module):
    """Stands before a convolution with a rounded weight."""

    _FLOAT_BN_MODULE: Any = None
    _FLOAT_RELU_MODULE: Any = nn.ReLU

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        qconfig: Any = None,
    ) -> None:
        sizes = in_channels, out_channels, kernel_size, stride, padding, dilation
        super().__init__(*sizes, groups, bias, padding_mode, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(super().forward(input))


class ConvReLU1d(_ConvReLU, nnqat.Conv1d, nni._FusedModule):
    """A `Conv1d` and a ReLU with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvReLU1d


class ConvReLU2d(_ConvReLU, nnqat.Conv2d, nni._FusedModule):
    """A `Conv2d` and a ReLU with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvReLU2d


class ConvReLU3d(_ConvReLU, nnqat.Conv3d, nni._FusedModule):
    """A `Conv3d` and a ReLU with a rounded weight."""

    _FLOAT_MODULE: Any = nni.ConvReLU3d


_NORMALIZED = (
    *(ConvBn1d, ConvBn2d, ConvBn3d, ConvBnReLU1d, ConvBnReLU2d, ConvBnReLU3d),
)


def update_bn_stats(mod: Any) -> None:
    """Has the normalization of such a layer follow its batches (`Module.apply`)."""
    if type(mod) in _NORMALIZED:
        mod.update_bn_stats()


def freeze_bn_stats(mod: Any) -> None:
    """Keeps the statistics of such a layer as they are (`Module.apply`)."""
    if type(mod) in _NORMALIZED:
        mod.freeze_bn_stats()
