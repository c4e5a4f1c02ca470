"""Sparse and nested tensors as inputs and outputs of custom functions.

What is recorded is their values; the user's code sees them, and their gradients, whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchshim._functions.composed import Composed

Patterns = Mapping[int, Any]


def _patterns(tensors: Sequence[Any], places: Sequence[int]) -> dict[int, Any]:
    """The composed ones among tensors, without history, by their places."""
    found: dict[int, Any] = {}
    for at, tensor in zip(places, tensors, strict=True):
        if isinstance(tensor, Composed):
            found[at] = tensor._like(tensor._v.detach())
    return found


def recorded_inputs(
    tensors: Sequence[Any], places: Sequence[int]
) -> tuple[list[Any], Patterns]:
    """What is recorded of a function's inputs, and the patterns of composed ones."""
    values = [t._v if t._composed else t for t in tensors]
    return values, _patterns(tensors, places)


def take_values(outputs: list[Any]) -> Patterns:
    """Puts the values of composed outputs in their place; gives their patterns."""
    found = _patterns(outputs, range(len(outputs)))
    for at in found:
        outputs[at] = outputs[at]._v
    return found


def put_back(values: list[Any], patterns: Patterns) -> None:
    """Makes composed tensors of values: outputs, or gradients of outputs."""
    for at, pattern in patterns.items():
        if values[at] is not None:
            values[at] = pattern._like(values[at])


def at_values(gradients: Sequence[Any], patterns: Patterns) -> tuple[Any, ...]:
    """Gradients of a function's inputs, of composed ones those of their values."""
    return tuple(
        grad if grad is None or at not in patterns else patterns[at]._values_of(grad)
        for at, grad in enumerate(gradients)
    )
