"""Pipes that join others, or are split into several."""

from __future__ import annotations

import copy as copying
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from torchshim import _warnings as warnings
from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.datapipes.utils.common import (
    StreamWrapper,
    check_picklable,
    length_of,
)

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """Pipes one behind the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, *self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """A sample of each pipe in turn, until one of them ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(length_of(self, *self.datapipes)) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples of a sample of each pipe, until one of them ends."""

    def __init__(self, *datapipes: Any) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError(
                "All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`."
            )
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, *self.datapipes))


# One pipe read by several -------------------------------------------------------------


def _check_count(count: int) -> None:
    if count < 1:
        raise ValueError(
            f"Expected `num_instances` larger than 0, but {count} is found"
        )


class _Source(IterDataPipe[Any]):
    """A pipe that several children read, and what some have not read yet."""

    _name: str

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{self._name}`, please be aware of "
                "OOM at random places",
                UserWarning,
                stacklevel=3,
            )
        self._clear()

    def _clear(self) -> None:
        # For each child, what was read for it and it did not ask for yet.
        self._waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._iterator: Iterator[Any] | None = None
        self._ended = False
        self._stopped = [True] * self.num_instances

    def reset(self) -> None:
        """Forgets what was read."""
        self._clear()

    def __getstate__(self) -> Any:
        kept = dict(self.__dict__)
        for name in ("_waiting", "_iterator", "_ended", "_stopped"):
            kept.pop(name, None)
        hook = IterDataPipe.getstate_hook
        return kept if hook is None else hook(kept)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clear()

    def _advance(self, instance_id: int) -> None:
        """Reads one sample for whom it is meant, on behalf of a child.

        StopIteration at the end.
        """
        raise NotImplementedError

    def is_every_instance_exhausted(self) -> bool:
        """Whether all children have read to the end."""
        return self._ended and all(self._stopped)

    def get_length_by_instance(self, instance_id: int) -> int:
        """How much a child has to read."""
        return len(self.main_datapipe)

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """What a child reads."""
        if self._iterator is None and self._stopped[instance_id]:
            self._iterator = iter(self.main_datapipe)
            self._ended = False
            self._stopped = [False] * self.num_instances
        waiting = self._waiting[instance_id]
        try:
            while not self._stopped[instance_id]:
                if waiting:
                    yield self._given(waiting.popleft())
                elif self._ended:
                    break
                else:
                    try:
                        self._advance(instance_id)
                    except StopIteration:
                        self._ended, self._iterator = True, None
        finally:
            self._stopped[instance_id] = True
            if all(self._stopped):
                self._iterator = None
            # (Those of now: an iterator may go after the source was begun anew.)
            waiting = self._waiting[instance_id]
            while waiting:
                StreamWrapper.close_streams(waiting.popleft())

    def _given(self, sample: Any) -> Any:
        return sample


class _Fork(_Source):
    """All children read all samples."""

    _name = "fork"

    def __init__(
        self, datapipe: Any, num_instances: int, buffer_size: int, copy: Any
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        if copy not in (None, "shallow", "deep"):
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, "
                "`shallow` or `deep`."
            )
        self.copy = copy

    def _advance(self, instance_id: int) -> None:
        assert self._iterator is not None
        sample = next(self._iterator)
        for waiting in self._waiting:
            waiting.append(sample)
        behind = max(len(w) - (i == instance_id) for i, w in enumerate(self._waiting))
        if 0 <= self.buffer_size < behind:
            raise BufferError(
                f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is "
                "insufficient."
            )

    def _given(self, sample: Any) -> Any:
        if self.copy is None:
            return sample
        return (copying.copy if self.copy == "shallow" else copying.deepcopy)(sample)


class _Demux(_Source):
    """Each sample is read by the child whose number a function gives."""

    _name = "demux"

    def __init__(
        self,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool,
        buffer_size: int,
    ) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def _advance(self, instance_id: int) -> None:
        assert self._iterator is not None
        sample = next(self._iterator)
        number = self.classifier_fn(sample)
        if number is None and self.drop_none:
            StreamWrapper.close_streams(sample)
            return
        if number is None or not 0 <= number < self.num_instances:
            raise ValueError(
                "Output of the classification fn should be between 0 and "
                f"{self.num_instances - 1}. {number} is returned."
            )
        self._waiting[number].append(sample)
        held = sum(map(len, self._waiting)) - (number == instance_id)
        if 0 <= self.buffer_size < held:
            raise BufferError(
                "DemultiplexerIterDataPipe buffer overflow, buffer size "
                f"{self.buffer_size} is insufficient."
            )

    def get_length_by_instance(self, instance_id: int) -> int:
        """Not known before the function was called: a TypeError."""
        raise TypeError


class _ChildDataPipe(IterDataPipe[Any]):
    """One of the pipes that read a source together.

    They are begun anew together, too: an iterator of one that has begun already ends
    those of the others.
    """

    _is_child_datapipe: bool = True

    def __init__(self, main_datapipe: _Source, instance_id: int) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.get_length_by_instance(self.instance_id)

    def _set_main_datapipe_valid_iterator_id(self) -> int:
        main = self.main_datapipe
        if main._valid_iterator_id is None:
            main._valid_iterator_id = 0
        elif main._valid_iterator_id == self._valid_iterator_id:
            main._valid_iterator_id += 1
            if not main.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. "
                    "We are resetting the buffer and each child DataPipe will read "
                    "from the start again.",
                    UserWarning,
                    stacklevel=2,
                )
            main.reset()
        self._valid_iterator_id = main._valid_iterator_id
        return self._valid_iterator_id

    def _check_valid_iterator_id(self, iterator_id: int | None) -> bool:
        valid = self.main_datapipe._valid_iterator_id
        return iterator_id == self._valid_iterator_id == valid


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """Several pipes that each give all samples.

    BufferError where one is more than `buffer_size` samples ahead.
    """

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        buffer_size: int = 1000,
        copy: Any = None,
    ) -> Any:
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        source = _Fork(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(source, i) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """Several pipes, to which a function of the samples divides them."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _check_count(num_instances)
        check_picklable(classifier_fn)
        source = _Demux(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(source, i) for i in range(num_instances)]
