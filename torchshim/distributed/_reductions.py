"""The operations that make one tensor of several, and what they do to arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from torchshim._core.dtypes import dtype

__all__ = [
    "RedOpType",
    "ReduceOp",
    "check_operation",
    "kind_of",
    "reduced",
    "supports_complex",
]


class RedOpType(Enum):
    """The operations by which the tensors of the members become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"

    def __int__(self) -> int:
        return self.value

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, int) and self.value == other)

    def __hash__(self) -> int:
        return self.value


class _ReduceOpMeta(type):
    """Operations are instances of `ReduceOp`, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, RedOpType) or super().__instancecheck__(instance)


class ReduceOp(metaclass=_ReduceOpMeta):
    """How the tensors of the members become one."""

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = RedOpType

    def __init__(self, op: RedOpType) -> None:
        if type(op) is not RedOpType:
            raise TypeError(
                "__init__(): incompatible constructor arguments. The following "
                "argument types are supported:\n    1. torch._C._distributed_c10d."
                "ReduceOp(arg0: c10d::ReduceOp::RedOpType)\n\nInvoked with: "
                f"{op!r}"
            )
        self.op = op

    def __eq__(self, other: object) -> bool:
        return self.op == (other.op if type(other) is ReduceOp else other)

    def __hash__(self) -> int:
        return self.op.value


_BITWISE = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)
_FUNCTIONS: dict[RedOpType, Callable[..., Any]] = {
    RedOpType.SUM: np.add,
    RedOpType.AVG: np.add,
    RedOpType.PRODUCT: np.multiply,
    RedOpType.MIN: np.minimum,
    RedOpType.MAX: np.maximum,
    RedOpType.BAND: np.bitwise_and,
    RedOpType.BOR: np.bitwise_or,
    RedOpType.BXOR: np.bitwise_xor,
}


def kind_of(op: Any) -> RedOpType:
    """The operation that an argument names. TypeError for one that Gloo has not."""
    kind = op.op if type(op) is ReduceOp else op
    if not isinstance(kind, RedOpType) or kind is RedOpType.PREMUL_SUM:
        raise TypeError(
            "(): incompatible function arguments: a torch.distributed.ReduceOp that "
            f"Gloo knows is needed, not {op!r}"
        )
    return kind


_OF_COMPLEX = (RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM)


def supports_complex(reduceOp: Any) -> bool:
    """Whether an operation is one of complex tensors, too."""
    return (reduceOp.op if type(reduceOp) is ReduceOp else reduceOp) in _OF_COMPLEX


def check_operation(kind: RedOpType, of: dtype, function: str) -> None:
    """RuntimeError where a dtype has no such operation, ValueError if it is complex."""
    if of.is_complex and not supports_complex(kind):
        raise ValueError(f"{function} does not support {kind} on complex tensors")
    if kind in _BITWISE and (of.is_floating_point or of.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")


def reduced(kind: RedOpType, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One array of several, taken in their order; the mean for AVG.

    Booleans count as the bytes that they are: a sum of two is their "or", a sum of 256
    is False.
    """
    function = _FUNCTIONS[kind]
    first = arrays[0]
    total = first.view(np.uint8).copy() if first.dtype == bool else first.copy()
    for array in arrays[1:]:
        function(total, array.view(total.dtype), out=total)
    if kind is RedOpType.AVG:
        total /= len(arrays)
    return total != 0 if first.dtype == bool else total
