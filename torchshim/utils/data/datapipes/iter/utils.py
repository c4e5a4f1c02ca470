"""IterableWrapperIterDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.iter.sources import IterableWrapperIterDataPipe

__all__ = ["IterableWrapperIterDataPipe"]
