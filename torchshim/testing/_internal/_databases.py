"""What the databases of operators, modules and optimizers have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchshim as torch


class DecorateInfo:
    """Decorators for the tests that all conditions given fit."""

    __slots__ = (
        "active_if",
        "cls_name",
        "decorators",
        "device_type",
        "dtypes",
        "test_name",
    )

    def __init__(
        self,
        decorators: Any,
        cls_name: str | None = None,
        test_name: str | None = None,
        *,
        device_type: str | None = None,
        dtypes: Any = None,
        active_if: bool | Callable[[Any], bool] = True,
    ) -> None:
        several = isinstance(decorators, Sequence)
        self.decorators = list(decorators) if several else [decorators]
        self.cls_name = cls_name
        self.test_name = test_name
        self.device_type = device_type
        self.dtypes = dtypes
        self.active_if = active_if
        for dtype in dtypes or ():
            if not isinstance(dtype, torch.dtype):
                raise AssertionError(f"Expected torch.dtype, got {type(dtype)}")

    def is_active(
        self,
        cls_name: str,
        test_name: str,
        device_type: str,
        dtype: Any,
        param_kwargs: Any,
    ) -> bool:
        """Whether a test is decorated."""
        active = self.active_if
        given = (cls_name, test_name, device_type)
        wanted = (self.cls_name, self.test_name, self.device_type)
        pairs = zip(wanted, given, strict=True)
        return (
            all(want in (None, got) for want, got in pairs)
            and (self.dtypes is None or dtype in self.dtypes)
            and bool(active(param_kwargs) if callable(active) else active)
        )


def decorators_for(found: Sequence[Any], *place: Any) -> list[Any]:
    """The decorators among these that are for a test."""
    chosen: list[Any] = []
    for each in found:
        if not isinstance(each, DecorateInfo):
            chosen.append(each)
        elif each.is_active(*place):
            chosen += each.decorators
    return chosen


def device_type(device: Any) -> str:
    """The kind of a device, given as a text or as a device."""
    return torch.device(device).type
