"""Layers that compute with integers (`torch.ao.nn.quantized`).

https://docs.pytorch.org/docs/2.13/quantization-support.html#torch-ao-nn-quantized
"""

from torchshim._lazy import submodules as _submodules
from torchshim.ao.nn.quantized import modules as modules
from torchshim.ao.nn.quantized.modules import *  # noqa: F403
from torchshim.ao.nn.quantized.modules import MaxPool2d as MaxPool2d
from torchshim.ao.nn.quantized.modules import __all__ as __all__

__getattr__ = _submodules(__name__, "dynamic", "functional", "reference")
