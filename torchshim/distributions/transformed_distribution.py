"""Distributions of what transforms make of samples."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.independent import Independent
from torchshim.distributions.transforms import ComposeTransform, Transform
from torchshim.distributions.utils import _sum_rightmost as _sum_rightmost
from torchshim.distributions.utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Samples of `base_distribution`, each put through the transforms in turn.

    ValueError for what is no transform or does not fit the base's shape.
    https://docs.pytorch.org/docs/2.13/distributions.html#transformeddistribution

    >>> import torchshim as torch
    >>> from torchshim.distributions import AffineTransform, Normal
    >>> moved = TransformedDistribution(Normal(0.0, 1.0), AffineTransform(3.0, 2.0))
    >>> moved.log_prob(torch.tensor(3.0))
    tensor(-1.6121)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012
    base_dist: Any

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError(
                    "transforms must be a Transform or a list of Transforms"
                )
            self.transforms = transforms
        else:
            raise ValueError(
                f"transforms must be a Transform or list, but was {transforms}"
            )
        whole = ComposeTransform(self.transforms)
        domain, codomain = whole.domain.event_dim, whole.codomain.event_dim
        shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(shape) < domain:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{domain}, but got {shape}."
            )
        base_event = len(base_distribution.event_shape)
        after = Size(whole.forward_shape(shape))
        before = Size(whole.inverse_shape(after))
        if before != shape:
            batch = before[: len(before) - base_event]
            base_distribution = base_distribution.expand(batch)
        if domain > base_event:
            base_distribution = Independent(base_distribution, domain - base_event)
        self.base_dist = base_distribution
        event_dim = max(codomain, base_event + codomain - domain)
        if len(after) < event_dim:
            raise AssertionError(
                f"forward_shape length {len(after)} must be >= event_dim {event_dim}"
            )
        cut = len(after) - event_dim
        super().__init__(after[:cut], after[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        for step in reversed(self.transforms):
            shape = step.inverse_shape(shape)
        cut = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(shape[:cut])
        new.transforms = self.transforms
        return self._finish_expansion(new, batch_shape)

    if TYPE_CHECKING:
        # Subclasses have these as attributes.
        support: Any
        has_rsample: Any
    else:

        @constraints.dependent_property(is_discrete=False)
        def support(self) -> Any:
            if not self.transforms:
                return self.base_dist.support
            support = self.transforms[-1].codomain
            more = len(self.event_shape) - support.event_dim
            return constraints.independent(support, more) if more > 0 else support

        @property
        def has_rsample(self) -> bool:
            return self.base_dist.has_rsample

    def _forward(self, x: Tensor) -> Tensor:
        for step in self.transforms:
            x = step(x)
        return x

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        with torchshim.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The base's density where the value came from, over the change of volume."""
        y, event_dim = self._checked(value), len(self.event_shape)
        log_prob: Any = 0.0
        for step in reversed(self.transforms):
            x = step.inv(y)
            event_dim += step.domain.event_dim - step.codomain.event_dim
            growth = step.log_abs_det_jacobian(x, y)
            more = event_dim - step.domain.event_dim
            log_prob = log_prob - sum_rightmost(growth, more)
            y = x
        base = self.base_dist.log_prob(y)
        more = event_dim - len(self.base_dist.event_shape)
        return log_prob + sum_rightmost(base, more)

    def _monotonize_cdf(self, value: Tensor) -> Tensor:
        """1 - value where the transforms turn the order round."""
        sign: Any = math.prod((step.sign for step in self.transforms), start=1)
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for step in reversed(self.transforms):
            value = step.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
