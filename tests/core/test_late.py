"""Fields that are made when they are first asked for."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from torchshim._core.late import Late, late


@dataclass(slots=True, eq=False)
class Example(Late):
    given: int
    at_once: list[int] = field(default_factory=list)
    later: list[int] = late(list)
    flag: bool = late(bool)


def test_late_fields_are_made_once_for_each_object() -> None:
    one, other = Example(1), Example(2)
    one.later.append(3)
    assert (one.later, other.later, one.flag) == ([3], [], False)


def test_what_was_set_stays() -> None:
    one = Example(1)
    one.flag = True
    assert one.flag


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="attribute 'more'"):
        Example(1).more  # type: ignore[attr-defined]  # noqa: B018
    one = Example(1)
    del one.given
    with pytest.raises(AttributeError, match="given"):
        one.given  # noqa: B018
