"""The older names of mixed precision on the CPU: use `torch.amp`."""

from torchshim.cpu.amp import autocast_mode, grad_scaler
from torchshim.cpu.amp.autocast_mode import autocast
from torchshim.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "grad_scaler"]
