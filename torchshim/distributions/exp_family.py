"""Exponential families: their entropy follows from their log-normalizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchshim._tensor import Tensor
from torchshim.autograd import grad
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A density exp(<t(x), theta> - F(theta) + k(x)).

    Subclasses give the natural parameters theta, the log-normalizer F and the mean of
    the carrier measure k. The entropy is F minus <theta, grad F>, by autograd.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    if TYPE_CHECKING:
        _mean_carrier_measure: Any
    else:

        @property
        def _mean_carrier_measure(self) -> float:
            raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> minus the mean of the carrier measure."""
        value, natural, slopes = normalizer_with_slopes(self)
        entropy = value - self._mean_carrier_measure
        for parameter, slope in zip(natural, slopes, strict=True):
            extra = parameter.dim() - len(self._batch_shape)
            entropy = entropy - sum_rightmost(parameter * slope, extra)
        return entropy


def normalizer_with_slopes(
    family: ExponentialFamily,
) -> tuple[Tensor, list[Tensor], tuple[Tensor, ...]]:
    """The log-normalizer, the natural parameters as leaves, and its gradient there."""
    natural = [p.detach().requires_grad_() for p in family._natural_params]
    value = family._log_normalizer(*natural)
    return value, natural, grad(value.sum(), natural, create_graph=True)
