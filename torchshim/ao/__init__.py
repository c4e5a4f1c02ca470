"""Smaller and faster models (`torch.ao`): layers of integers, and quantization.

https://docs.pytorch.org/docs/2.13/quantization.html
"""

from torchshim._lazy import submodules as _submodules

__all__ = ["nn", "quantization"]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = _submodules(__name__, *__all__)
