"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._odds import BinaryOdds
from torchshim.distributions.distribution import Distribution as Distribution
from torchshim.distributions.gamma import Gamma
from torchshim.distributions.utils import broadcast_all as broadcast_all
from torchshim.distributions.utils import lazy_property
from torchshim.distributions.utils import logits_to_probs as logits_to_probs
from torchshim.distributions.utils import probs_to_logits as probs_to_logits
from torchshim.nn.functional import logsigmoid

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryOdds):
    """How many trials succeed, each with `probs`, before `total_count` have failed.

    https://docs.pytorch.org/docs/2.13/distributions.html#negativebinomial
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take_odds(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(NegativeBinomial, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.total_count * torchshim.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / torchshim.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        # The distribution is Poisson's with a rate that has this one. No validation:
        # a count of 0 is allowed here.
        rate = torchshim.exp(-self.logits)
        return Gamma(self.total_count, rate, validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        with torchshim.no_grad():
            return torchshim.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value, n, logits = self._checked(value), self.total_count, self.logits
        powers = n * logsigmoid(-logits) + value * logsigmoid(logits)
        ways = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return powers - ways.masked_fill(n + value == 0.0, 0.0)
