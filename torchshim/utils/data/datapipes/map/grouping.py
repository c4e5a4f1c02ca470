"""BatcherMapDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.map.steps import BatcherMapDataPipe

__all__ = ["BatcherMapDataPipe"]
