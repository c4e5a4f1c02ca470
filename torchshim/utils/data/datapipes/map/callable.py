"""MapperMapDataPipe under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.map.steps import MapperMapDataPipe

__all__ = ["MapperMapDataPipe"]
