"""Sizes that are no integers: the ragged dimensions of nested tensors.

`j1` stands for the lengths that one tensor of offsets has. Two such sizes are equal
where both stem from the same tensor, whatever its values are.
https://docs.pytorch.org/docs/2.13/nested.html
"""

from __future__ import annotations

import itertools
from typing import Any

_numbers = itertools.count()


class NestedIntNode:
    """What PyTorch's `SymInt` holds: which dimension it is, and times what."""

    __module__ = "torch.nested._internal.nested_int"

    def __init__(self, t_id: int, coeff: int) -> None:
        self.t_id, self.coeff = t_id, coeff

    def nested_int(self) -> int:
        return self.t_id

    def nested_int_coeff(self) -> int:
        return self.coeff

    def is_nested_int(self) -> bool:
        """Whether it is that of a ragged dimension: yes."""
        return True

    def __repr__(self) -> str:
        return str(SymInt(self))


class SymInt:
    """A size that is no integer: a multiple of the lengths of one ragged dimension."""

    __slots__ = ("coefficient", "number")
    __module__ = "torch"

    number: int
    coefficient: int

    def __init__(
        self, number: int | NestedIntNode | None = None, coefficient: int = 1
    ) -> None:
        if isinstance(number, NestedIntNode):
            number, coefficient = number.t_id, number.coeff
        self.number = next(_numbers) if number is None else number
        self.coefficient = coefficient

    @property
    def node(self) -> NestedIntNode:
        return NestedIntNode(self.number, self.coefficient)

    def __repr__(self) -> str:
        times = "" if self.coefficient == 1 else f"{self.coefficient}*"
        return f"{times}j{self.number}"

    __str__ = __repr__

    def __hash__(self) -> int:
        return hash((SymInt, self.number, self.coefficient))

    def __bool__(self) -> bool:
        return True

    def __mul__(self, other: Any) -> SymInt:
        if isinstance(other, SymInt):
            raise ValueError(
                "unsupported: <class 'torch.nested._internal.nested_int.NestedIntNode'>"
            )
        if not isinstance(other, int):
            return NotImplemented
        return SymInt(self.number, self.coefficient * other)

    __rmul__ = __mul__

    def _equals(self, other: Any) -> bool:
        return (
            isinstance(other, SymInt)
            and self.number == other.number
            and self.coefficient == other.coefficient
        )

    def __eq__(self, other: object) -> bool:
        return self._equals(other)

    def __ne__(self, other: object) -> bool:
        return not self._equals(other)

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, SymInt) and self.number == other.number:
            return self.coefficient >= other.coefficient
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __le__(self, other: Any) -> bool:
        if isinstance(other, SymInt):
            return other >= self
        if isinstance(other, int) and other < 2:
            return False
        raise ValueError("ge: relation is indeterminate")

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __reduce__(self) -> Any:
        raise RuntimeError("SymInt cannot be pickled")


def _without(operator: str, name: str) -> None:
    def refused(self: SymInt, *others: Any) -> Any:
        raise AttributeError(f"'NestedIntNode' object has no attribute '{name}'")

    refused.__name__ = operator
    setattr(SymInt, operator, refused)


for _operator, _name in (
    *(("__add__", "add"), ("__radd__", "add"), ("__sub__", "sub"), ("__rsub__", "neg")),
    *(("__floordiv__", "int_floordiv"), ("__rfloordiv__", "int_floordiv")),
    *(("__truediv__", "int_truediv"), ("__mod__", "mod"), ("__neg__", "neg")),
    *(
        ("__pow__", "pow_by_natural"),
        ("__abs__", "abs"),
        ("__int__", "int_"),
        ("__float__", "int_"),
    ),
):
    _without(_operator, _name)


def reserve_first() -> None:
    """Takes the first number, as PyTorch does with its first nested tensor."""
    if not _taken:
        _taken.append(next(_numbers))


_taken: list[int] = []
