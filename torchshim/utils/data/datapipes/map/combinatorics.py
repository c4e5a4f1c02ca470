"""ShufflerIterDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.map.steps import ShufflerIterDataPipe

__all__ = ["ShufflerIterDataPipe"]
