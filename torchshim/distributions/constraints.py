"""Sets that parameters and samples lie in, as `torch.distributions.constraints`.

https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.constraints

`check` takes a tensor. Those of the constraints defined here take NumPy arrays too
(`takes_arrays`), so that what is known on the host is checked there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import torchshim
from torchshim.distributions._validation import bound_for, takes_arrays

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region that a value lies in; `event_dim` dimensions are checked together.

    >>> import torchshim as torch
    >>> positive.check(torch.tensor([1.0, -1.0]))
    tensor([ True, False])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    takes_arrays: Any = False

    def check(self, value: Any) -> Any:
        """Which events of `value` lie in the region, as a bool tensor."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.__class__.__name__[1:]}()"


# What depends on a distribution's parameters -----------------------------------------


class _Dependent(Constraint):
    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    def _static(self, name: str) -> Any:
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    @property
    def is_discrete(self) -> bool:
        return self._static("is_discrete")

    @property
    def event_dim(self) -> int:
        return self._static("event_dim")

    def __call__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> Any:
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, x: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint is known only for an instance of its distribution."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of a distribution that gives a constraint, and on the class is one."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:
        return _DependentProperty(
            fn, is_discrete=self._is_discrete, event_dim=self._event_dim
        )


# Events of several dimensions ---------------------------------------------------------


def _base(constraint: Any) -> Constraint:
    if not isinstance(constraint, Constraint):
        raise AssertionError(
            f"base_constraint must be a Constraint, got {type(constraint).__name__}"
        )
    return constraint


class _OnBase(Constraint):
    base_constraint: Constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def takes_arrays(self) -> bool:
        return takes_arrays(self.base_constraint)


class _IndependentConstraint(_OnBase):
    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = _base(base_constraint)
        count = reinterpreted_batch_ndims
        if not isinstance(count, int):
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int, got {type(count).__name__}"
            )
        if count < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {count}")
        self.reinterpreted_batch_ndims = count
        super().__init__()

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        kept = result.ndim - self.reinterpreted_batch_ndims
        if kept < 0:
            raise ValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.ndim}"
            )
        return _all_from(result, kept)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__[1:]}({self.base_constraint!r}, "
            f"{self.reinterpreted_batch_ndims})"
        )


class MixtureSameFamilyConstraint(_OnBase):
    """What the components' support is, for values without their dimension."""

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = _base(base_constraint)
        super().__init__()

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        kept = value.ndim - self.event_dim
        shape = tuple(value.shape)
        one = (*shape[: max(kept, 0)], 1, *shape[max(kept, 0) :])
        result = self.base_constraint.check(value.reshape(one))
        if kept < 0:
            raise ValueError(
                f"Expected value.dim() >= {self.event_dim} but got {value.ndim}"
            )
        return _all_from(result, kept)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_constraint!r})"


def _all_from(result: Any, kept: int) -> Any:
    """`all` over the dimensions from `kept` on."""
    leading = tuple(result.shape[:kept])
    count = int(np.prod(result.shape[kept:]))
    return result.reshape((*leading, count)).all(-1)


# Numbers ------------------------------------------------------------------------------


class _Boolean(Constraint):
    is_discrete = True
    takes_arrays = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1
    takes_arrays = True

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Real(Constraint):
    takes_arrays = True

    def check(self, value: Any) -> Any:
        return value == value  # False for NaN


class _Bounded(Constraint):
    """A constraint with bounds, numbers or tensors, that its repr lists."""

    takes_arrays = True

    def _bound(self, name: str, value: Any) -> Any:
        return bound_for(value, getattr(self, name))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={bound}" for name, bound in vars(self).items())
        return f"{self.__class__.__name__[1:]}({shown})"


class _Above(_Bounded):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()


class _Below(_Bounded):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()


class _Between(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()


class _GreaterThan(_Above):
    def check(self, value: Any) -> Any:
        return value > self._bound("lower_bound", value)


class _GreaterThanEq(_Above):
    def check(self, value: Any) -> Any:
        return value >= self._bound("lower_bound", value)


class _LessThan(_Below):
    def check(self, value: Any) -> Any:
        return value < self._bound("upper_bound", value)


class _Interval(_Between):
    def check(self, value: Any) -> Any:
        low = self._bound("lower_bound", value)
        return (value >= low) & (value <= self._bound("upper_bound", value))


class _HalfOpenInterval(_Between):
    def check(self, value: Any) -> Any:
        low = self._bound("lower_bound", value)
        return (value >= low) & (value < self._bound("upper_bound", value))


class _IntegerGreaterThan(_Above):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self._bound("lower_bound", value))


