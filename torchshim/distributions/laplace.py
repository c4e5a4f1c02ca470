"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import broadcast_all, is_number

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The difference of two exponential numbers, moved and scaled.

    https://docs.pytorch.org/docs/2.13/distributions.html#laplace
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        shape = Size() if is_number(loc, scale) else self.loc.size()
        super().__init__(shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Laplace, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        eps = torchshim.finfo(self.loc.dtype).eps
        u = self.loc.new(shape).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * torchshim.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        distance = torchshim.abs(self._checked(value) - self.loc)
        return -torchshim.log(2 * self.scale) - distance / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        away = self._checked(value) - self.loc
        return 0.5 - 0.5 * away.sign() * torchshim.expm1(-away.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        middle = value - 0.5
        side = middle.sign() * torchshim.log1p(-2 * middle.abs())
        return self.loc - self.scale * side

    def entropy(self) -> Tensor:
        return 1 + torchshim.log(2 * self.scale)
