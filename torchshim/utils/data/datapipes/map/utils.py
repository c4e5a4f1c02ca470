"""SequenceWrapperMapDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.map.steps import SequenceWrapperMapDataPipe

__all__ = ["SequenceWrapperMapDataPipe"]
