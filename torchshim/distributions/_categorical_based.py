"""Distributions over vectors whose parameters are those of a `Categorical`."""

from __future__ import annotations

from typing import Any

from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.distribution import Distribution


class OnCategorical(Distribution):
    """A distribution that keeps a `Categorical`; its categories are the event."""

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "logits": constraints.real_vector,
    }
    _categorical: Categorical

    def _start(self, validate_args: bool | None) -> None:
        own = self._categorical
        Distribution.__init__(
            self, own.batch_shape, own.param_shape[-1:], validate_args=validate_args
        )

    def _expand_categorical(self, cls: type, batch_shape: Any, instance: Any) -> Any:
        new = self._get_checked_instance(cls, instance)
        new._categorical = self._categorical.expand(Size(batch_shape))
        return self._finish_expansion(new, batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter that was given."""
        return self._categorical.param_shape
