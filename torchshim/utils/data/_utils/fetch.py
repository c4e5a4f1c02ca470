"""Getting the samples of a batch out of a data set."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import getitem
from typing import Any

import numpy as np

import torchshim
from torchshim._core.program import CACHE
from torchshim._core.record import local
from torchshim._core.state import CALL, State
from torchshim._tensor import Tensor, from_array, on_cpu
from torchshim.utils.data._utils.collate import collates_as_built_in
from torchshim.utils.data._utils.worker import get_worker_info
from torchshim.utils.data.dataset import Subset, TensorDataset


class Pace:
    """Whether samples are recorded together, with the step that uses them.

    That makes one recording of a batch and its step, which is a new one for each batch
    (compiled anew, or run event by event) if a data set decides by random numbers, or
    by the sample, what to do with it. Where the samples of a first batch differ, or
    after a few batches in a row that gave new recordings, samples and batches are run
    on their own: there are few recordings of one sample.
    """

    _PATIENCE = 4
    _COMPARED = 64  # samples

    def __init__(self) -> None:
        self.recordings = CACHE.added
        self.unsettled = 0
        self.apart = False
        self.first: Events | None = None
        self.compared = 0

    def begin(self) -> None:
        """A batch is asked for."""
        recordings = CACHE.added
        self.unsettled = self.unsettled + 1 if recordings > self.recordings else 0
        self.recordings = recordings
        if self.unsettled > self._PATIENCE and get_worker_info() is None:
            self.apart = True
        if self.apart:
            local.rec.flush()  # the step before, which the first sample would change

    def sample(self, take: Callable[[Any], Any], of: Any) -> Any:
        """A sample, taken by `take(of)`."""
        if self.apart or self.compared >= self._COMPARED:
            return self.taken(take(of))
        rec = local.rec
        start, flushes = rec.state, rec.flushes
        value = take(of)
        if rec.flushes == flushes and get_worker_info() is None:
            events = _calls(rec.state, start)
            if self.first is None:
                self.first = events
            self.apart = self.first != events
            self.compared += 1
        return self.taken(value)

    def taken(self, value: Any) -> Any:
        """A sample or a batch is there."""
        if self.apart:
            local.rec.flush()
        return value


# What was recorded of a sample: the operators, and the shapes of their results.
Events = list[tuple[Any, ...]]


def _calls(state: State, start: State) -> Events:
    found: Events = []
    while state is not start and state.parent is not None:
        if state.kind == CALL:
            op = getattr(state.call, "op", None)
            found.append((op, *[meta.shape for meta in state.metas]))
        state = state.parent
    return found


class _BaseDatasetFetcher:
    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.pace = Pace()

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        self.pace.begin()
        data = []
        for _ in possibly_batched_index:
            try:
                data.append(self.pace.sample(next, self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        short = len(data) < len(possibly_batched_index)
        if not data or (self.drop_last and short):
            raise StopIteration
        return self.pace.taken(self.collate_fn(data))


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, possibly_batched_index: Any) -> Any:
        index = possibly_batched_index
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if collates_as_built_in(self.collate_fn):
            batch = _gather_batch(self.dataset, index)
            if batch is not None:
                return batch
        pace, dataset = self.pace, self.dataset
        while type(dataset) is Subset:
            index = [dataset.indices[i] for i in index]
            dataset = dataset.dataset
        pace.begin()
        if getattr(dataset, "__getitems__", None):
            samples = pace.taken(dataset.__getitems__(index))
        else:
            take = partial(getitem, dataset)
            samples = [pace.sample(take, i) for i in index]
        return pace.taken(self.collate_fn(samples))


def _gather_batch(dataset: Any, indices: Any) -> list[Tensor] | None:
    """The collated rows of a `TensorDataset`, one operation for each tensor.

    None wherever taking row by row and stacking could differ: subclasses,
    recorded gradients, indices that are no plain integers or out of range.
    """
    while type(dataset) is Subset:
        try:
            indices = [dataset.indices[i] for i in indices]
        except Exception:
            return None  # raised again where the samples are taken one by one
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or type(indices) is not list or not indices:
        return None
    if not _INTEGERS.issuperset(map(type, indices)):
        return None
    tensors = dataset.tensors
    size = tensors[0].size(0) if tensors else 0
    if any(
        type(t) is not Tensor
        or t.requires_grad
        or t.layout != torchshim.strided
        or t.size(0) != size
        for t in tensors
    ):
        return None
    if min(indices) < -size or max(indices) >= size:
        return None
    rows = np.asarray(indices, dtype=np.int64)
    rows[rows < 0] += size
    if get_worker_info() is not None:
        return [from_array(t._host()[rows], device=t.device) for t in tensors]
    index = on_cpu(rows)
    return [t.index_select(0, index.to(t.device)) for t in tensors]


_INTEGERS = frozenset({int, np.int8, np.int16, np.int32, np.int64})
