"""`torch.testing._internal.common_methods_invocations`."""

from __future__ import annotations

from typing import Any

import torchshim as torch


def mask_not_all_zeros(shape: Any) -> Any:
    """Random signs as 0 and 1, at least one of them 1."""
    if any(n == 0 for n in shape):
        raise AssertionError("shape must have non-zero dimensions")
    while True:
        mask = torch.randn(shape).gt(0)
        if mask.sum() > 0:
            return mask
