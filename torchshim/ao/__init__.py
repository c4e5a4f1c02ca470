"""Smaller and faster models (`torch.ao`): the names of quantization, which is refused.

https://docs.pytorch.org/docs/2.13/quantization.html
"""

from torchshim.ao import quantization

__all__ = ["quantization"]
