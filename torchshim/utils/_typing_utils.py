"""Helpers of type annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def not_none(obj: T | None) -> T:
    """The object; TypeError for None."""
    if obj is None:
        raise TypeError("Invariant encountered: value was None when it should not be")
    return obj


def copy_func_params(source_func: Any) -> Callable[[Any], Any]:
    """A decorator for type checkers: the parameters are those of another function."""
    return lambda func: func


# For methods, and with the type of the result, these differ for type checkers alone.
copy_func_sig = copy_method_params = copy_method_sig = copy_func_params
