"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._functions.random_rejection import reparametrized_dirichlet
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.exp_family import ExponentialFamily
from torchshim.nn.functional import one_hot

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Any, concentration: Any, grad_output: Any) -> Any:
    """The gradient of a sample by its concentration."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = torchshim._dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """Positive numbers that sum to 1.

    ValueError for a concentration without dimensions.
    https://docs.pytorch.org/docs/2.13/distributions.html#dirichlet

    >>> import torchshim as torch
    >>> Dirichlet(torch.tensor([1.0, 3.0])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {  # noqa: RUF012
        "concentration": constraints.independent(constraints.positive, 1)
    }
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, concentration: Tensor, validate_args: bool | None = None
    ) -> None:
        if concentration.dim() < 1:
            raise ValueError(
                "`concentration` parameter must be at least one-dimensional."
            )
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Dirichlet, batch_shape, _instance)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        return reparametrized_dirichlet(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        value, a = self._checked(value), self.concentration
        powers = torchshim.xlogy(a - 1.0, value).sum(-1)
        return powers + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        # All below 1: the density grows towards the corners.
        corner = one_hot(mode.argmax(dim=-1), mode.shape[-1]).to(mode)
        flat = (self.concentration < 1).all(dim=-1, keepdim=True).expand(mode.shape)
        return torchshim.where(flat, corner, mode)

    @property
    def variance(self) -> Tensor:
        a = self.concentration
        total = a.sum(-1, True)
        return a * (total - a) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        a = self.concentration
        total, k = a.sum(-1), a.size(-1)
        log_beta = a.lgamma().sum(-1) - total.lgamma()
        spread = ((a - 1.0) * a.digamma()).sum(-1)
        return log_beta - (k - total) * total.digamma() - spread

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
