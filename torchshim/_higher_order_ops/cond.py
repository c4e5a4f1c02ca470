"""`torch.cond`, where programs also look for it."""

from torchshim._functions.control_flow import cond

__all__ = ["cond"]
