"""Pipes that put samples together, or take batches apart."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import DataChunk, IterDataPipe
from torchshim.utils.data.datapipes.utils.common import check_picklable, length_of

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Batches of `batch_size` samples."""

    def __init__(
        self,
        datapipe: Any,
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: Any = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for sample in self.datapipe:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        (length,) = length_of(self, self.datapipe)
        return batch_count(length, self.batch_size, self.drop_last)


def batch_count(length: int, size: int, drop_last: bool) -> int:
    """How many batches so many samples make."""
    return length // size if drop_last else -(-length // size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The samples in batches, in batches of batches, … (-1: however deep)."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator[Any]:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if isinstance(element, list) and unbatch_level:
            for item in element:
                yield from self._dive(item, max(unbatch_level - 1, -1))
        elif unbatch_level <= 0:
            yield element
        else:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Samples with the same key together.

    A group is given when it has `group_size` samples, when the buffer is full (the
    largest one), or at the end. RuntimeError where that one has fewer than
    `guaranteed_group_size`, unless such are dropped.
    """

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        check_picklable(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.buffer_elements: defaultdict[Any, list[Any]] = defaultdict(list)
        self.curr_buffer_size = 0
        self.group_size = group_size
        self.guaranteed_group_size = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError(
                    "guaranteed_group_size must be > 0 and <= group_size and "
                    "group_size must be set"
                )
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk

    def _take_largest(self) -> list[Any] | None:
        held = self.buffer_elements
        key = max(held, key=lambda k: len(held[k]))
        least = self.guaranteed_group_size
        enough = least is None or len(held[key]) >= least
        if not enough and not self.drop_remaining:
            raise RuntimeError("Failed to group items", str(held[key]))
        taken = held.pop(key)
        self.curr_buffer_size -= len(taken)
        return taken if enough else None

    def _group(self, key: Any, samples: list[Any]) -> Any:
        group = self.wrapper_class(samples)
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator[Any]:
        held = self.buffer_elements
        for sample in self.datapipe:
            key = self.group_key_fn(sample)
            held[key].append(sample)
            self.curr_buffer_size += 1
            if self.group_size is not None and len(held[key]) == self.group_size:
                samples = held.pop(key)
                yield self._group(key, samples)
                self.curr_buffer_size -= len(samples)
            if self.curr_buffer_size == self.max_buffer_size:
                largest = self._take_largest()
                if largest is not None:
                    yield self._group(key, largest)
        for key in tuple(held):
            samples = held.pop(key)
            self.curr_buffer_size -= len(samples)
            yield self._group(key, samples)

    def reset(self) -> None:
        """Forgets the groups that are not complete."""
        self.curr_buffer_size = 0
        self.buffer_elements = defaultdict(list)
