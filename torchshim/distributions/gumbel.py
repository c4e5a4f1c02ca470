"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.transformed_distribution import TransformedDistribution
from torchshim.distributions.transforms import AffineTransform, ExpTransform
from torchshim.distributions.uniform import Uniform
from torchshim.distributions.utils import broadcast_all, euler_constant, is_number

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The largest of many samples: minus the logarithm of an exponential number.

    https://docs.pytorch.org/docs/2.13/distributions.html#gumbel
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        finfo = torchshim.finfo(self.loc.dtype)
        ends: tuple[Any, Any] = finfo.tiny, 1 - finfo.eps
        if not is_number(loc, scale):
            low, high = ends
            ends = (
                torchshim.full_like(self.loc, low),
                torchshim.full_like(self.loc, high),
            )
        base = Uniform(*ends, validate_args=validate_args)
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-torchshim.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=loc, scale=-self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self.loc - self._checked(value)) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
