"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.exponential import Exponential
from torchshim.distributions.transformed_distribution import TransformedDistribution
from torchshim.distributions.transforms import AffineTransform, PowerTransform
from torchshim.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """A power of an exponential number: times until something fails.

    https://docs.pytorch.org/docs/2.13/distributions.html#weibull
    """

    arg_constraints = {  # noqa: RUF012
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive

    def __init__(
        self, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(torchshim.ones_like(self.scale), validate_args=validate_args)
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self) -> list[Any]:
        self.concentration_reciprocal = self.concentration.reciprocal()
        return [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        new.scale = self.scale.expand(batch_shape)
        new.concentration = self.concentration.expand(batch_shape)
        base = self.base_dist.expand(batch_shape)
        TransformedDistribution.__init__(new, base, new._steps(), validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _moment(self, n: int) -> Tensor:
        return (1 + n * self.concentration_reciprocal).lgamma()

    @property
    def mean(self) -> Tensor:
        return self.scale * torchshim.exp(self._moment(1))

    @property
    def mode(self) -> Tensor:
        power = (self.concentration - 1) / self.concentration
        return self.scale * power ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        second, first = self._moment(2), self._moment(1)
        return self.scale.pow(2) * (second.exp() - torchshim.exp(2 * first))

    def entropy(self) -> Tensor:
        reciprocal = self.concentration_reciprocal
        return (
            euler_constant * (1 - reciprocal)
            + torchshim.log(self.scale * reciprocal)
            + 1
        )
