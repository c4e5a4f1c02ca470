"""Compares shapes of results that rules tell with those that a trace gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._core.avals import infer_avals
from torchshim._core.call import Call


def compare(change: Callable[[Any, str, Any], None]) -> list[str]:
    """Has each call traced beside its rule; the list comes to hold the differences.

    `change` is `setattr`, or a fixture's that takes it back.
    """
    found: list[str] = []
    infer = Call.infer

    def infer_twice(call: Call, avals: Any) -> Any:
        told = infer(call, avals)
        shape = call._shape([tuple(s) for s, _ in avals])
        if shape is not None:  # also of the first of a kind
            told = tuple((shape, dtype) for _, dtype in told)
        try:
            traced: Any = infer_avals(call, avals)
        except Exception as error:
            traced = error
        if told != traced:
            found.append(f"{call!r} of {avals}: {told}, traced: {traced!r}")
        return infer(call, avals)

    change(Call, "infer", infer_twice)
    return found
