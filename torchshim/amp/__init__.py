"""Automatic mixed precision.

https://docs.pytorch.org/docs/2.13/amp.html
"""

from torchshim.amp import autocast_mode, grad_scaler
from torchshim.amp.autocast_mode import _enter_autocast as _enter_autocast
from torchshim.amp.autocast_mode import _exit_autocast as _exit_autocast
from torchshim.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from torchshim.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
    "is_autocast_available",
]
