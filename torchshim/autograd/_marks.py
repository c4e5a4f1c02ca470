"""What the forward of a custom function marked, and what it may not mark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from torchshim._core.record import local
from torchshim._core.storage import TensorBase, set_version, version_of
from torchshim._core.views import differentiable
from torchshim._errors import triggered
from torchshim._functions.backward import warn_once

_DIRTY_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your "
    "Function cannot return more than one Tensor. This is not supported by the current "
    "autograd engine. You should either make sure the input is not a view (using "
    ".clone() for example) or make your Function only return one Tensor (potentially "
    "splitting it into two Functions: one doing the inplace that returns a single "
    "Tensor and a second one that does the other operations). You can ask on the forum "
    "https://discuss.pytorch.org/ if you need help to do this change."
)
_ONLY_VARIABLES = "mark_dirty can only accept variables, but argument "
_ONLY_TENSORS = "mark_non_differentiable only accepts variable arguments, but got "


def ids(marked: Iterable[Any] | None) -> AbstractSet[int]:
    """Which objects a forward marked; seldom any."""
    return frozenset() if marked is None else {*map(id, marked)}


def check_marked(
    ctx: Any, recorded: bool, inputs: set[int], outputs: Sequence[Any]
) -> None:
    """Raises where the forward marked what it may not mark."""
    for out in ctx.non_differentiable or ():
        if not isinstance(out, TensorBase):
            raise RuntimeError(_ONLY_TENSORS)
    if ctx.dirty_tensors:
        # The mark itself is a write that versions count.
        for tensor in ctx.dirty_tensors:
            if not isinstance(tensor, TensorBase):
                raise RuntimeError(_ONLY_VARIABLES)
            set_version(tensor, version_of(tensor) + 1)
        _check_dirty(ctx, recorded, inputs, outputs)


def _check_dirty(
    ctx: Any, recorded: bool, inputs: set[int], outputs: Sequence[Any]
) -> None:
    """Raises where a tensor may not be marked as written to, output by output."""
    dirty, constant = ids(ctx.dirty_tensors), ids(ctx.non_differentiable)
    for out in outputs if recorded else ():
        if (
            id(out) not in dirty
            or id(out) in constant
            or not differentiable(out._tmeta)
        ):
            continue
        if id(out) not in inputs:
            text = (
                "ctx.mark_dirty() received a tensor that was not an input. Only input "
                "Tensors that have been mutated should be passed to ctx.mark_dirty()."
            )
            warn_once(triggered(text, "torch/csrc/autograd/custom_function.cpp:320"))
        elif out._tmeta.requires_grad and out._tmeta.leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place "
                "operation."
            )
        elif out._view_of is not None:
            if len(outputs) > 1:
                raise RuntimeError(_DIRTY_VIEW)
            local.rec.check_history(out, ())
    if not dirty <= {*map(id, outputs)}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not "
            "returned as output. The inputs that are modified inplace must all be "
            "outputs of the Function."
        )


def check_saved(
    ctx: Any, recorded: bool, inputs: set[int], outputs: Sequence[Any]
) -> None:
    """Raises where `setup_context` saved an input that the forward gave back."""
    saved = {*map(id, (*(ctx.to_save or ()), *(ctx.saved_for_forward or ())))}
    if not saved:
        return
    dirty, constant = ids(ctx.dirty_tensors), ids(ctx.non_differentiable)
    for out in outputs:
        if not isinstance(out, TensorBase) or id(out) not in saved & inputs - dirty:
            continue
        if (recorded and id(out) not in constant) or not out._tmeta.requires_grad:
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for "
                "backward. This is not supported if you override setup_context. You "
                "should return and save a view of the input instead, e.g. with "
                "x.view_as(x) or setup ctx inside the forward function itself."
            )
