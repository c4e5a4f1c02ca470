"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.exp_family import ExponentialFamily
from torchshim.distributions.utils import broadcast_all, is_number

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return torchshim._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """Positive numbers with a shape (`concentration`) and an inverse scale (`rate`).

    https://docs.pytorch.org/docs/2.13/distributions.html#gamma

    >>> import torchshim as torch
    >>> Gamma(torch.tensor(3.0), torch.tensor(2.0)).mean
    tensor(1.5000)
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        single = is_number(concentration, rate)
        shape = Size() if single else self.concentration.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gamma, _instance)
        new.concentration = self.concentration.expand(batch_shape)
        new.rate = self.rate.expand(batch_shape)
        return self._finish_expansion(new, batch_shape)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        drawn = torchshim._standard_gamma(self.concentration.expand(shape))
        value = drawn / self.rate.expand(shape)
        # Kept off zero, but not in the gradient.
        value.detach().clamp_(min=torchshim.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Any) -> Tensor:
        a, rate = self.concentration, self.rate
        value = torchshim.as_tensor(value, dtype=rate.dtype, device=rate.device)
        value = self._checked(value)
        powers = torchshim.xlogy(a, rate) + torchshim.xlogy(a - 1, value)
        return powers - rate * value - a.lgamma()

    def cdf(self, value: Tensor) -> Tensor:
        return torchshim.igamma(self.concentration, self.rate * self._checked(value))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() + (x + 1) * torchshim.log(-y.reciprocal())
