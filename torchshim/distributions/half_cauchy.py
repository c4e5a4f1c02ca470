"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributions._half import HalfDistribution
from torchshim.distributions.cauchy import Cauchy
from torchshim.distributions.utils import constant_like

__all__ = ["HalfCauchy"]


class HalfCauchy(HalfDistribution):
    """The absolute value of a Cauchy number.

    https://docs.pytorch.org/docs/2.13/distributions.html#halfcauchy
    """

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(HalfCauchy, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Tensor:
        return constant_like(self._extended_shape(), math.inf, self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        scale = self.scale
        value = torchshim.as_tensor(value, dtype=scale.dtype, device=scale.device)
        return super().log_prob(value)
