"""FileOpenerIterDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.iter.sources import FileOpenerIterDataPipe

__all__ = ["FileOpenerIterDataPipe"]
