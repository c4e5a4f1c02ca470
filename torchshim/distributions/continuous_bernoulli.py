"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._odds import BinaryOdds
from torchshim.distributions._validation import check_later, is_valid
from torchshim.distributions.exp_family import ExponentialFamily
from torchshim.distributions.utils import (
    broadcast_all,
    clamp_probs,
    is_number,
    lazy_property,
    logits_to_probs,
    standard_uniform,
)
from torchshim.nn.functional import binary_cross_entropy_with_logits

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryOdds, ExponentialFamily):
    """Numbers x in [0, 1] with a density proportional to p^x (1-p)^(1-x).

    The formulas are singular at p = 1/2; between `lims` their Taylor series is used.
    https://docs.pytorch.org/docs/2.13/distributions.html#continuousbernoulli
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._take_odds(probs, logits)
        if probs is not None:
            if validate_args is not None:
                self._check_probs()
            self.__dict__["probs"] = self._param = clamp_probs(self.probs)
        single = is_number(logits if probs is None else probs)
        shape = Size() if single else self._param.size()
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    def _check_probs(self) -> None:
        valid = is_valid(self.arg_constraints["probs"], self.probs)
        text = "The parameter probs has invalid values"
        if isinstance(valid, Tensor):
            check_later(valid, text)
        elif not valid:
            raise ValueError(text)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(ContinuousBernoulli, batch_shape, _instance)
        new._lims = self._lims
        return new

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter in (0, 1); unlike Bernoulli's it is not the mean."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _stable(self) -> Tensor:
        low, high = self._lims
        return (self.probs <= low) | (self.probs > high)

    def _cut(self) -> Tensor:
        """`probs`, with a harmless value where the Taylor series is used."""
        return torchshim.where(self._stable(), self.probs, self._lims[0])

    def _by_series(self, formula: Tensor, series: Tensor) -> Tensor:
        return torchshim.where(self._stable(), formula, series)

    def _cont_bern_log_norm(self) -> Tensor:
        p = self._cut()
        low = torchshim.where(p <= 0.5, p, 0.0)
        high = torchshim.where(p >= 0.5, p, 1.0)
        odds = torchshim.log1p(-p) - p.log()
        gap = torchshim.where(
            p <= 0.5, torchshim.log1p(-2.0 * low), (2.0 * high - 1.0).log()
        )
        x = (self.probs - 0.5).pow(2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return self._by_series(odds.abs().log() - gap, series)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        exact = p / (2.0 * p - 1.0) + 1.0 / (torchshim.log1p(-p) - p.log())
        x = self.probs - 0.5
        return self._by_series(exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Tensor:
        return torchshim.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        odds = torchshim.log1p(-p) - p.log()
        exact = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / odds.pow(2)
        x = (self.probs - 0.5).pow(2)
        series = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return self._by_series(exact, series)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        with torchshim.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return self.icdf(standard_uniform(shape, self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        cross = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -cross + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        value, p = self._checked(value), self._cut()
        powers = torchshim.pow(p, value) * torchshim.pow(1.0 - p, 1.0 - value)
        inner = self._by_series((powers + p - 1.0) / (2.0 * p - 1.0), value)
        inner = torchshim.where(value >= 1.0, torchshim.ones_like(value), inner)
        return torchshim.where(value <= 0.0, torchshim.zeros_like(value), inner)

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        rest = torchshim.log1p(-p)
        above = torchshim.log1p(-p + value * (2.0 * p - 1.0)) - rest
        return self._by_series(above / (p.log() - rest), value)

    def entropy(self) -> Tensor:
        rest, own = torchshim.log1p(-self.probs), self.probs.log()
        return self.mean * (rest - own) - self._cont_bern_log_norm() - rest

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        low, high = (limit - 0.5 for limit in self._lims)
        stable = (x <= low) | (x > high)
        cut = torchshim.where(stable, x, low)
        exact = torchshim.expm1(cut).abs().log() - cut.abs().log()
        series = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return torchshim.where(stable, exact, series)
