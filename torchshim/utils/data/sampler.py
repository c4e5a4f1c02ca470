"""Samplers: in which order a data set is read.

Random numbers are drawn exactly as PyTorch draws them, so that the same seed gives
the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import chain, islice, repeat
from typing import Any, Generic, TypeVar

import torchshim
from torchshim._tensor import Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)


def _is_positive_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class Sampler(Generic[_T_co]):
    """The base of samplers: a subclass defines ``__iter__``, mostly ``__len__`` too.

    Follows ``torch.utils.data.Sampler``.
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The indices in order.

    >>> from torchshim.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices shuffled or, with `replacement`, drawn independently.

    `num_samples` may be more than there are. Without a `generator` each pass
    makes one of its own, seeded by the global one. Follows
    ``torch.utils.data.RandomSampler``.

    >>> from torchshim.utils.data import RandomSampler
    >>> sorted(RandomSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                "replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices a pass gives; the data set may have grown since."""
        if self._num_samples is None:
            return len(self.data_source)
        return self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = torchshim.Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            # PyTorch draws 32 at a time.
            whole, rest = divmod(self.num_samples, 32)
            for size in chain(repeat(32, whole), [rest]):
                yield from torchshim.randint(
                    high=n, size=(size,), dtype=torchshim.int64, generator=generator
                ).tolist()
            return
        whole, rest = divmod(self.num_samples, n)
        for size in chain(repeat(n, whole), [rest]):
            # One more permutation is drawn even where nothing of it is used.
            order = torchshim.randperm(n, generator=generator).tolist()
            yield from order[:size]

    def __len__(self) -> int:
        return self.num_samples


def draw_seed(generator: Any = None) -> int:
    """A seed drawn from `generator`, or from the global one."""
    seed = torchshim.empty((), dtype=torchshim.int64).random_(generator=generator)
    return int(seed.item())


class SubsetRandomSampler(Sampler[int]):
    """The given indices, shuffled.

    >>> from torchshim.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([5, 7]))
    [5, 7]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = torchshim.randperm(len(self.indices), generator=self.generator)
        for i in order.tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with probabilities proportional to `weights`.

    The weights need not sum to 1. Follows
    ``torch.utils.data.WeightedRandomSampler``.

    >>> from torchshim.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Any = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                "replacement should be a boolean value, but got "
                f"replacement={replacement}"
            )
        as_tensor = torchshim.as_tensor(weights, dtype=torchshim.double)
        if len(as_tensor.shape) != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(as_tensor.shape)}"
            )
        self.weights = as_tensor
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = torchshim.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`.

    With `drop_last` a shorter last list is left out. Follows
    ``torch.utils.data.BatchSampler``.

    >>> from torchshim.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not _is_positive_int(batch_size):
            raise ValueError(
                "batch_size should be a positive integer value, but got "
                f"batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"drop_last should be a boolean value, but got drop_last={drop_last}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        size = len(self.sampler)  # type: ignore[arg-type]
        if self.drop_last:
            return size // self.batch_size
        return -(-size // self.batch_size)
