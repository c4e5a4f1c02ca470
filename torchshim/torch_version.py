"""The version, which compares as versions do: `torch.torch_version`."""

from torchshim._version import TorchVersion, torch_version

__all__ = ["TorchVersion"]
__version__ = torch_version
