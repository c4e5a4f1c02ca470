"""A worker process: what it knows of itself, and what it does."""

from __future__ import annotations

import os
import pickle
import queue
import random
import traceback
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from torchshim._functions.random import manual_seed
from torchshim._settings import set_num_threads
from torchshim.utils.data import _pipes
from torchshim.utils.data._utils import transport

# Seconds after which a process looks whether the others still live.
STATUS_INTERVAL = 5.0


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker of how many this process is; see `get_worker_info`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


# Set in a worker process only.
_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The `WorkerInfo` of this process, or None outside a loader's worker.

    Follows ``torch.utils.data.get_worker_info``.

    >>> from torchshim.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _worker_info


class ManagerWatchdog:
    """Tells whether the process that started this one still lives."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()
        self.manager_dead = False

    def is_alive(self) -> bool:
        """Whether it does; what is dead stays so."""
        self.manager_dead = self.manager_dead or os.getppid() != self.manager_pid
        return not self.manager_dead


@dataclass(frozen=True)
class StreamEnd:
    """Comes in place of a batch when a worker's stream has ended."""

    worker_id: int


@dataclass(frozen=True)
class Resume:
    """Asks a worker that stays to begin again; it answers with the same."""

    shared_seed: int | None


class KeyErrorMessage(str):
    """A text that a KeyError shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception on its way to another process, with its traceback as text."""

    def __init__(self, error: BaseException, where: str) -> None:
        self.exc_type: type[BaseException] = type(error)
        told = traceback.TracebackException.from_exception(error)
        # What JAX says of its own frames would hide the error's last line.
        notes = getattr(error, "__notes__", [])
        told.__notes__ = [
            note for note in notes if "JAX_TRACEBACK_FILTERING" not in note
        ]
        self.exc_msg = "".join(told.format())
        self.where = where
        self.name = type(error).__name__
        try:
            pickle.dumps(self.exc_type)
        except Exception:
            self.exc_type = RuntimeError  # a class that only this process knows

    def reraise(self) -> NoReturn:
        """Raises the exception here."""
        text = f"Caught {self.name} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)  # type: ignore[call-arg]
        try:
            error = self.exc_type(text)
        except Exception:
            # Its class takes other arguments than a text.
            raise RuntimeError(text) from None
        raise error


@dataclass
class Work:
    """All that a worker is started with."""

    kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    shared_seed: int | None
    init_fn: Any
    worker_id: int
    num_workers: int
    forked: bool
    parent: int
    prefix: str


def seed_all(base_seed: int, worker_id: int) -> int:
    """Seeds random, torch and numpy as PyTorch's workers do; gives the seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    np.random.seed(_generate_state(base_seed, worker_id))
    return seed


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four numbers that NumPy's generator is seeded with in a worker.

    PyTorch takes over NumPy's own way to spread a seed.
    """
    entropy = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return np.random.SeedSequence(entropy).generate_state(4).tolist()


def run(work: Work, indices: Any, results: Any, done: Any) -> None:
    """Fetches what is asked for until told to stop, or the parent is gone."""
    if work.forked:
        from torchshim.utils.data._utils.forked import leave_runtime

        leave_runtime()
    else:
        # With a fork server that is the parent; it ends with the loader's process.
        work.parent = os.getppid()
    try:
        _Worker(work, indices, results, done).loop()
    except (KeyboardInterrupt, BrokenPipeError):
        pass  # the parent was interrupted as well, or needs nothing any more
    finally:
        if os.getppid() != work.parent:
            transport.forget(work.prefix)


class _Worker:
    def __init__(self, work: Work, indices: Any, results: Any, done: Any) -> None:
        global _worker_info
        self.work, self.indices, self.results, self.done = work, indices, results, done
        self.where = f"in DataLoader worker process {work.worker_id}"
        set_num_threads(1)
        seed = seed_all(work.base_seed, work.worker_id)
        _worker_info = WorkerInfo(
            id=work.worker_id,
            num_workers=work.num_workers,
            seed=seed,
            dataset=work.dataset,
        )
        self.ended = False
        self.fetcher: Any = None
        self.failure: ExceptionWrapper | None = None
        try:
            _pipes.seed(work.dataset, work.shared_seed)
            _pipes.shard(work.dataset, work.num_workers, work.worker_id)
            if work.init_fn is not None:
                work.init_fn(work.worker_id)
            self.fetcher = self._fetcher()
        except Exception as error:
            self.failure = ExceptionWrapper(error, self.where)

    def _fetcher(self) -> Any:
        from torchshim.utils.data._iterators import _DatasetKind

        work = self.work
        return _DatasetKind.create_fetcher(
            work.kind,
            work.dataset,
            work.auto_collation,
            work.collate_fn,
            work.drop_last,
        )

    def loop(self) -> None:
        """Answers every request in turn; None is the last one."""
        while os.getppid() == self.work.parent:
            try:
                request = self.indices.get(timeout=STATUS_INTERVAL)
            except queue.Empty:
                continue
            if request is None:
                return
            if isinstance(request, Resume):
                self.ended = False
                self.results.send((request, None))
                _pipes.seed(self.work.dataset, request.shared_seed)
                self.fetcher = self._fetcher()
            elif not self.ended and not self.done.is_set():
                index, what = request
                self.results.send((index, self._fetched(what)))

    def _fetched(self, what: Any) -> Any:
        if self.failure is not None:
            failure, self.failure = self.failure, None
            return failure
        try:
            data = self.fetcher.fetch(what)
            return transport.Message(data, self.work.prefix)
        except StopIteration as error:
            if self.work.kind == 0:
                return ExceptionWrapper(error, self.where)
            self.ended = True
            return StreamEnd(self.work.worker_id)
        except Exception as error:
            return ExceptionWrapper(error, self.where)
