"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._shared import replaced
from torchshim.distributions.chi2 import Chi2
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import _standard_normal as _standard_normal
from torchshim.distributions.utils import broadcast_all, standard_normal

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Normal numbers, each divided by a deviation estimated from `df` others.

    https://docs.pytorch.org/docs/2.13/distributions.html#studentt
    """

    arg_constraints = {  # noqa: RUF012
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Any,
        loc: Any = 0.0,
        scale: Any = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.size(), validate_args=validate_args)
        # After its own check, which tells at once of what this one would tell later.
        self._chi2 = Chi2(self.df)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(StudentT, batch_shape, _instance)
        new._chi2 = self._chi2.expand(batch_shape)
        return new

    @property
    def mean(self) -> Tensor:
        return replaced(self.loc, self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        df = torchshim.where(finite, self.df, 3.0)
        spread = torchshim.where(finite, self.scale.pow(2) * df / (df - 2), math.inf)
        return replaced(spread, self.df <= 1, math.nan)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        # The normal numbers are drawn first, then the chi-squared ones.
        drawn = standard_normal(self._extended_shape(sample_shape), self.df)
        deviation = self._chi2.rsample(sample_shape) / self.df
        return self.loc + self.scale * (drawn * torchshim.rsqrt(deviation))

    def _log_norm(self) -> Tensor:
        half = 0.5 * self.df
        return half.lgamma() - (0.5 * (self.df + 1.0)).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        y = (self._checked(value) - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
        tail = -0.5 * (self.df + 1.0) * torchshim.log1p(y**2.0 / self.df)
        return tail - (norm + self._log_norm())

    def entropy(self) -> Tensor:
        upper, half = 0.5 * (self.df + 1), 0.5 * self.df
        slope = upper * (upper.digamma() - half.digamma())
        log_beta = self._log_norm() + math.lgamma(0.5)
        return self.scale.log() + slope + 0.5 * self.df.log() + log_beta
