"""Layers that train for quantization with scales found as they run."""

from torchshim.ao.nn.qat.dynamic import modules as modules
from torchshim.ao.nn.qat.dynamic.modules import Linear

__all__ = ["Linear"]
