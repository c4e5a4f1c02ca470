"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._categorical_based import OnCategorical
from torchshim.distributions.binomial import Binomial
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.distribution import Distribution as Distribution
from torchshim.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OnCategorical):
    """How often each category comes up in `total_count` draws.

    NotImplementedError for a `total_count` that is no int.
    https://docs.pytorch.org/docs/2.13/distributions.html#multinomial
    """

    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        self._start(validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_categorical(Multinomial, batch_shape, _instance)
        new.total_count = self.total_count
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        drawn = drawn.movedim(0, -1)
        counts = drawn.new_zeros(self._extended_shape(sample_shape))
        counts.scatter_add_(-1, drawn, torchshim.ones_like(drawn))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = torchshim.tensor(self.total_count)
        draws = n * self._categorical.entropy() - torchshim.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        probs = torchshim.exp(self._binomial.log_prob(counts))
        return draws + (probs * torchshim.lgamma(counts + 1)).sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        # What cannot come up, and did not: 0 * -inf counts as 0.
        impossible = (value == 0) & (logits == -torchshim.inf)
        powers = (logits.masked_fill(impossible, 0) * value).sum(-1)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + powers
