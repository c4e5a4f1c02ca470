"""PyTorch's API on JAX, with no torch installed: `import torchshim as torch`."""

from torchshim._version import __version__

__all__ = ["__version__"]
