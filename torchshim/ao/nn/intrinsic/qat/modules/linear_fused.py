"""A linear layer and a batch normalization that are trained as one."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim import nn
from torchshim._tensor import Tensor
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn.intrinsic.qat.modules.batch_stats import FoldedNorm
from torchshim.ao.nn.qat.modules.utils import check_configured, required
from torchshim.nn import functional as F
from torchshim.nn.parameter import Parameter
from torchshim.nn.utils.fusion import fuse_linear_bn_weights

__all__ = ["LinearBn1d"]


class LinearBn1d(FoldedNorm, nn.Linear, nni._FusedModule):
    """A linear layer and a `BatchNorm1d` (`bn`) with a rounded weight.

    What is rounded is the weight with the normalization's running scale in it.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        eps: float = 1e-5,
        momentum: float = 0.1,
        freeze_bn: bool = False,
        qconfig: Any = None,
    ) -> None:
        nn.Linear.__init__(self, in_features, out_features, bias)
        self.qconfig = required(qconfig)
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = nn.BatchNorm1d(out_features, eps, momentum, True, True)
        self.weight_fake_quant = qconfig.weight()
        if bias:
            self.bias = Parameter(torchshim.empty(out_features))
        self._start(freeze_bn)

    def forward(self, input: Tensor) -> Tensor:
        self._check_running()
        factor = self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()
        weight = self.weight_fake_quant(self.weight * factor.reshape(-1, 1))
        zeros = torchshim.zeros(self.out_features, device=weight.device)
        made = F.linear(input, weight, zeros) / factor.reshape(1, -1)
        if self.bias is not None:
            made = made + self.bias.reshape(1, -1)
        return self.bn(made)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for a `LinearBn1d` of floating point that has a `qconfig`."""
        if type(mod) is not nni.LinearBn1d:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for LinearBn1d"
            )
        check_configured(mod, "Input float module must have a valid config")
        linear, bn = mod[0], mod[1]
        sizes = linear.in_features, linear.out_features, linear.bias is not None
        return cls(*sizes, bn.eps, bn.momentum, False, mod.qconfig)._adopt(linear, bn)

    def to_float(self) -> Any:
        """A linear layer with the normalization in its parameters."""
        made = nn.Linear(self.in_features, self.out_features)
        self._check_fusible()
        made.weight, made.bias = fuse_linear_bn_weights(
            self.weight, self.bias, *self._statistics()
        )
        return made
