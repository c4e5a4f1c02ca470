"""Fused layers with weights of integers, whose inputs are rounded as they come."""

from torchshim.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu import LinearReLU

__all__ = ["LinearReLU"]
