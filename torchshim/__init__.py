"""PyTorch's API on JAX, with no torch installed: `import torchshim as torch`."""

from torchshim._alias import install, uninstall
from torchshim._version import torch_version as __version__

__all__ = ["__version__", "install", "uninstall"]
