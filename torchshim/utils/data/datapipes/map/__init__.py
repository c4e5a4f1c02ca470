"""Pipes over samples by key."""

from torchshim._lazy import submodules as _submodules
from torchshim.utils.data.datapipes.map.steps import BatcherMapDataPipe as Batcher
from torchshim.utils.data.datapipes.map.steps import ConcaterMapDataPipe as Concater
from torchshim.utils.data.datapipes.map.steps import MapperMapDataPipe as Mapper
from torchshim.utils.data.datapipes.map.steps import (
    SequenceWrapperMapDataPipe as SequenceWrapper,
)
from torchshim.utils.data.datapipes.map.steps import ShufflerIterDataPipe as Shuffler
from torchshim.utils.data.datapipes.map.steps import ZipperMapDataPipe as Zipper

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]

_SUBMODULES = "callable combinatorics combining grouping utils"
__getattr__ = _submodules(__name__, *_SUBMODULES.split())
