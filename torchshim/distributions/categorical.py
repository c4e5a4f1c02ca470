"""The categorical distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._odds import check_one_given
from torchshim.distributions._shared import enumerate_integers
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import (
    as_size,
    constant_like,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["Categorical"]


class Categorical(Distribution):
    """An index, with the probabilities of the last dimension of `probs`.

    `probs` are normalized; `logits` are log-probabilities up to a constant.
    ValueError unless one of them is given, with at least one dimension.
    https://docs.pytorch.org/docs/2.13/distributions.html#categorical

    >>> import torchshim as torch
    >>> Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    has_enumerate_support = True

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        check_one_given(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is None:
            own = given - given.logsumexp(dim=-1, keepdim=True)
        else:
            own = given / given.sum(-1, keepdim=True)
        self.__dict__[name] = self._param = own
        self._num_events = own.size()[-1]
        super().__init__(own.size()[:-1], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(Categorical, batch_shape, _instance)
        new._param = self._param.expand((*batch_shape, self._num_events))
        new._num_events = self._num_events
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()

    @property
    def mean(self) -> Tensor:
        return constant_like(self._extended_shape(), torchshim.nan, self.probs)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return constant_like(self._extended_shape(), torchshim.nan, self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        sample_shape = as_size(sample_shape)
        rows = self.probs.reshape((-1, self._num_events))
        drawn = torchshim.multinomial(rows, sample_shape.numel(), True)
        return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        index = self._checked(value).long().unsqueeze(-1)
        index, log_probs = torchshim.broadcast_tensors(index, self.logits)
        return log_probs.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # Of events without probability: 0 times the smallest number, not -inf.
        least = torchshim.finfo(self.logits.dtype).min
        return -(torchshim.clamp(self.logits, min=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count, dtype = self._num_events, torchshim.long
        return enumerate_integers(self, count, self._param, expand, dtype)
