"""The absolute values of distributions that are symmetric about 0."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.transformed_distribution import TransformedDistribution
from torchshim.distributions.transforms import AbsTransform


class HalfDistribution(TransformedDistribution):
    """A distribution folded at 0: twice the density on the positive side."""

    arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Any

    def __init__(self, base: Distribution, validate_args: bool | None) -> None:
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the symmetric distribution."""
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return torchshim.zeros_like(self.scale)

    def log_prob(self, value: Any) -> Tensor:
        log_prob = self.base_dist.log_prob(self._checked(value)) + math.log(2)
        return torchshim.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        return 2 * self.base_dist.cdf(self._checked(value)) - 1

    def icdf(self, prob: Tensor) -> Tensor:
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
