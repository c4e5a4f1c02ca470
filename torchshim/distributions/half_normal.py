"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from torchshim._tensor import Tensor
from torchshim.distributions._half import HalfDistribution
from torchshim.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(HalfDistribution):
    """The absolute value of a normal number with mean 0.

    https://docs.pytorch.org/docs/2.13/distributions.html#halfnormal
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfNormal, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
