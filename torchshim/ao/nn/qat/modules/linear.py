"""Linear layers whose weight is rounded while they are trained."""

from __future__ import annotations

from typing import Any

from torchshim import nn
from torchshim._tensor import Tensor
from torchshim.ao.nn.intrinsic import LinearReLU
from torchshim.ao.nn.qat.modules.utils import check_configured, required
from torchshim.nn import functional as F
from torchshim.nn.utils.parametrize import (
    is_parametrized,
    transfer_parametrizations_and_params,
    type_before_parametrizations,
)

__all__ = ["Linear"]


class Linear(nn.Linear):
    """A linear layer with a weight that goes through `weight_fake_quant`.

    The weight's fake quantization is made by `qconfig.weight`.
    """

    _FLOAT_MODULE: Any = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__(in_features, out_features, bias, **made)
        self.qconfig = required(qconfig)
        self.weight_fake_quant = qconfig.weight(factory_kwargs=made)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer for one of floating point with a `qconfig`; shares parameters."""
        found = type_before_parametrizations(mod)
        if found != cls._FLOAT_MODULE:
            raise AssertionError(
                f"qat.{cls.__name__}.from_float only works for "
                f"{cls._FLOAT_MODULE.__name__}, got {found.__name__}"
            )
        check_configured(mod)
        if found == LinearReLU:
            mod = mod[0]
        sizes = mod.in_features, mod.out_features
        made = cls(*sizes, bias=mod.bias is not None, qconfig=mod.qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                transfer_parametrizations_and_params(mod, made, name)
            else:
                setattr(made, name, getattr(mod, name))
        return made

    def to_float(self) -> Any:
        """A layer of floating point with these parameters."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        return made.train(self.training)
