"""What compilers for `torch.compile` are written with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchshim._core.device import device


def device_from_inputs(example_inputs: Iterable[Any]) -> Any:
    """The device of the first input that has one; else the CPU."""
    for each in example_inputs:
        if hasattr(each, "device"):
            return each.device
    return device("cpu")
