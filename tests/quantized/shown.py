"""Quantized tensors as what the harness compares."""

from __future__ import annotations

from typing import Any


def shown(value: Any) -> Any:
    """A result with each quantized tensor as its text, its codes and their strides."""
    if isinstance(value, tuple):
        return type(value).__name__, [shown(each) for each in value]
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    if getattr(value, "is_quantized", False):
        return repr(value), value.int_repr(), value.stride()
    return value
