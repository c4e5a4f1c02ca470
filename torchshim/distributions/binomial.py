"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._odds import BinaryOdds
from torchshim.distributions._shared import enumerate_integers
from torchshim.distributions.distribution import Distribution as Distribution
from torchshim.distributions.utils import broadcast_all as broadcast_all
from torchshim.distributions.utils import lazy_property as lazy_property
from torchshim.distributions.utils import logits_to_probs as logits_to_probs
from torchshim.distributions.utils import probs_to_logits as probs_to_logits

__all__ = ["Binomial"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    # The gradient at 0 is a half, where that of clamp would be 1.
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(BinaryOdds):
    """How many of `total_count` trials succeed, each with probability `probs`.

    https://docs.pytorch.org/docs/2.13/distributions.html#binomial

    >>> import torchshim as torch
    >>> Binomial(10, torch.tensor([0.0, 0.5])).mean
    tensor([0., 5.])
    """

    arg_constraints = {  # noqa: RUF012
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take_odds(probs, logits, total_count)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Binomial, batch_shape, _instance)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with torchshim.no_grad():
            return torchshim.binomial(
                self.total_count.expand(shape), self.probs.expand(shape)
            )

    def log_prob(self, value: Tensor) -> Tensor:
        value, n, logits = self._checked(value), self.total_count, self.logits
        # n log(1 + exp(logits)), without overflow. The order of the terms is PyTorch's:
        # they are large and cancel.
        rest = torchshim.log1p(torchshim.exp(-torchshim.abs(logits)))
        norm = n * _clamp_by_zero(logits) + n * rest - (n + 1).lgamma()
        ways = value * logits - (value + 1).lgamma() - (n - value + 1).lgamma()
        return ways - norm

    def _common_count(self, function: str) -> int:
        most = int(self.total_count.max())
        if not self.total_count.min() == most:
            raise NotImplementedError(
                f"Inhomogeneous total count not supported by `{function}`."
            )
        return most

    def entropy(self) -> Tensor:
        self._common_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torchshim.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._common_count("enumerate_support")
        return enumerate_integers(self, 1 + count, self._param, expand)
