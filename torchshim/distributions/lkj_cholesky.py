"""Lewandowski's, Kurowicka's and Joe's distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.beta import Beta
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices; uniform for concentration 1.

    ValueError for fewer than 2 dimensions.
    https://docs.pytorch.org/docs/2.13/distributions.html#lkjcholesky
    """

    arg_constraints = {"concentration": constraints.positive}  # noqa: RUF012
    support = constraints.corr_cholesky

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                "Expected dim to be an integer greater than or equal to 2. Found "
                f"dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        own = self.concentration
        # Before the check of the beta numbers, which would tell of it once more, later.
        super().__init__(own.size(), Size((dim, dim)), validate_args)
        # The onion method: how far each row reaches out is a beta number.
        order = torchshim.arange(dim - 1, dtype=own.dtype, device=own.device)
        order = torchshim.cat([order.new_zeros((1,)), order])
        rest = (own + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * order
        self._beta = Beta(order + 0.5, rest)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(LKJCholesky, batch_shape, _instance)
        new.dim = self.dim
        new._beta = self._beta.expand((*Size(batch_shape), self.dim))
        return new

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        reach = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        drawn = torchshim.randn(shape, dtype=reach.dtype, device=reach.device).tril(-1)
        directions = drawn / drawn.norm(dim=-1, keepdim=True)
        directions[..., 0, :] = 0.0  # the first row is all diagonal
        below = torchshim.sqrt(reach) * directions
        left = 1 - (below**2).sum(dim=-1)
        tiny = torchshim.finfo(below.dtype).tiny
        return below + torchshim.diag_embed(left.clamp(min=tiny).sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        diagonal = self._checked(value).diagonal(dim1=-1, dim2=-2)[..., 1:]
        own, rows = self.concentration, self.dim - 1
        order = torchshim.arange(2, self.dim + 1, device=own.device)
        powers = 2 * (own - 1).unsqueeze(-1) + self.dim - order
        density = (powers * diagonal.log()).sum(dim=-1)
        alpha = own + 0.5 * rows
        norm = torchshim.mvlgamma(alpha - 0.5, rows) - alpha.lgamma() * rows
        return density - (0.5 * rows * math.log(math.pi) + norm)
