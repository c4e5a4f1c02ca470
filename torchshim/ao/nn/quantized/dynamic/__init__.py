"""Layers with weights of integers, whose inputs are rounded as they come."""

from torchshim.ao.nn.quantized.dynamic import modules as modules
from torchshim.ao.nn.quantized.dynamic.modules import *  # noqa: F403
from torchshim.ao.nn.quantized.dynamic.modules import __all__ as __all__
