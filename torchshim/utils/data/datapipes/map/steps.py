"""The steps of pipes by key."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from torchshim import _warnings as warnings
from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import (
    DataChunk,
    IterDataPipe,
    MapDataPipe,
)
from torchshim.utils.data.datapipes.iter.grouping import batch_count
from torchshim.utils.data.datapipes.utils.common import check_picklable, length_of
from torchshim.utils.data.sampler import draw_seed


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


class SequenceWrapperMapDataPipe(MapDataPipe[Any]):
    """The items of a sequence or mapping; of a copy, unless that is not wanted."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of "
                    "in-place modification would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """What a function makes of each sample."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any] = default_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        check_picklable(fn)
        self.fn = fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])


def _check_pipes(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """Pipes one behind the other, by numbers from 0 on."""

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> Any:
        before = 0
        for pipe in self.datapipes:
            if index - before < len(pipe):
                return pipe[index - before]
            before += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[Any]):
    """Tuples of the samples that pipes have for a key."""

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> Any:
        samples = []
        for pipe in self.datapipes:
            try:
                samples.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes "
                    f"{pipe}."
                ) from error
        return tuple(samples)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Batches of `batch_size` samples that follow one another."""

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

    def __getitem__(self, index: Any) -> Any:
        batch: list[Any] = []
        try:
            for i in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[i])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        (length,) = length_of(self, self.datapipe)
        return batch_count(length, self.batch_size, self.drop_last)


class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples of a pipe by key, in random order: a stream."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._shuffled_indices: list[Any] = self.indices

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Whether to shuffle at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next pass; without one it is drawn."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            for index in self.indices:
                yield self.datapipe[index]
            return
        while self._shuffled_indices:
            yield self.datapipe[self._shuffled_indices.pop()]

    def reset(self) -> None:
        """Chooses an order."""
        if self._enabled and self._seed is None:
            self._seed = draw_seed()
        self._rng.seed(self._seed)
        self._seed = None
        self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
