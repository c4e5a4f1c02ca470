"""A linear layer that trains for quantization with scales found as it runs."""

from __future__ import annotations

import importlib
from typing import Any

from torchshim.ao.nn.qat.modules import linear

__all__ = ["Linear"]


class Linear(linear.Linear):
    """As `torch.ao.nn.qat.Linear`; ValueError if the qconfig's observer remembers."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        settings = importlib.import_module("torchshim.ao.quantization.qconfig")
        if not settings._activation_is_memoryless(qconfig):
            raise ValueError(
                "Dynamic QAT requires a memoryless observer."
                "This means a MovingAverage observer with averaging constant equal to 1"
            )
