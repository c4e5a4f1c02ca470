"""Passes over the data: what `iter(loader)` gives."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import jax

from torchshim import _warnings as warnings
from torchshim.utils.data import _pipes, _utils
from torchshim.utils.data._utils.fetch import Pace
from torchshim.utils.data.sampler import draw_seed

if TYPE_CHECKING:
    from torchshim.utils.data.dataloader import DataLoader


# Of data sets; of loaders where these cannot be a key, or compare as they like.
_PACES: weakref.WeakKeyDictionary[Any, Pace] = weakref.WeakKeyDictionary()


def _pace_of(loader: DataLoader[Any]) -> Pace:
    """What earlier passes have shown."""
    if type(loader.dataset).__eq__ is object.__eq__:
        with suppress(TypeError):
            return _PACES.setdefault(loader.dataset, Pace())
    return _PACES.setdefault(loader, Pace())


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Any:
        if kind == _DatasetKind.Map:
            fetcher = _utils.fetch._MapDatasetFetcher
        else:
            fetcher = _utils.fetch._IterableDatasetFetcher
        return fetcher(dataset, auto_collation, collate_fn, drop_last)


def _has_accelerator() -> bool:
    return jax.default_backend() != "cpu"


class _BaseDataLoaderIter:
    """One pass over the data; a subclass says where the batches are made."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._shared_seed = _pipes.shared_seed(loader)
        _pipes.seed(self._dataset, self._shared_seed)
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._pin_memory = self._shall_pin(loader)
        self._sampler_iter = iter(self._index_sampler)
        # Drawn even where no worker needs it: the order of random numbers is
        # PyTorch's. A shuffle draws its own seed later, at the first index.
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    @staticmethod
    def _shall_pin(loader: DataLoader[Any]) -> bool:
        if not loader.pin_memory:
            return False
        if loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used "
                "as the device,ignore "
                f"pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=4,
            )
        if _has_accelerator():
            return True
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then "
            "device pinned memory won't be used.",
            stacklevel=4,
        )
        return False

    def __iter__(self) -> Self:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._shared_seed = _pipes.shared_seed(loader)
        _pipes.seed(self._dataset, self._shared_seed)

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and promised is not None
            and self._num_yielded > promised
        ):
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be "
                f"{promised}(when accessing len(dataloader)), but {self._num_yielded} "
                "samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not "
                    "properly configuring the IterableDataset replica at each worker. "
                    "Please see https://pytorch.org/docs/stable/data.html"
                    "#torch.utils.data.IterableDataset for examples."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Batches are made where they are asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError(
                "_SingleProcessDataLoaderIter requires num_workers == 0"
            )
        _pipes.shard(self._dataset, 1, 0)
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )
        self._dataset_fetcher.pace = _pace_of(loader)

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(self._next_index())
        return _utils.pin_memory.pin_memory(data) if self._pin_memory else data
