"""The older names of mixed precision on GPUs: use `torch.amp`."""

from torchshim.cuda.amp import autocast_mode, common, grad_scaler
from torchshim.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from torchshim.cuda.amp.common import amp_definitely_not_available
from torchshim.cuda.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "autocast_mode",
    "common",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
]