class _IntegerLessThan(_Below):
    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self._bound("upper_bound", value))


class _IntegerInterval(_Between):
    is_discrete = True

    def check(self, value: Any) -> Any:
        low, high = self._bound("lower_bound", value), self._bound("upper_bound", value)
        return (value % 1 == 0) & (value >= low) & (value <= high)


# Vectors ------------------------------------------------------------------------------


class _Simplex(Constraint):
    event_dim = 1
    takes_arrays = True

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(Constraint):
    is_discrete = True
    event_dim = 1
    takes_arrays = True

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Any) -> Any:
        # Weaker than `==`, as in PyTorch.
        return (x >= 0).all(-1) & (x.sum(-1) <= bound_for(x, self.upper_bound))


# Matrices -----------------------------------------------------------------------------


def _transposed(value: Any) -> Any:
    return value.swapaxes(-2, -1)


def _is_lower(value: Any) -> Any:
    lower = np.tril(value) if isinstance(value, np.ndarray) else value.tril()
    return (lower == value).all(-1).all(-1)


class _Matrix(Constraint):
    event_dim = 2
    takes_arrays = True


class _LowerTriangular(_Matrix):
    def check(self, value: Any) -> Any:
        return _is_lower(value)


class _LowerCholesky(_Matrix):
    def check(self, value: Any) -> Any:
        lower = _is_lower(value)
        if isinstance(value, np.ndarray):
            diagonal = value.diagonal(axis1=-2, axis2=-1)
        else:
            diagonal = value.diagonal(dim1=-2, dim2=-1)
        return lower & (diagonal > 0).all(-1)


class _CorrCholesky(_Matrix):
    def check(self, value: Any) -> Any:
        eps = np.finfo(str(value.dtype).rpartition(".")[2]).eps
        length = (value * value).sum(-1) ** 0.5
        unit = (abs(length - 1.0) <= float(eps) * value.shape[-1] * 10).all(-1)
        return lower_cholesky.check(value) & unit


class _Square(_Matrix):
    def check(self, value: Any) -> Any:
        same = value.shape[-2] == value.shape[-1]
        if isinstance(value, np.ndarray):
            return np.full(value.shape[:-2], same)
        return torchshim.full(
            value.shape[:-2], same, dtype=torchshim.bool, device=value.device
        )


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        if isinstance(value, np.ndarray):
            near = np.isclose(value, _transposed(value), atol=1e-6)
        else:
            near = torchshim.isclose(value, _transposed(value), atol=1e-6)
        return near.all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        if isinstance(value, np.ndarray):
            return symmetric & (np.linalg.eigvalsh(value) >= 0).all(-1)
        return symmetric & (torchshim.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        symmetric = super().check(value)
        if value.shape[-2] != value.shape[-1]:
            return symmetric
        if isinstance(value, np.ndarray):
            return symmetric & _has_factor(value)
        return symmetric & (torchshim.linalg.cholesky_ex(value.detach()).info == 0)


def _has_factor(value: np.ndarray) -> np.ndarray:
    """Which matrices of a batch have a Cholesky factor."""
    flat = value.reshape(-1, *value.shape[-2:])
    found = np.ones(len(flat), bool)
    for i, matrix in enumerate(flat):
        try:
            found[i] = not np.isnan(np.linalg.cholesky(matrix)).any()
        except np.linalg.LinAlgError:
            found[i] = False
    return found.reshape(value.shape[:-2])


# Parts along a dimension --------------------------------------------------------------


class _Parts(Constraint):
    cseq: list[Constraint]
    dim: int

    def __init__(self, cseq: Sequence[Any], dim: int) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    def _check_dim(self, value: Any) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Parts):
    """Constraints for parts of given lengths, as `torch.cat` puts them together."""

    def __init__(
        self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        parts = value.split(self.lengths, self.dim)
        found = [c.check(v) for c, v in zip(self.cseq, parts, strict=True)]
        return torchshim.cat(found, self.dim)


class _Stack(_Parts):
    """Constraints for the slices along a dimension, as `torch.stack` makes them."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        super().__init__(cseq, dim)

    @property
    def event_dim(self) -> int:
        dims = max(c.event_dim for c in self.cseq)
        return dims + 1 if self.dim + dims < 0 else dims

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        slices = value.unbind(self.dim)
        found = [c.check(v) for v, c in zip(slices, self.cseq, strict=False)]
        return torchshim.stack(found, self.dim)


# Public names -------------------------------------------------------------------------

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
