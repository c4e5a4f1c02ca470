"""Arguments checked against constraints: at once where values are known.

PyTorch reads values to validate them. Here a read would end the recording, so:

- a value that is known (a constant, a leaf, what was computed by an earlier program) is
  checked on the host, in NumPy, and the error is raised at once;
- a value that is pending in the recording is checked by the program itself. The error
  is raised at the next read of a value; its text has the shapes in place of values.
  Where the program expects errors it would be run at once, so the value is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.handlers import error_expected
from torchshim._derived import fns
from torchshim._functions._arguments import is_known
from torchshim._functions.func_unwrap import debug_unwrap
from torchshim._tensor import Tensor


class Unknown(Exception):
    """A value that is asked for on the host is still pending."""


def _readable(value: Tensor) -> bool:
    """Whether a value is known, and no example's of a `vmap` in progress."""
    return is_known(value) and not value._tmeta.batch


def host_of(value: Any) -> Any:
    """A known tensor as a NumPy array; what is no tensor as it is."""
    if not isinstance(value, Tensor):
        return value
    if not _readable(value):
        raise Unknown
    return value._host()


def bound_for(value: Any, bound: Any) -> Any:
    """A constraint's bound, of the kind of the value that is compared with it."""
    return host_of(bound) if isinstance(value, np.ndarray) else bound


def takes_arrays(constraint: Any) -> bool:
    """Whether `check` takes arrays: it is none that a program wrote or put there."""
    own = constraint.check.__module__ == f"{__package__}.constraints"
    return own and constraint.takes_arrays


def is_valid(constraint: Any, value: Tensor) -> bool | Tensor:
    """Whether a value satisfies a constraint: True or False, or a pending tensor."""
    if _readable(value):
        if not takes_arrays(constraint):
            return bool(constraint.check(value).all())
        try:
            with np.errstate(all="ignore"):
                return bool(np.all(constraint.check(value._host())))
        except Unknown:
            pass
    # Under `vmap` all examples have to satisfy it.
    valid = debug_unwrap(constraint.check(value))
    return bool(valid.all()) if error_expected() else valid


def check_later(valid: Tensor, text: str) -> None:
    """A ValueError at the next read of a value, unless all of `valid` is true."""
    fns._validate(valid, text)


def shapes_of(distribution: Any) -> str:
    """As a distribution's repr, with shapes where that would have to read values."""
    held = distribution.__dict__
    shown = [
        f"{name}: {held[name].size()}"
        for name in distribution.arg_constraints
        if name in held
    ]
    return f"{type(distribution).__name__}({', '.join(shown)})"


def text_of(constraint: Any) -> str:
    """A constraint's repr, with shapes where its bounds are tensors."""
    bounds = {
        name: bound
        for name, bound in vars(constraint).items()
        if isinstance(bound, Tensor)
    }
    if not bounds:
        return repr(constraint)
    shown = [f"{name}=Tensor of shape {tuple(b.shape)}" for name, b in bounds.items()]
    return f"{type(constraint).__name__.lstrip('_')}({', '.join(shown)})"


def check_parameter(
    distribution: Any, name: str, value: Tensor, constraint: Any
) -> None:
    """Raises ValueError, now or later, where a parameter is not valid."""
    valid = is_valid(constraint, value)
    if valid is True:
        return
    pending = isinstance(valid, Tensor)
    described = shapes_of(distribution) if pending else repr(distribution)
    text = (
        f"Expected parameter {name} ({type(value).__name__} of shape "
        f"{tuple(value.shape)}) of distribution {described} to satisfy the "
        f"constraint {text_of(constraint) if pending else repr(constraint)}, "
        "but found invalid values"
    )
    if isinstance(valid, Tensor):
        check_later(valid, text)
    else:
        raise ValueError(f"{text}:\n{value}")


def check_sample(distribution: Any, value: Tensor, support: Any) -> None:
    """Raises ValueError, now or later, where a value lies outside of the support."""
    valid = is_valid(support, value)
    if valid is True:
        return
    pending = isinstance(valid, Tensor)
    described = shapes_of(distribution) if pending else repr(distribution)
    text = (
        f"Expected value argument ({type(value).__name__} of shape "
        f"{tuple(value.shape)}) to be within the support "
        f"({text_of(support) if pending else repr(support)}) of the distribution "
        f"{described}, but found invalid values"
    )
    if isinstance(valid, Tensor):
        check_later(valid, text)
    else:
        raise ValueError(f"{text}:\n{value}")
