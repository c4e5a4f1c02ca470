"""The static integers of a call that may as well be runtime scalars.

A loop of a script records `x[:, 0]`, `x[:, 1]`, …: calls that differ in an integer. As
iterations of one loop of the program they are one call, with the integer filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.avals import Avals
from torchshim._core.call import Call, intern_call
from torchshim._core.op import (
    INDEX,
    INDICES,
    OPERAND,
    OPT_OPERAND,
    OPT_SCALAR,
    SCALAR,
)
from torchshim._core.template import INT_HOLE, Number, ScalarHole

_ROLES = (INDEX, INDICES, OPERAND, OPT_OPERAND, SCALAR, OPT_SCALAR)
# Runtime scalars travel as float64, which holds smaller ones.
BOUND = 2**53


def integers(call: Any) -> list[int | None]:
    """The integers of a call; None for those that are runtime scalars already."""
    root = _root(call)
    return [_value(root, part, inner) for part, inner in _positions(root)]


def with_holes(call: Any, mask: Sequence[bool]) -> Any:
    """The call with the masked ones of its integers as runtime scalars."""
    if not any(mask):
        return call
    if not isinstance(call, Call):
        return call.around(with_holes(call.inner, mask))
    places = [
        (*at, INT_HOLE) for at, m in zip(_positions(call), mask, strict=True) if m
    ]
    template = punched(call.template, places)
    op, holed, default, write = call.op, tuple(template), call.default_dtype, call.write
    return intern_call((op, holed, default), lambda: Call(op, holed, default, write))


def punched(
    entries: Sequence[Any], places: Sequence[tuple[int, int | None, ScalarHole]]
) -> list[Any]:
    """A template (or a key) with holes at (entry, position in it if a tuple)."""
    found = list(entries)
    for part, inner, hole in places:
        if inner is None:
            found[part] = hole
        else:
            piece = list(found[part])
            piece[inner] = hole
            found[part] = tuple(piece)
    return found


def opened(call: Any) -> Any:
    """The call with all its integers as runtime scalars."""
    return with_holes(call, [value is not None for value in integers(call)])


def generalized(
    call: Any, mask: Sequence[bool], given: Avals, results: Avals | None = None
) -> Any | None:
    """The call with the masked integers as runtime scalars, for operands like these.

    None where the operator needs one of them to be static. `results`: what the call
    gives, if that is known.
    """
    found = with_holes(call, mask)
    if found is call:
        return call
    try:
        same = found.infer(given) == (results or call.infer(given))
    except Exception:
        return None
    return found if same else None


def indexing(call: Any) -> list[bool]:
    """Which of a call's integers are indices."""
    root = _root(call)
    return [
        _value(root, part, inner) is not None
        and root.op.params[part].role in (INDEX, INDICES)
        for part, inner in _positions(root)
    ]


def _root(call: Any) -> Any:
    while hasattr(call, "inner"):
        call = call.inner
    return call


def _positions(call: Any) -> list[tuple[int, int | None]]:
    """(entry of the template, position in it if that is a tuple) of the integers."""
    # The texts of checks may name integers.
    if not isinstance(call, Call) or call.op.checks is not None:
        return []
    found: list[tuple[int, int | None]] = []
    for part, (param, entry) in enumerate(
        zip(call.op.params, call.template, strict=True)
    ):
        if param.role not in _ROLES:
            continue
        if isinstance(entry, tuple):
            found += [(part, i) for i, e in enumerate(entry) if _is_integer(e)]
        elif _is_integer(entry):
            found.append((part, None))
    return found


def _is_integer(entry: Any) -> bool:
    if isinstance(entry, Number):
        value = entry.value
        return value.__class__ is int and -BOUND < value < BOUND
    return entry is INT_HOLE


def _value(call: Call, part: int, inner: int | None) -> int | None:
    entry = call.template[part]
    if inner is not None:
        entry = entry[inner]
    return entry.value if isinstance(entry, Number) else None
