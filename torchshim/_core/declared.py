"""What the declaration of an operator may name, and a check of that.

A name that is none would be forgotten: an operand not saved, a gradient that is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchshim._core.promotion import Promotion

# What `saves` may name beside parameters: the operands are kept in their place.
DERIVED = frozenset({"result", "result0", "result1", "intermediate"})
# Beside names of parameters: also what is computed of the first of them on the way.
COMPUTED = "computed"
# What is saved, but by no name.
UNNAMED = frozenset({"intermediate", COMPUTED})

# The fields that name parameters.
_FIELDS = (
    *("saves", "differentiable", "curved", "passes", "varies", "edges", "operands"),
    *("fits", "mutates", "apart", "whole", "own_floats"),
)


def check(op: Any) -> None:
    """Raises ValueError for a declaration that names what is not there."""
    known = {p.name for p in op.params}
    for field in _FIELDS:
        unknown = _names(getattr(op, field)) - known
        if field == "saves":
            unknown -= DERIVED | {COMPUTED}
        if unknown:
            raise ValueError(
                f"operator {op.name!r}: {field}= names {sorted(unknown)}, and there is "
                "no such parameter"
            )
    if op.promote is not None and not isinstance(op.promote, Promotion):
        raise ValueError(f"operator {op.name!r}: no kind of promotion {op.promote!r}")
    if isinstance(op.layout, str) and op.layout != "preserve":
        raise ValueError(f"operator {op.name!r}: no memory order {op.layout!r}")


def _names(given: Any) -> set[str]:
    """The parameters that a field names; none where a function gives them."""
    if given is None or isinstance(given, bool) or callable(given):
        return set()
    names = set(given) - {None}
    if isinstance(given, Mapping):
        lists = [each for each in given.values() if isinstance(each, (tuple, list))]
        names |= {name for each in lists for name in each if isinstance(name, str)}
    return names
