"""`torch.cpu.amp.autocast`, the older name of `torch.autocast("cpu")`."""

from __future__ import annotations

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._functions._arguments import warn
from torchshim.amp import autocast_mode

__all__ = ["autocast"]


class autocast(autocast_mode.autocast):
    """Deprecated: `torch.amp.autocast("cpu", ...)`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: DType = dtypes.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use "
            "`torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
        )
        super().__init__(
            "cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled
        )
