"""A linear layer and a ReLU that are trained with a rounded weight."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim._tensor import Tensor
from torchshim.ao.nn import intrinsic as nni
from torchshim.ao.nn import qat as nnqat
from torchshim.ao.nn.intrinsic.modules.fused import _FusedModule
from torchshim.nn import functional as F

__all__ = ["LinearReLU"]


class LinearReLU(nnqat.Linear, _FusedModule):
    """As `torch.ao.nn.qat.Linear`, and a ReLU."""

    _FLOAT_MODULE: Any = nni.LinearReLU

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(super().forward(input))

    def to_float(self) -> Any:
        """The fused layers of floating point with these parameters."""
        sizes = self.in_features, self.out_features, self.bias is not None
        linear = nn.Linear(*sizes)
        linear.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            linear.bias = nn.Parameter(self.bias.detach())
        return nni.LinearReLU(linear, nn.ReLU())
