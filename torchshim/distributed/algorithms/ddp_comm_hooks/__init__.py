"""Names of hooks of PyTorch's own, and what registers them: not supported.

https://docs.pytorch.org/docs/2.13/ddp_comm_hooks.html
"""

from torchshim._errors import unsupported

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]

_PLACE = "distributed.algorithms.ddp_comm_hooks"
REASON = "DistributedDataParallel.register_comm_hook takes hooks"
DDPCommHookType = unsupported(f"{_PLACE}.DDPCommHookType", REASON)
register_ddp_comm_hook = unsupported(f"{_PLACE}.register_ddp_comm_hook", REASON)
