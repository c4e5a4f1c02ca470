"""The patterns of `rearrange`: "b (h w) ... -> b ... h w".

They are those of einops, as `functorch.einops._parsing` reads them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Mapping
from typing import Any

from torchshim import _warnings as warnings

ELLIPSIS = "…"  # as one character

Groups = list[list[Any] | str]


class AnonymousAxis:
    """A dimension that is told by its size only; no two are the same."""

    def __init__(self, value: str) -> None:
        self.value = int(value)
        if self.value < 1:
            raise ValueError(
                f"Anonymous axis should have positive length, not {self.value}"
            )

    def __repr__(self) -> str:
        return f"{self.value}-axis"


class ParsedExpression:
    """One side of a pattern: `composition` has the names within each dimension.

    The ellipsis is itself there, where it is not one of several in a dimension.
    """

    def __init__(
        self,
        expression: str,
        *,
        allow_underscore: bool = False,
        allow_duplicates: bool = False,
    ) -> None:
        self.identifiers: set[Any] = set()
        self.has_ellipsis = False
        self.has_ellipsis_parenthesized: bool | None = None
        self.has_non_unitary_anonymous_axes = False
        self.composition: Groups = []
        self._options = allow_underscore, allow_duplicates
        self._read(_with_ellipsis(expression))

    def _read(self, text: str) -> None:
        self.has_ellipsis = ELLIPSIS in text and "..." not in text
        group: list[Any] | None = None
        for token in re.findall(rf"[\w{ELLIPSIS}]+|[^ ]", text):
            if token == "(":
                if group is not None:
                    raise ValueError(
                        "Axis composition is one-level (brackets inside brackets not "
                        "allowed)"
                    )
                group = []
            elif token == ")":
                if group is None:
                    raise ValueError("Brackets are not balanced")
                self.composition.append(group)
                group = None
            elif not re.fullmatch(rf"[\w{ELLIPSIS}]+", token):
                raise ValueError(f"Unknown character '{token}'")
            else:
                self._add(token, group)
        if group is not None:
            raise ValueError(f"Imbalanced parentheses in expression: '{text}'")

    def _add(self, name: str, group: list[Any] | None) -> None:
        underscore, duplicates = self._options
        if name in self.identifiers and not duplicates:
            raise ValueError(
                f"Indexing expression contains duplicate dimension '{name}'"
            )
        found: list[Any] = [name]
        if name == ELLIPSIS:
            self.has_ellipsis_parenthesized = group is not None
        elif name.isdecimal():
            axis = AnonymousAxis(name)
            # A dimension of size 1 that has no name is split into nothing.
            found = [] if axis.value == 1 else [axis]
            self.has_non_unitary_anonymous_axes |= bool(found)
        else:
            valid, reason = self.check_axis_name_return_reason(name, underscore)
            if not valid:
                raise ValueError(f"Invalid axis identifier: {name}\n{reason}")
        self.identifiers.update(found)
        if group is not None:
            group += found
        elif name == ELLIPSIS:
            self.composition.append(name)
        else:
            self.composition.append(found)

    @staticmethod
    def check_axis_name_return_reason(
        name: str, allow_underscore: bool = False
    ) -> tuple[bool, str]:
        """Whether a dimension may be called so, and why not; keywords are warned of."""
        if not name.isidentifier():
            return False, "not a valid python identifier"
        if "_" in (name[0], name[-1]) and not (name == "_" and allow_underscore):
            return False, "axis name should should not start or end with underscore"
        if keyword.iskeyword(name):
            warnings.warn(
                f"It is discouraged to use axes names that are keywords: {name}",
                RuntimeWarning,
                stacklevel=2,
            )
        return True, ""

    @staticmethod
    def check_axis_name(name: str) -> bool:
        """Whether a dimension may be called so."""
        return ParsedExpression.check_axis_name_return_reason(name)[0]


def _with_ellipsis(text: str) -> str:
    if "." not in text:
        return text
    if "..." not in text:
        raise ValueError("Expression may contain dots only inside ellipsis (...)")
    if text.count("...") != 1 or text.count(".") != 3:
        raise ValueError(
            "Expression may contain dots only inside ellipsis (...); only one "
            "ellipsis for tensor "
        )
    return text.replace("...", ELLIPSIS)


def parse_pattern(
    pattern: str, axes_lengths: Mapping[str, int]
) -> tuple[ParsedExpression, ParsedExpression]:
    """The two sides of a pattern; ValueError for an ellipsis in a wrong place."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    if ELLIPSIS in axes_lengths:
        raise ValueError(f"'{ELLIPSIS}' is not an allowed axis identifier")
    left, right = map(ParsedExpression, sides)
    if not left.has_ellipsis and right.has_ellipsis:
        raise ValueError(
            f"Ellipsis found in right side, but not left side of a pattern {pattern}"
        )
    if left.has_ellipsis_parenthesized:
        raise ValueError(
            f"Ellipsis is parenthesis in the left side is not allowed: {pattern}"
        )
    return left, right


def validate_rearrange_expressions(
    left: ParsedExpression, right: ParsedExpression, axes_lengths: Mapping[str, int]
) -> None:
    """Each name stands once on both sides, and nothing else has a length."""
    for length in axes_lengths.values():
        if type(length) is not int:
            raise TypeError(
                f"rearrange axis lengths must be integers, got: {type(length)}"
            )
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("rearrange only supports unnamed axes of size 1")
    apart = left.identifiers ^ right.identifiers
    if apart:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on "
            f"both): {apart}"
        )
    unknown = axes_lengths.keys() - left.identifiers
    if unknown:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")


def comma_separate(collection: Collection[Any]) -> str:
    """Names, and tuples of them, as Python writes a tuple."""
    return ", ".join(
        item
        if isinstance(item, str)
        else f"({comma_separate(item)}{',' if len(item) == 1 else ''})"
        for item in collection
    )
