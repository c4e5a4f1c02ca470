"""Where a model goes to integers and back (`torch.ao.quantization.stubs`)."""

from __future__ import annotations

from typing import Any

from torchshim import nn

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]


class QuantStub(nn.Module):
    """Where elements become integers: an observer's place, until `convert`.

    `qconfig`: the setting (default: that of the module it is in).

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.QuantStub.html
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class DeQuantStub(nn.Module):
    """Where integers become elements again, from `convert` on.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.DeQuantStub.html
    """

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        return x


class QuantWrapper(nn.Module):
    """A module between a `QuantStub` and a `DeQuantStub`.

    https://docs.pytorch.org/docs/2.13/generated/torch.ao.quantization.QuantWrapper.html
    """

    quant: QuantStub
    dequant: DeQuantStub
    module: nn.Module

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        return self.dequant(self.module(self.quant(X)))
