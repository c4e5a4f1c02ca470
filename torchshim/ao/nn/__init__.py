"""Layers for and of quantization: fused, observed in training, of integers."""

from torchshim._lazy import submodules as _submodules

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = _submodules(__name__, *__all__)
