"""Nested tensors: compared by their parts, as `j1` has other numbers elsewhere."""

from __future__ import annotations

import re
from typing import Any

from tests.oracle import evaluate


def plain(text: Any) -> str:
    """A text without the numbers of ragged sizes and the addresses of nodes."""
    text = re.sub(r"\bj\d+\b", "j", str(text))
    return re.sub(r" object at 0x[0-9a-f]+", "", text)


def seen(value: Any) -> Any:
    """What a value shows, nested tensors among it by their parts."""
    if isinstance(value, BaseException):
        # What PyTorch names there are its own operators.
        refused = isinstance(value, NotImplementedError)
        return type(value).__name__, "" if refused else plain(value)
    if type(value).__name__ == "SymInt" or type(value).__name__ == "Size":
        return plain(value)
    if isinstance(value, (tuple, list)):
        return tuple(seen(part) for part in value)
    if not getattr(value, "is_nested", False):
        return value
    if str(value.layout) != "torch.jagged":
        parts = [part.detach() for part in value.unbind()]
        return "nested", parts, (value.dtype, value.requires_grad, value.is_leaf)
    return (
        plain(value.detach()),
        (value._values.detach(), value.offsets(), value.lengths()),
        (value._ragged_idx, value.dtype, value.requires_grad, value.is_leaf),
    )


def shown(torch: Any, line: str, **names: Any) -> Any:
    """What a line gives or raises, as `seen`."""
    try:
        return seen(evaluate(torch, line, **names))
    except Exception as error:
        return seen(error)
