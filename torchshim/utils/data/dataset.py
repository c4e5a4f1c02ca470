"""Data sets: what a `DataLoader` reads from."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import torchshim
from torchshim import _warnings as warnings
from torchshim._tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """Samples by key: a subclass defines ``__getitem__``, and mostly ``__len__``.

    ``a + b`` is a `ConcatDataset`. Follows ``torch.utils.data.Dataset``.

    >>> from torchshim.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 3
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> (Squares() + Squares())[4]
    1
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[_T_co]) -> ConcatDataset[_T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """Samples in a stream: a subclass defines ``__iter__``.

    ``a + b`` is a `ChainDataset`. Follows ``torch.utils.data.IterableDataset``.

    >>> from torchshim.utils.data import IterableDataset
    >>> class Stream(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(3))
    >>> list(Stream() + Stream())
    [0, 1, 2, 0, 1, 2]
    """

    def __add__(self, other: Dataset[_T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The rows of tensors that have the same length; a sample is a tuple of rows.

    AssertionError where the lengths differ. Follows
    ``torch.utils.data.TensorDataset``.

    >>> import torchshim as torch
    >>> from torchshim.utils.data import TensorDataset
    >>> TensorDataset(torch.tensor([[1, 2], [3, 4]]), torch.tensor([0, 1]))[1]
    (tensor([3, 4]), tensor(1))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Several data sets side by side.

    A sample is a tuple of theirs, or a dict where they were given by keyword.
    ValueError where the lengths differ. Follows ``torch.utils.data.StackDataset``.

    >>> from torchshim.utils.data import StackDataset
    >>> StackDataset(image=["a", "b"], label=[0, 1])[1]
    {'image': 'b', 'label': 1}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via "
                "``kwargs``) like input/output, but both types are given."
            )
        self.datasets = args or kwargs
        if not self.datasets:
            raise ValueError("At least one dataset should be passed")
        columns = self._columns()
        self._length = len(columns[0])
        if any(self._length != len(dataset) for dataset in columns):
            raise ValueError("Size mismatch between datasets")

    def _columns(self) -> list[Any]:
        if isinstance(self.datasets, dict):
            return list(self.datasets.values())
        return list(self.datasets)

    def _sample(self, values: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, values, strict=True))
        return tuple(values)

    def __getitem__(self, index: Any) -> Any:
        return self._sample(dataset[index] for dataset in self._columns())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = []
        for dataset in self._columns():
            get_batch = _batch_getter(dataset)
            if get_batch is None:
                columns.append([dataset[i] for i in indices])
                continue
            items = get_batch(indices)
            if len(items) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. Expected "
                    f"{len(indices)}, got {len(items)}"
                )
            columns.append(items)
        return [self._sample(values) for values in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


def _batch_getter(dataset: Any) -> Callable[[list[Any]], Any] | None:
    getter = getattr(dataset, "__getitems__", None)
    return getter if callable(getter) else None


class ConcatDataset(Dataset[_T_co]):
    """Data sets one behind the other.

    Follows ``torch.utils.data.ConcatDataset``.

    >>> from torchshim.utils.data import ConcatDataset
    >>> data = ConcatDataset([["a", "b"], ["c"]])
    >>> len(data), data[2], data[-2]
    (3, 'c', 'b')
    """

    datasets: list[Dataset[_T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Where each of the data sets ends."""
        return list(accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: Any) -> _T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError(
                    "absolute value of index should not exceed dataset length"
                )
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]

    @property
    def cummulative_sizes(self) -> list[int]:
        """Deprecated spelling of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            category=FutureWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Streams one behind the other; each is opened when the one before has ended.

    Follows ``torch.utils.data.ChainDataset``; see `IterableDataset`.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for stream in self._streams():
            yield from stream

    def __len__(self) -> int:
        return sum(len(stream) for stream in self._streams())


class Subset(Dataset[_T_co]):
    """Some samples of a data set, chosen by their indices.

    Follows ``torch.utils.data.Subset``.

    >>> from torchshim.utils.data import Subset
    >>> Subset(["a", "b", "c"], [2, 0])[0]
    'c'
    """

    dataset: Any
    indices: Sequence[int]

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        cls = type(self)
        # A loader asks for batches: it would never see such a __getitem__.
        if (
            cls.__getitem__ is not Subset.__getitem__
            and cls.__getitems__ is Subset.__getitems__
        ):
            raise NotImplementedError(
                f"{cls.__name__} overrides __getitem__ but not __getitems__. When "
                "subclassing Subset and overriding __getitem__, you must also override "
                "__getitems__ to ensure DataLoader works correctly with your custom "
                "logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        get_batch = _batch_getter(self.dataset)
        if get_batch is not None:
            return get_batch([self.indices[i] for i in indices])
        return [self.dataset[self.indices[i]] for i in indices]

    def __len__(self) -> int:
        return len(self.indices)


_DEFAULT_GENERATOR: Any = object()  # PyTorch's default argument, its global generator


def random_split(
    dataset: Any,
    lengths: Sequence[int | float],
    generator: Any = _DEFAULT_GENERATOR,
) -> list[Subset[Any]]:
    """Split a data set at random into subsets of the given lengths.

    Fractions that add up to 1 are turned into lengths; what is left over goes to
    the first subsets, one each. ValueError where the lengths do not add up to
    the data set's. Follows ``torch.utils.data.random_split``.

    >>> import torchshim as torch
    >>> from torchshim.utils.data import random_split
    >>> a, b = random_split(range(10), [0.7, 0.3], torch.Generator().manual_seed(1))
    >>> len(a), len(b)
    (7, 3)
    """
    if generator is _DEFAULT_GENERATOR:
        generator = torchshim.default_generator
    total = sum(lengths)
    if math.isclose(total, 1) and total <= 1:
        lengths = _lengths_of_fractions(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset!"
        )
    indices = torchshim.randperm(sum(lengths), generator=generator).tolist()
    ends = list(accumulate(lengths))
    return [
        Subset(dataset, indices[end - length : end])
        for end, length in zip(ends, lengths, strict=True)
    ]


def _lengths_of_fractions(fractions: Sequence[float], size: int) -> list[int]:
    lengths = []
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(size * fraction))
    for i in range(size - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty "
                "dataset.",
                stacklevel=3,
            )
    return lengths
