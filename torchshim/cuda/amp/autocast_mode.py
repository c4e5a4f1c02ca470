"""`torch.cuda.amp.autocast`, the older name of `torch.autocast("cuda")`."""

from __future__ import annotations

from typing import Any

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._functions._arguments import warn
from torchshim.amp import autocast_mode

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(autocast_mode.autocast):
    """Deprecated: `torch.amp.autocast("cuda", ...)`."""

    def __init__(
        self,
        enabled: bool = True,
        dtype: DType = dtypes.float16,
        cache_enabled: bool = True,
    ) -> None:
        warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use "
            "`torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
        )
        super().__init__(
            "cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled
        )


def _say(name: str) -> None:
    warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use "
        f"`torch.amp.{name}(args..., device_type='cuda')` instead.",
        FutureWarning,
    )


def custom_fwd(fwd: Any = None, *, cast_inputs: DType | None = None) -> Any:
    """Deprecated: `torch.amp.custom_fwd(..., device_type="cuda")`."""
    _say("custom_fwd")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Deprecated: `torch.amp.custom_bwd(..., device_type="cuda")`."""
    _say("custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")
