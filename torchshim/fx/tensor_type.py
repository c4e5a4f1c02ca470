"""Types of tensors that say their shapes: `TensorType([1, 2, Dyn])`.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from typing import Any


class _DynType:
    """The type of what nothing is known of."""

    def __init__(self) -> None:
        self.__name__ = "_DynType"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.__class__)

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __str__(self) -> str:
        return "Dyn"

    def __repr__(self) -> str:
        return "Dyn"


Dyn = _DynType()


class TensorType:
    """The type of tensors of one shape; a dimension may be `Dyn`.

    >>> TensorType([1, Dyn])
    TensorType[[1, Dyn]]
    """

    def __init__(self, dim: Any) -> None:
        self.__origin__ = TensorType
        self.__args__ = dim

    @property
    def dims(self) -> Any:
        """The dimensions."""
        return self.__args__

    def __repr__(self) -> str:
        return f"TensorType[{self.dims}]"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, self.__class__):
            return list(self.__args__) == list(other.__args__)
        return False

    def __hash__(self) -> int:
        return hash(tuple(self.__args__))

    @staticmethod
    def __class_getitem__(*args: Any) -> TensorType:
        single = len(args) == 1 and isinstance(args[0], tuple)
        return TensorType(tuple(args[0]) if single else args)


def is_consistent(t1: Any, t2: Any) -> bool:
    """Whether something may be of both types: `Dyn` is consistent with all.

    >>> is_consistent(TensorType((1, Dyn)), TensorType((1, 2)))
    True
    """
    if t1 == t2 or t1 == Dyn or t2 == Dyn:
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(
            map(is_consistent, t1.__args__, t2.__args__)
        )
    return False


def is_more_precise(t1: Any, t2: Any) -> bool:
    """Whether the first type says at least what the second says.

    >>> is_more_precise(TensorType((1, 2)), TensorType((1, Dyn)))
    True
    """
    if t1 == t2 or isinstance(t2, _DynType):
        return True
    if isinstance(t1, TensorType) and isinstance(t2, TensorType):
        return len(t1.__args__) == len(t2.__args__) and all(
            map(is_more_precise, t1.__args__, t2.__args__)
        )
    return False
