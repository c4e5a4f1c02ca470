"""The loader: batches out of a data set."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import torchshim
from torchshim import _warnings as warnings
from torchshim.utils.data._iterators import (
    _BaseDataLoaderIter,
    _DatasetKind,
    _SingleProcessDataLoaderIter,
)
from torchshim.utils.data._utils.collate import default_collate, default_convert
from torchshim.utils.data._utils.worker import ExceptionWrapper as ExceptionWrapper
from torchshim.utils.data._utils.worker import get_worker_info
from torchshim.utils.data._workers import _MultiProcessingDataLoaderIter
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.dataset import Dataset, IterableDataset
from torchshim.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_worker_init_fn_t = Callable[[int], None]
_collate_fn_t = Callable[[list[_T]], Any]


class _InfiniteConstantSampler(Sampler[None]):
    """The sampler of streams: nothing to choose."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[_T_co]):
    """Reads a data set in batches.

    A batch is what `collate_fn` makes of `batch_size` samples, in the order of
    `sampler`, or shuffled; ``batch_size=None`` gives the samples one by one. The
    order for a seed is PyTorch's. With `num_workers` above 0, that many processes
    make the batches, `prefetch_factor` each ahead of time; see `_workers`.

    With ``pin_memory=True`` and an accelerator, a batch begins its way to it when a
    worker has made it, while the batch before is computed with, and
    ``batch.to(device)`` takes what has come. The batch stays one of tensors on the
    CPU. Without an accelerator nothing is pinned, with PyTorch's warning. Follows
    ``torch.utils.data.DataLoader``.

    >>> import torchshim as torch
    >>> from torchshim.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(torch.arange(3))
    >>> [batch.tolist() for (batch,) in DataLoader(data, batch_size=2)]
    [[0, 1], [2]]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None

    # Read by __setattr__, also before __init__ got that far.
    _DataLoader__initialized = False

    def __init__(
        self,
        dataset: Dataset[_T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        self.prefetch_factor = _check_worker_options(
            num_workers, timeout, prefetch_factor, persistent_workers
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            if isinstance(dataset, IterDataPipe):
                shuffle = _apply_shuffle(dataset, shuffle)
            _check_stream_options(shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, "
                    "shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually "
                "exclusive with drop_last"
            )
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        # Set once the length of a stream was asked for; reading more then warns.
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in (
            "batch_size",
            "batch_sampler",
            "sampler",
            "drop_last",
            "dataset",
            "persistent_workers",
        ):
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is "
                "initialized"
            )
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started; a name is turned into a context."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process "
                    f"loading (num_workers > 0), but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start "
                        f"method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object "
                    "or a string specifying the start method, but got "
                    f"multiprocessing_context={context}"
                )
        self.__multiprocessing_context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        if self.drop_last:
            return length // self.batch_size
        return -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn where more workers are asked for than the machine has cores."""
        if not self.num_workers:
            return
        has_affinity = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
        if cores is not None and self.num_workers <= cores:
            return
        if cores is None:
            suggestion = (
                "DataLoader is not able to compute a suggested max number of worker in "
                "current system."
            )
        else:
            suffix = "" if has_affinity else " (`cpuset` is not taken into account)"
            suggestion = (
                "Our suggested max number of worker in current system is "
                f"{cores}{suffix}, which is smaller than what this DataLoader is going "
                "to create."
            )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total."
            f" {suggestion} Please be aware that excessive worker creation might get "
            "DataLoader running slow or even freeze, lower the worker number to avoid "
            "potential slowness/freeze if necessary.",
            stacklevel=2,
        )


def _get_distributed_settings() -> tuple[int, int]:
    """How many processes the group has, and which this one is."""
    dist = torchshim.distributed
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size(), dist.get_rank()
    return 1, 0


def _share_dist_seed(generator: Any, pg: Any) -> int:
    """A seed drawn by the first process of a group: of the one that there is."""
    seed = torchshim.empty((), dtype=torchshim.int64)
    return int(seed.random_(generator=generator).item())


def _check_worker_options(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
) -> int | None:
    """The prefetch factor to use; ValueError where the options do not go together."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let "
            "num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor "
            "to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


def _apply_shuffle(pipe: Any, shuffle: bool | None) -> None:
    from torchshim.utils.data.graph_settings import apply_shuffle_settings

    # A step that this adds is not read from, as in PyTorch, which warns of that.
    apply_shuffle_settings(pipe, shuffle)


def _check_stream_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = None
    if shuffle not in {False, None}:
        given = f"shuffle option, but got shuffle={shuffle}"
    elif sampler is not None:
        given = f"sampler option, but got sampler={sampler}"
    elif batch_sampler is not None:
        given = f"batch_sampler option, but got batch_sampler={batch_sampler}"
    if given is not None:
        raise ValueError(
            f"DataLoader with IterableDataset: expected unspecified {given}"
        )
