"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import broadcast_all, constant_like, is_number

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The quotient of two centred normal numbers, moved and scaled.

    https://docs.pytorch.org/docs/2.13/distributions.html#cauchy
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        shape = Size() if is_number(loc, scale) else self.loc.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Cauchy, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return constant_like(self._extended_shape(), math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return constant_like(self._extended_shape(), math.inf, self.loc)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        drawn = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        z = (self._checked(value) - self.loc) / self.scale
        return torchshim.atan(z) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return torchshim.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
