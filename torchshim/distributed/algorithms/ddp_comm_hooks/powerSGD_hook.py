"""Gradients reduced as products of small matrices: not supported."""

from torchshim._errors import unsupported
from torchshim.distributed.algorithms.ddp_comm_hooks import REASON

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_PLACE = "distributed.algorithms.ddp_comm_hooks.powerSGD_hook"
PowerSGDState = unsupported(f"{_PLACE}.PowerSGDState", REASON)
powerSGD_hook = unsupported(f"{_PLACE}.powerSGD_hook", REASON)
batched_powerSGD_hook = unsupported(f"{_PLACE}.batched_powerSGD_hook", REASON)
