"""Types of several results: `torch.return_types.max` and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.op import Op

_RESULT_TYPES: dict[str, type] = {}


def result_type(op: Op, suffix: str = "") -> type:
    """`torch.return_types.max` and the like: a named tuple that prints as PyTorch's."""
    name = op.parsed + suffix
    found = _RESULT_TYPES.get(name)
    if found is None:
        found = _RESULT_TYPES[name] = structseq(name, op.named_result or ())
    return found


_MISSING: Any = object()
_NONE: dict[str, Any] = {}


def _of_length(name: str, sequence: Any, given: Any, length: int) -> tuple[Any, ...]:
    if sequence is _MISSING:
        raise TypeError("structseq() missing required argument 'sequence' (pos 1)")
    try:
        found = tuple(sequence)
    except TypeError:
        raise TypeError("constructor requires a sequence") from None
    if not isinstance(given, dict):
        raise TypeError(
            f"torch.return_types.{name}() takes a dict as second arg, if any"
        )
    if len(found) != length:
        raise TypeError(
            f"torch.return_types.{name}() takes a {length}-sequence ({len(found)}-"
            "sequence given)"
        )
    return found


def _read_only(self: Any, value: Any) -> None:
    raise AttributeError("readonly attribute")


def structseq(name: str, fields: Sequence[str]) -> type:
    """A tuple class with named fields and PyTorch's text."""

    def text(self: Any) -> str:
        inner = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{inner})"

    def structseq(cls: type, sequence: Any = _MISSING, dict: Any = _NONE) -> Any:
        return tuple.__new__(cls, _of_length(name, sequence, dict, len(fields)))

    def missing(self: Any, attribute: str) -> Any:
        raise AttributeError(
            f"'torch.return_types.{name}' object has no attribute '{attribute}'"
        )

    members: dict[str, Any] = {
        f: property(lambda self, i=i: self[i], _read_only) for i, f in enumerate(fields)
    }
    members["__slots__"] = ()
    members["__new__"] = structseq
    members["__getattr__"] = missing
    members["__repr__"] = text
    members["__match_args__"] = tuple(fields)
    members["__module__"] = "torch.return_types"
    members["__reduce__"] = lambda self: (type(self), (tuple(self), {}))
    members["n_fields"] = members["n_sequence_fields"] = len(fields)
    members["n_unnamed_fields"] = 0
    return type(name, (tuple,), members)
