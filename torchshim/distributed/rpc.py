"""Calls of functions on other processes: not supported.

https://docs.pytorch.org/docs/2.13/rpc.html
"""

from torchshim._errors import unsupported

__all__ = ["init_rpc", "is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]

_REASON = "processes exchange tensors and objects only"
init_rpc = unsupported("distributed.rpc.init_rpc", _REASON)
remote = unsupported("distributed.rpc.remote", _REASON)
rpc_async = unsupported("distributed.rpc.rpc_async", _REASON)
rpc_sync = unsupported("distributed.rpc.rpc_sync", _REASON)
shutdown = unsupported("distributed.rpc.shutdown", _REASON)


def is_available() -> bool:
    """False, as of a PyTorch that was built without it."""
    return False
