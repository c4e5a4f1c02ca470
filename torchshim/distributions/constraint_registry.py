"""Transforms from all real numbers to a constraint's region.

https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.constraint_registry

`biject_to(constraint)` is a bijection with a change of volume, as sampling in the
unconstrained space needs it; `transform_to(constraint)` may be cheaper and not one to
one, which is enough for optimizing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim.distributions import constraints, transforms
from torchshim.distributions.utils import NUMBERS

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """From the classes of constraints to functions that make transforms.

    >>> import torchshim as torch
    >>> transform_to(constraints.positive)(torch.zeros(1))
    tensor([1.])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Sets the function for a class, or the class of an object; a decorator too.

        TypeError for what is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(
            constraint, constraints.Constraint
        ):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform; NotImplementedError where none is registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[..., Any]:
    def register(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)
def _to_half_line(constraint: Any) -> Any:
    # PyTorch registers these last for the class that `positive` has, too.
    shift = transforms.AffineTransform(constraint.lower_bound, 1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.less_than)
def _to_lower_half_line(constraint: Any) -> Any:
    turn = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), turn])


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    numbers = isinstance(low, NUMBERS) and isinstance(high, NUMBERS)
    if numbers and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    stretch = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), stretch])


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


_transform_to_real = _to_real
_transform_to_positive = _to_half_line
_transform_to_greater_than = _to_half_line
_transform_to_less_than = _to_lower_half_line
_transform_to_interval = _to_interval
_transform_to_corr_cholesky = _to_corr_cholesky


def _composites(registry: ConstraintRegistry) -> None:
    """Constraints made of others get transforms from the same registry."""

    @registry.register(constraints.independent)
    def over_events(constraint: Any) -> Any:
        base = registry(constraint.base_constraint)
        dims = constraint.reinterpreted_batch_ndims
        return transforms.IndependentTransform(base, dims)

    @registry.register(constraints.cat)
    def of_parts(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def of_slices(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.StackTransform(parts, constraint.dim)


_composites(biject_to)
_composites(transform_to)
