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


def structseq(name: str, fields: Sequence[str]) -> type:
    """A tuple class with named fields and PyTorch's text."""

    def text(self: Any) -> str:
        inner = ",\n".join(f"{f}={v!r}" for f, v in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{inner})"

    members: dict[str, Any] = {
        f: property(lambda self, i=i: self[i]) for i, f in enumerate(fields)
    }
    members["__slots__"] = ()
    members["__new__"] = lambda cls, *items: tuple.__new__(
        cls, items[0] if len(items) == 1 and len(fields) > 1 else items
    )
    members["__repr__"] = text
    members["__match_args__"] = tuple(fields)
    members["__module__"] = "torch.return_types"
    members["__reduce__"] = lambda self: (type(self), (tuple(self),))
    members["n_fields"] = members["n_sequence_fields"] = len(fields)
    members["n_unnamed_fields"] = 0
    return type(name, (tuple,), members)
