"""Linear layers that say how their weights would be quantized."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule
from torchshim.nn import functional as F

__all__ = ["Linear"]


class Linear(nn.Linear, ReferenceQuantizedModule):
    """A linear layer of numbers with a weight that is rounded in each call."""

    _IS_REFERENCE = True

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias_: bool = True,
        device: Any = None,
        dtype: Any = None,
        weight_qparams: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias_, device, dtype)
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedLinear(Reference)"

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.get_weight(), self.bias)

    @classmethod
    def from_float(cls, float_linear: Any, weight_qparams: Any) -> Any:
        """The layer with the parameters of one of floating point."""
        weight, bias = float_linear.weight, float_linear.bias
        sizes = float_linear.in_features, float_linear.out_features
        made = Linear(
            *sizes,
            bias is not None,
            device=weight.device,
            dtype=weight.dtype,
            weight_qparams=weight_qparams,
        )
        made.weight = nn.Parameter(weight.detach())
        if bias is not None:
            made.bias = nn.Parameter(bias.detach())
        return made
