"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import broadcast_all, is_number, standard_uniform

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The tail of a distribution above `loc`; exponential for concentration 0.

    https://docs.pytorch.org/docs/2.13/distributions.html#generalizedpareto
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        scale: Any,
        concentration: Any,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(
            loc, scale, concentration
        )
        single = is_number(loc, scale, concentration)
        shape = Size() if single else self.loc.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(GeneralizedPareto, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        upper = torchshim.where(self.concentration < 0, end, math.inf)
        return constraints.interval(self.loc, upper)

    def _cases(self) -> tuple[Tensor, Tensor]:
        """Where the concentration counts as 0, and a concentration to divide by."""
        zero = torchshim.isclose(
            self.concentration, torchshim.zeros_like(self.concentration)
        )
        return zero, torchshim.where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(standard_uniform(shape, self.loc))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._z(self._checked(value))
        zero, c = self._cases()
        power = 1 / c + torchshim.ones_like(z)
        curved = torchshim.where(power == 0, power, power * torchshim.log1p(c * z))
        return -self.scale.log() - torchshim.where(zero, z, curved)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of samples above `value`."""
        z = self._z(self._checked(value))
        zero, c = self._cases()
        return torchshim.where(zero, -z, -torchshim.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return torchshim.log1p(-torchshim.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return torchshim.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._cases()
        log_rest = torchshim.log1p(-value)
        curved = self.loc + self.scale / c * torchshim.expm1(-c * log_rest)
        return torchshim.where(zero, self.loc - self.scale * log_rest, curved)

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        c = torchshim.where(valid, self.concentration, 0.5)
        return torchshim.where(valid, self.loc + self.scale / (1 - c), math.nan)

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        c = torchshim.where(valid, self.concentration, 0.25)
        spread = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return torchshim.where(valid, spread, math.nan)

    def entropy(self) -> Tensor:
        entropy = self.scale.log() + self.concentration + 1
        return torchshim.broadcast_to(entropy, self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc
