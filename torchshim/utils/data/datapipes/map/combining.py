"""Pipes made of several under the name of PyTorch's module."""

from torchshim.utils.data.datapipes.map.steps import (
    ConcaterMapDataPipe,
    ZipperMapDataPipe,
)

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]
