"""Layers of floating point that say how their weights would be quantized."""

from torchshim.ao.nn.quantized.reference import modules as modules
from torchshim.ao.nn.quantized.reference.modules import *  # noqa: F403
from torchshim.ao.nn.quantized.reference.modules import __all__ as __all__
