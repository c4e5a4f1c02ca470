"""Layers whose parts can be observed and quantized."""

from torchshim.ao.nn.quantizable import modules as modules
from torchshim.ao.nn.quantizable.modules import *  # noqa: F403
from torchshim.ao.nn.quantizable.modules import __all__ as __all__
