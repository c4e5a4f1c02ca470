"""FilterIterDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.iter.callable import FilterIterDataPipe

__all__ = ["FilterIterDataPipe"]
