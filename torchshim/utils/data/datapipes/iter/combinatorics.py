"""Pipes that choose the order of samples."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.datapipes.utils.common import length_of, no_length
from torchshim.utils.data.sampler import SequentialSampler, draw_seed

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe[Any]):
    """What a sampler chooses: indices into a pipe that has a length."""

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: Any = None,
    ) -> None:
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError(
                "Sampler class requires input datapipe implemented `__len__`"
            )
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler_kwargs["data_source"] = datapipe
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        if not hasattr(type(self.sampler), "__len__"):
            no_length(self)
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """Samples in random order, out of a buffer of `buffer_size`."""

    def __init__(
        self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        super().__init__()
        self._buffer: list[Any] = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        if unbatch_level:
            datapipe = datapipe.unbatch(unbatch_level=unbatch_level)
        self.datapipe = datapipe
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

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
            yield from self.datapipe
            return
        for sample in self.datapipe:
            if len(self._buffer) < self.buffer_size:
                self._buffer.append(sample)
                continue
            at = self._rng.randint(0, len(self._buffer) - 1)
            chosen, self._buffer[at] = self._buffer[at], sample
            yield chosen
        while self._buffer:
            yield self._buffer.pop(self._rng.randint(0, len(self._buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]

    def reset(self) -> None:
        """Empties the buffer and seeds the order."""
        self._buffer = []
        if self._enabled:
            self._rng.seed(draw_seed() if self._seed is None else self._seed)
            self._seed = None
