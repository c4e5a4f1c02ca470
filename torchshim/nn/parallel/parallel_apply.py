"""Calls of several modules, each on a device of its own: here one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._device_index import _get_device_index as _get_device_index
from torchshim._tensor import Tensor
from torchshim.nn.modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor that stands in an argument, if any."""
    if isinstance(obj, Tensor):
        return obj
    held = obj.items() if isinstance(obj, dict) else obj
    if isinstance(obj, (list, tuple, dict)):
        for each in held:
            found = get_a_var(each)
            if found is not None:
                return found
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """What each module gives for its input.

    AssertionError where the numbers of modules and arguments differ, RuntimeError where
    there is no accelerator. Follows ``torch.nn.parallel.parallel_apply``.
    """
    for name, given in (
        ("inputs", inputs),
        ("kwargs_tup", kwargs_tup),
        ("devices", devices),
    ):
        if given is not None and len(modules) != len(given):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of "
                f"{name} {len(given)}"
            )
    for each in devices or ():
        if each is not None and not isinstance(each, int):
            kind = torchshim.device(each)
            if kind.type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {kind}")
    if not torchshim.accelerator.is_available():
        if modules:
            raise RuntimeError(
                "Cannot access accelerator device when none is available."
            )
        raise AssertionError("No available accelerator found.")
    results = []
    for i, (module, given) in enumerate(zip(modules, inputs, strict=True)):
        args = given if isinstance(given, (list, tuple)) else (given,)
        named = {} if kwargs_tup is None else kwargs_tup[i]
        results.append(module(*args, **named))
    return results
