"""`torch.testing._internal.common_mkldnn`: there is no oneDNN to choose from."""

from __future__ import annotations

from typing import Any

from torchshim.testing._internal._conditions import never_skipped


def bf32_is_not_fp32() -> bool:
    """Whether float32 may be computed in bfloat16."""
    return False


tf32_is_not_fp32 = bf32_is_not_fp32


def reduced_f32_on_and_off(
    bf32_precision: float = 1e-2, tf32_precision: float = 1e-5
) -> Any:
    """A test that is run as it is: float32 is computed in one way."""
    return never_skipped
