"""Fused layers with weights of integers, whose inputs are rounded as they come."""

from torchshim.ao.nn.intrinsic.quantized.dynamic import modules as modules
from torchshim.ao.nn.intrinsic.quantized.dynamic.modules import LinearReLU

__all__ = ["LinearReLU"]
