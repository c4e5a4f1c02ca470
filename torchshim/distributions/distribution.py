"""`Distribution`, the base of all distributions.

https://docs.pytorch.org/docs/2.13/distributions.html#distribution
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._validation import check_parameter, check_sample
from torchshim.distributions.utils import as_size, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A probability distribution over tensors of `event_shape`, `batch_shape` of them.

    `validate_args` decides whether parameters and the values scored are checked
    (default: as `set_default_validate_args` says). What raises when is told in
    `_validation`.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on validate; ValueError for no bool."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = Size(),  # noqa: B008
        event_shape: Size = Size(),  # noqa: B008
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name), lazy_property
            ):
                continue
            check_parameter(self, name, getattr(self, name), constraint)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch dimensions expanded."""
        raise NotImplementedError

    def _expand_parameters(self, cls: type, batch_shape: Any, instance: Any) -> Any:
        """What `expand` does where the parameters are the whole state."""
        new = self._get_checked_instance(cls, instance)
        batch_shape = Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                own: Tensor = self.__dict__[name]
                event = own.shape[own.dim() - constraint.event_dim :]
                new.__dict__[name] = own.expand(batch_shape + event)
        return self._finish_expansion(new, batch_shape)

    def _finish_expansion(self, new: Any, batch_shape: Any) -> Any:
        Distribution.__init__(
            new, Size(batch_shape), self._event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution of the batch."""
        return self._event_shape

    if TYPE_CHECKING:
        # Subclasses have these as attributes or as properties.
        arg_constraints: Any
        support: Any
    else:

        @property
        def arg_constraints(self) -> dict[str, constraints.Constraint]:
            """For each parameter what it has to satisfy."""
            raise NotImplementedError

        @property
        def support(self) -> constraints.Constraint | None:
            """What samples satisfy."""
            raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """Where the density is largest."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        """Samples, `sample_shape` of them for each distribution; no gradient."""
        with torchshim.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        """Samples that gradients flow through to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """As `sample((n,))`; deprecated."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of samples up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, in dimension 0."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, of shape `batch_shape`."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return torchshim.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:  # noqa: B008
        """The shape of what `sample(sample_shape)` gives."""
        return Size(as_size(sample_shape) + self._batch_shape + self._event_shape)

    def _validate_sample(self, value: Tensor) -> None:
        """Raises ValueError for values of another shape, or outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape = value.size()
        if shape[len(shape) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample "
                "validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=2,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        check_sample(self, value, support)

    def _checked(self, value: Tensor) -> Tensor:
        """A value to be scored, validated where that is asked for."""
        if self._validate_args:
            self._validate_sample(value)
        return value

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        own: Callable[..., None] = type(self).__init__
        if _instance is None and own != cls.__init__:
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a "
                "custom __init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        held = self.__dict__
        shown = [
            f"{name}: {held[name] if held[name].numel() == 1 else held[name].size()}"
            for name in self.arg_constraints
            if name in held
        ]
        return f"{self.__class__.__name__}({', '.join(shown)})"
