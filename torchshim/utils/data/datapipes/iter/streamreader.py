"""StreamReaderIterDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.iter.sources import StreamReaderIterDataPipe

__all__ = ["StreamReaderIterDataPipe"]
