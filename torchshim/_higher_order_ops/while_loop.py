"""`torch.while_loop`, where programs also look for it."""

from torchshim._functions.control_flow import while_loop

__all__ = ["while_loop"]
