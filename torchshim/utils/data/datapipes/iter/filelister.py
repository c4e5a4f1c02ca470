"""FileListerIterDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.iter.sources import FileListerIterDataPipe

__all__ = ["FileListerIterDataPipe"]
