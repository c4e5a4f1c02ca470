"""Fields of a dataclass that are made when they are first asked for.

For objects that are made often and of which most never need most of their fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar

_T = TypeVar("_T")


def late(make: Callable[[], _T]) -> _T:
    """A field of a class derived from `Late`, which `make()` fills when it is read."""
    return field(init=False, metadata={"make": make})


class Late:
    """Base of dataclasses with such fields."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            known = type(self).__dataclass_fields__.get(name)
            if known is None or "make" not in known.metadata:
                kind = type(self).__name__
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            value = known.metadata["make"]()
            setattr(self, name, value)
            return value
