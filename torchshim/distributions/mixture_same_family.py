"""Mixtures of distributions of one kind."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A component, chosen by a `Categorical`, out of the last batch dimension.

    ValueError for distributions that do not go together.
    https://docs.pytorch.org/docs/2.13/distributions.html#mixturesamefamily

    >>> import torchshim as torch
    >>> from torchshim.distributions import Normal
    >>> parts = Normal(torch.tensor([0.0, 4.0]), torch.ones(2))
    >>> MixtureSameFamily(Categorical(torch.ones(2)), parts).mean
    tensor(2.)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        mixed = mixture_distribution.batch_shape
        count = component_distribution.batch_shape[-1]
        own = component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixed), reversed(own), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible "
                    f"with `component_distribution.batch_shape`({own})"
                )
        components = mixture_distribution.logits.shape[-1]
        if components != count:
            raise ValueError(
                f"`mixture_distribution component` ({components}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({count})"
            )
        self._num_component = components
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(own, event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            (*batch_shape, self._num_component)
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        return self._finish_expansion(new, batch_shape)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(
            self._component_distribution.support
        )

    @property
    def mixture_distribution(self) -> Categorical:
        """Which component is chosen."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _mixed(self, values: Tensor) -> Tensor:
        """The average of what the components have."""
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._mixed(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        away = self.component_distribution.mean - self._pad(self.mean)
        within = self._mixed(self.component_distribution.variance)
        return within + self._mixed(away.pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        parts = self.component_distribution.cdf(self._pad(x))
        return (parts * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        x = self._pad(self._checked(x))
        parts = self.component_distribution.log_prob(x)
        chosen = torchshim.log_softmax(self.mixture_distribution.logits, dim=-1)
        return torchshim.logsumexp(parts + chosen, dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        with torchshim.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            parts = self.component_distribution.sample(sample_shape)
            event = self.event_shape
            index = chosen.reshape(chosen.shape + (1,) * (len(event) + 1))
            index = index.repeat((1,) * (chosen.dim() + 1) + event)
            return parts.gather(dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        own = len(self.mixture_distribution.batch_shape)
        more = 0 if own == 1 else len(self.batch_shape) - own
        event = (1,) * self._event_ndims
        return x.reshape(x.shape[:-1] + (1,) * more + x.shape[-1:] + event)

    def __repr__(self) -> str:
        return (
            f"MixtureSameFamily(\n  {self.mixture_distribution},\n  "
            f"{self.component_distribution})"
        )
