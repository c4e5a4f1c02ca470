"""Backward over several processes: not supported, as RPC is not.

https://docs.pytorch.org/docs/2.13/rpc.html#distributed-autograd-framework
"""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "DistAutogradContext backward context get_gradients",
        "RPC is not implemented",
    )
)


def is_available() -> bool:
    """False, as of a PyTorch that was built without it."""
    return False
