"""The older arguments of losses that `reduction` took the place of."""

from __future__ import annotations

from torchshim import _warnings as warnings
from torchshim._functions.nn_loss import (
    OLD_ARGUMENTS,
    OLD_MEAN,
    REDUCTIONS,
    meant_by,
)


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """What `size_average` and `reduce` mean, as a `reduction`; warns.

    >>> legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    reduction = meant_by(size_average, reduce)
    if emit_warning:
        warnings.warn(OLD_ARGUMENTS.format(reduction), stacklevel=2)
    return reduction


def get_enum(reduction: str) -> int:
    """The number that PyTorch's kernels have for a reduction.

    >>> get_enum("sum")
    2
    """
    if reduction == "elementwise_mean":
        warnings.warn(OLD_MEAN, stacklevel=2)
        return 1
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return REDUCTIONS.index(reduction)


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """As `legacy_get_string`, as PyTorch's kernels number it."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
