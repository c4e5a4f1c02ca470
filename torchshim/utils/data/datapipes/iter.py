"""Pipes over iterables: not supported."""

from torchshim._errors import unsupported

__all__ = ["IterDataPipe", "IterableWrapper"]

_REASON = "use IterableDataset"
IterDataPipe = unsupported("utils.data.IterDataPipe", _REASON)
IterableWrapper = unsupported("utils.data.datapipes.iter.IterableWrapper", _REASON)
