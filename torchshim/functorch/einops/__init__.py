"""`rearrange`, which became `torch.func.rearrange`."""

from torchshim.func import rearrange

__all__ = ["rearrange"]
