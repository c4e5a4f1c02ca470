"""PyTorch's dispatcher in Python, which is not here."""

from torchshim._lazy import submodules as _submodules

__getattr__ = _submodules(__name__, "python")
