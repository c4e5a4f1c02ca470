"""Gradients reduced at first, and among some later: not supported."""

from torchshim._errors import unsupported
from torchshim.distributed.algorithms.ddp_comm_hooks import REASON

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

_PLACE = "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook"
PostLocalSGDState = unsupported(f"{_PLACE}.PostLocalSGDState", REASON)
post_localSGD_hook = unsupported(f"{_PLACE}.post_localSGD_hook", REASON)
