"""Compares shapes of results that rules tell with those that a trace gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._core.batching import seen_by
from torchshim._core.call import Call, infer_avals
from torchshim._core.infer import Inference

Change = Callable[[Any, str, Any], None]


def compare(change: Change) -> list[str]:
    """Changes what infers shapes; gives the differences, as far as there are any.

    Where there is no difference yet the list is empty; `change` is `setattr`, or a
    fixture's that takes it back.
    """
    found: list[str] = []
    infer, shown = Call.infer, Inference._viewed

    def compared(call: Any, avals: Any, told: Any) -> None:
        try:
            traced: Any = infer_avals(call, avals)
        except Exception as error:
            traced = error
        if told != traced:
            found.append(f"{call!r} of {avals}: {told}, traced: {traced!r}")

    def infer_twice(call: Call, avals: Any) -> Any:
        given = infer(call, avals)
        shape = call._shape([tuple(s) for s, _ in avals])
        told = given if shape is None else tuple((shape, dtype) for _, dtype in given)
        compared(call, avals, told)
        return given

    def show_twice(call: Call, metas: Any) -> Any:
        views = shown(call, metas)
        if views is not None and not call.op.view.retyped and not call.levels:
            avals = tuple((seen_by(call, m), m.dtype) for m in metas)
            told = tuple((tuple(shape), metas[0].dtype) for shape, _, _ in views)
            compared(call, avals, told)
        return views

    change(Call, "infer", infer_twice)
    change(Inference, "_viewed", staticmethod(show_twice))
    return found
