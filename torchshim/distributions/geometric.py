"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._odds import BinaryOdds
from torchshim.distributions._validation import (
    check_later,
    is_valid,
    shapes_of,
)
from torchshim.distributions.distribution import Distribution as Distribution
from torchshim.distributions.utils import broadcast_all, is_number
from torchshim.distributions.utils import lazy_property as lazy_property
from torchshim.distributions.utils import logits_to_probs as logits_to_probs
from torchshim.distributions.utils import probs_to_logits as probs_to_logits
from torchshim.nn.functional import binary_cross_entropy_with_logits

__all__ = ["Geometric"]


class Geometric(BinaryOdds):
    """How many trials fail before the first that succeeds.

    https://docs.pytorch.org/docs/2.13/distributions.html#geometric
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._take_odds(probs, logits)
        single = is_number(logits if probs is None else probs)
        shape = Size() if single else self._param.size()
        super().__init__(shape, validate_args=validate_args)
        if self._validate_args and probs is not None:
            self._check_positive(self._param)

    def _check_positive(self, value: Tensor) -> None:
        valid = is_valid(constraints.positive, value)
        pending = isinstance(valid, Tensor)
        if valid is True:
            return
        text = (
            f"Expected parameter probs ({type(value).__name__} of shape "
            f"{tuple(value.shape)}) of distribution "
            f"{shapes_of(self) if pending else repr(self)} to be positive but found "
            "invalid values"
        )
        if isinstance(valid, Tensor):
            check_later(valid, text)
        else:
            raise ValueError(f"{text}:\n{value.data[~(value > 0)]}")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expand_parameters(Geometric, batch_shape, _instance)

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return torchshim.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        tiny = torchshim.finfo(self.probs.dtype).tiny
        with torchshim.no_grad():
            drawn = self.probs.new(shape).uniform_(tiny, 1)
            return (drawn.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        value, probs = broadcast_all(self._checked(value), self.probs)
        # Certain success at once: 0 * log(0) counts as 0.
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross = binary_cross_entropy_with_logits(
            self.logits, self.probs, reduction="none"
        )
        return cross / self.probs
