"""Templates of an operator's arguments, with holes for arrays and runtime scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Hole:
    """A place in a template that an array fills at run time."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "HOLE"


class ScalarHole:
    """A place in a template that a runtime scalar fills.

    `plain`: like a Python number, it promotes nothing.
    """

    __slots__ = ("integer", "plain")

    def __init__(self, integer: bool, plain: bool = False) -> None:
        self.integer = integer
        self.plain = plain

    def __repr__(self) -> str:
        return "INT" if self.integer else "FLOAT"


HOLE = Hole()
FLOAT_HOLE = ScalarHole(False)
INT_HOLE = ScalarHole(True)
# For floats that were compiled in until they were seen to vary.
PLAIN_HOLE = ScalarHole(False, plain=True)


class Number:
    """A static number among the operands (kept apart from a plain static argument)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash((self.value.__class__, self.value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Number)
            and other.value.__class__ is self.value.__class__
            and other.value == self.value
        )

    def __repr__(self) -> str:
        return repr(self.value)


def scalar_holes(template: Sequence[Any]) -> list[ScalarHole]:
    """The places in a template that runtime scalars fill, in order."""
    return [
        e
        for entry in template
        for e in (entry if isinstance(entry, tuple) else (entry,))
        if isinstance(e, ScalarHole)
    ]
