"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._odds import BinaryOdds
from torchshim.distributions._shared import enumerate_integers, replaced
from torchshim.distributions.exp_family import ExponentialFamily
from torchshim.distributions.utils import broadcast_all, is_number
from torchshim.distributions.utils import lazy_property as lazy_property
from torchshim.distributions.utils import logits_to_probs as logits_to_probs
from torchshim.distributions.utils import probs_to_logits as probs_to_logits
from torchshim.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Bernoulli"]


class Bernoulli(BinaryOdds, ExponentialFamily):
    """1 with probability `probs` (log-odds `logits`), 0 otherwise.

    https://docs.pytorch.org/docs/2.13/distributions.html#bernoulli

    >>> import torchshim as torch
    >>> Bernoulli(torch.tensor(0.25)).variance
    tensor(0.1875)
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(probs, logits)
        single = is_number(logits if probs is None else probs)
        shape = Size() if single else self._param.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Bernoulli, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        likely = (self.probs >= 0.5).to(self.probs)
        return replaced(likely, self.probs == 0.5, torchshim.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        with torchshim.no_grad():
            return torchshim.bernoulli(
                self.probs.expand(self._extended_shape(sample_shape))
            )

    def log_prob(self, value: Tensor) -> Tensor:
        value = self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return enumerate_integers(self, 2, self._param, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (torchshim.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return torchshim.log1p(torchshim.exp(x))
