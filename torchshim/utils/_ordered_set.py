"""A set that keeps the order in which its elements came."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Reversible
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

T = TypeVar("T")


class OrderedSet(MutableSet[T], Reversible[T]):
    """A set whose elements come in the order in which they were added.

    >>> OrderedSet([3, 1, 3]) | {2}
    OrderedSet([3, 1, 2])
    """

    __slots__ = ("_dict",)

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._dict: dict[T, None] = dict.fromkeys(iterable or ())

    @staticmethod
    def _from_dict(dict_inp: dict[Any, None]) -> OrderedSet[Any]:
        made: OrderedSet[Any] = OrderedSet()
        made._dict = dict_inp
        return made

    def __contains__(self, elem: object) -> bool:
        return elem in self._dict

    def __iter__(self) -> Iterator[T]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._dict)

    def add(self, elem: T) -> None:
        """Adds an element at the end, unless it is there."""
        self._dict[elem] = None

    def discard(self, elem: T) -> None:
        """Takes an element out, if it is there."""
        self._dict.pop(elem, None)

    def clear(self) -> None:
        """Takes all elements out."""
        self._dict.clear()

    def pop(self) -> T:
        """Takes the last element out."""
        if not self:
            raise KeyError("pop from an empty set")
        return self._dict.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        """Another set of the same elements."""
        return OrderedSet(self)

    def difference(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """The elements that are in none of the others."""
        made = self.copy()
        made.difference_update(*others)
        return made

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Takes out the elements of the others."""
        for other in others:
            for elem in list(other):
                self.discard(elem)

    def update(self, *others: Iterable[T]) -> None:
        """Adds the elements of the others."""
        for other in others:
            self._dict.update(dict.fromkeys(other))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        """The elements of all."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Iterable[Any]) -> OrderedSet[T]:
        """The elements that are in all of the others."""
        kept = [set(other) for other in others]
        return OrderedSet(x for x in self if all(x in other for other in kept))

    def intersection_update(self, *others: Iterable[Any]) -> None:
        """Takes out what is not in all of the others."""
        self._dict = self.intersection(*others)._dict

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Takes out what both have, and adds what only the other one has."""
        self._dict = self.symmetric_difference(other)._dict

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        """The elements of one of both only."""
        return self ^ OrderedSet(other)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether the other one has all the elements."""
        return self <= _as_set(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether all of the other's elements are here."""
        return all(x in self for x in other)

    def __sub__(self, other: AbstractSet[Any]) -> OrderedSet[T]:
        return self.difference(other)

    def __or__(self, other: Any) -> Any:
        return self.union(other)

    def __and__(self, other: AbstractSet[Any]) -> OrderedSet[T]:
        # The order is that of the shorter one.
        shorter, longer = (self, other) if len(self) < len(other) else (other, self)
        if not isinstance(other, OrderedSet):
            shorter, longer = other, self
        return OrderedSet(x for x in shorter if x in longer)

    def __xor__(self, other: Any) -> Any:
        other = _as_set(other)
        mine = [x for x in self if x not in other]
        return OrderedSet([*mine, *(x for x in other if x not in self)])

    def __isub__(self, other: AbstractSet[Any]) -> OrderedSet[T]:
        self.difference_update(other)
        return self

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OrderedSet):
            return self._dict == other._dict
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)})"

    def __getstate__(self) -> list[T]:
        return list(self)

    def __setstate__(self, state: list[T]) -> None:
        self._dict = dict.fromkeys(state)


def _as_set(other: Iterable[Any]) -> AbstractSet[Any]:
    return other if isinstance(other, AbstractSet) else OrderedSet(other)
