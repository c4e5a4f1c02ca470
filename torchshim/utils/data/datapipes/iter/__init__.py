"""Pipes over streams of samples."""

from torchshim._lazy import submodules as _submodules
from torchshim.utils.data.datapipes.iter.callable import (
    CollatorIterDataPipe as Collator,
)
from torchshim.utils.data.datapipes.iter.callable import FilterIterDataPipe as Filter
from torchshim.utils.data.datapipes.iter.callable import MapperIterDataPipe as Mapper
from torchshim.utils.data.datapipes.iter.combinatorics import (
    SamplerIterDataPipe as Sampler,
)
from torchshim.utils.data.datapipes.iter.combinatorics import (
    ShufflerIterDataPipe as Shuffler,
)
from torchshim.utils.data.datapipes.iter.combining import (
    ConcaterIterDataPipe as Concater,
)
from torchshim.utils.data.datapipes.iter.combining import (
    DemultiplexerIterDataPipe as Demultiplexer,
)
from torchshim.utils.data.datapipes.iter.combining import ForkerIterDataPipe as Forker
from torchshim.utils.data.datapipes.iter.combining import (
    MultiplexerIterDataPipe as Multiplexer,
)
from torchshim.utils.data.datapipes.iter.combining import ZipperIterDataPipe as Zipper
from torchshim.utils.data.datapipes.iter.grouping import BatcherIterDataPipe as Batcher
from torchshim.utils.data.datapipes.iter.grouping import GrouperIterDataPipe as Grouper
from torchshim.utils.data.datapipes.iter.grouping import (
    UnBatcherIterDataPipe as UnBatcher,
)
from torchshim.utils.data.datapipes.iter.routeddecoder import (
    RoutedDecoderIterDataPipe as RoutedDecoder,
)
from torchshim.utils.data.datapipes.iter.sharding import (
    ShardingFilterIterDataPipe as ShardingFilter,
)
from torchshim.utils.data.datapipes.iter.sources import (
    FileListerIterDataPipe as FileLister,
)
from torchshim.utils.data.datapipes.iter.sources import (
    FileOpenerIterDataPipe as FileOpener,
)
from torchshim.utils.data.datapipes.iter.sources import (
    IterableWrapperIterDataPipe as IterableWrapper,
)
from torchshim.utils.data.datapipes.iter.sources import (
    StreamReaderIterDataPipe as StreamReader,
)

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "RoutedDecoder",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]

_SUBMODULES = "filelister fileopener selecting streamreader utils"
__getattr__ = _submodules(__name__, *_SUBMODULES.split())
