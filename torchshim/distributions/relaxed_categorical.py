"""The one-hot categorical distribution made continuous."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._categorical_based import OnCategorical
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.distribution import Distribution as Distribution
from torchshim.distributions.transformed_distribution import TransformedDistribution
from torchshim.distributions.transforms import ExpTransform
from torchshim.distributions.utils import broadcast_all, clamp_probs, standard_uniform

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OnCategorical):
    """The logarithms of what `RelaxedOneHotCategorical` gives.

    https://docs.pytorch.org/docs/2.13/distributions.html#relaxedonehotcategorical
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        self._start(validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_categorical(ExpRelaxedCategorical, batch_shape, _instance)
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(standard_uniform(shape, self.logits))
        gumbels = -(-u.log()).log()
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        count, t = self._categorical._num_events, self.temperature
        value = self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        factor = torchshim.full_like(t, float(count)).lgamma() + (count - 1) * t.log()
        score = logits - value.mul(t)
        score = score - score.logsumexp(dim=-1, keepdim=True)
        return score.sum(-1) + factor


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that approach its corners as the temperature falls.

    https://docs.pytorch.org/docs/2.13/distributions.html#relaxedonehotcategorical
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    support = constraints.simplex
    has_rsample = True
    base_dist: Any

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(
            temperature, probs, logits, validate_args=validate_args
        )
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self) -> Tensor:
        """How soft the choice is."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
