"""The categorical distribution of one-hot vectors."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._categorical_based import OnCategorical
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.distribution import Distribution as Distribution
from torchshim.nn.functional import one_hot

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OnCategorical):
    """A vector with a 1 at an index that `Categorical` draws.

    https://docs.pytorch.org/docs/2.13/distributions.html#onehotcategorical

    >>> import torchshim as torch
    >>> OneHotCategorical(torch.tensor([1.0, 3.0])).mode
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self._start(validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_categorical(OneHotCategorical, batch_shape, _instance)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        probs = self.probs
        return one_hot(probs.argmax(dim=-1), num_classes=probs.shape[-1]).to(probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        indices = self._categorical.sample(Size(sample_shape))
        return one_hot(indices, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._categorical.log_prob(self._checked(value).max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        (n,), like = self.event_shape, self._param
        values = torchshim.eye(n, dtype=like.dtype, device=like.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of their probabilities.

    https://docs.pytorch.org/docs/2.13/distributions.html#torch.distributions.one_hot_categorical.OneHotCategoricalStraightThrough
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
