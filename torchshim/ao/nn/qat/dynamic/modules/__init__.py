"""Layers that train for quantization with scales found as they run."""

from torchshim.ao.nn.qat.dynamic.modules.linear import Linear

__all__ = ["Linear"]
