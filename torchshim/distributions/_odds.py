"""Distributions with the parameter `probs` or `logits`, each derived from the other."""

from __future__ import annotations

from typing import Any

from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


def check_one_given(probs: Any, logits: Any) -> None:
    """Raises ValueError unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class BinaryOdds(Distribution):
    """A distribution of which each element has a probability, or its log-odds."""

    _param: Tensor

    def _take_odds(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Keeps the one that is given; returns the others, broadcast with it."""
        check_one_given(probs, logits)
        name = "logits" if probs is None else "probs"
        *rest, own = broadcast_all(*others, logits if probs is None else probs)
        self.__dict__[name] = self._param = own
        return tuple(r.type_as(own) for r in rest)

    def _expand_parameters(self, cls: type, batch_shape: Any, instance: Any) -> Any:
        new = super()._expand_parameters(cls, batch_shape, instance)
        new._param = self._param.expand(batch_shape)
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Tensor:
        """The log-odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._param.size()
