"""Passes over the data whose batches worker processes make.

Each worker has a queue of requests and a pipe of its own for what it made, so that the
death of one blocks nobody; the pass waits for pipes and for processes that end alike.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import time
import uuid
import weakref
from collections.abc import Iterator
from multiprocessing import connection
from pickle import PicklingError
from typing import TYPE_CHECKING, Any, NamedTuple

from torchshim import _warnings as warnings
from torchshim.utils.data import _pipes, _utils
from torchshim.utils.data._iterators import _BaseDataLoaderIter, _DatasetKind
from torchshim.utils.data._utils import transport
from torchshim.utils.data._utils.worker import (
    STATUS_INTERVAL,
    ExceptionWrapper,
    Resume,
    StreamEnd,
    Work,
    run,
)

if TYPE_CHECKING:
    from torchshim.utils.data.dataloader import DataLoader

_UNPICKLABLE = (
    "Got pickle error when attempting to start a worker Process. This might be because "
    "the worker Process arguments are not picklable. Python 3.14+ changed the "
    "multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which "
    "requires the worker Process arguments to be picklable. You can also try "
    "multiprocessing.set_start_method('fork')."
)
_MISSING = object()
pinned = _utils.pin_memory.pin_memory


class _Opened(NamedTuple):
    """A batch that is on its way to the device."""

    data: Any


def _context(chosen: Any) -> Any:
    """What starts processes: as PyTorch, by fork on Linux unless asked otherwise."""
    if chosen is not None:
        return chosen
    if multiprocessing.get_start_method(allow_none=True) is None:
        if sys.platform == "linux" and sys.version_info < (3, 14):
            return multiprocessing.get_context("fork")
    return multiprocessing.get_context()


@contextlib.contextmanager
def _starting(forked: bool) -> Iterator[None]:
    if forked:
        from torchshim.utils.data._utils.forked import prepare

        prepare()
        yield
        return
    # A fresh interpreter is to leave the accelerator alone.
    before = os.environ.get("JAX_PLATFORMS")
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAX_PLATFORMS"]
        else:
            os.environ["JAX_PLATFORMS"] = before


class _Processes:
    """The workers of a pass, and the ways to them.

    What ends them holds this, not the pass: where the pass is part of a cycle, the
    collector may finalize its pipes first, and their numbers are somebody else's then.
    """

    def __init__(self, context: Any) -> None:
        self.prefix = f"torchshim_{uuid.uuid4().hex}"
        self.workers: list[Any] = []
        self.index_queues: list[Any] = []
        self.results: list[connection.Connection] = []
        self.done = context.Event()
        self._parent = os.getpid()

    def end(self) -> None:
        if os.getpid() != self._parent:
            return  # a forked process has the parent's passes, too
        self.done.set()
        for queue in self.index_queues:
            queue.put(None)
        deadline = time.monotonic() + STATUS_INTERVAL
        try:
            self._drain(deadline)
        finally:
            for worker in self.workers:
                if worker.is_alive():
                    worker.terminate()
                    worker.join(STATUS_INTERVAL)
            for pipe in self.results:
                pipe.close()
            for queue in self.index_queues:
                queue.cancel_join_thread()
                queue.close()
            transport.forget(self.prefix)

    def _drain(self, deadline: float) -> None:
        # A worker in the middle of sending ends when somebody receives.
        while time.monotonic() < deadline:
            alive = [w for w in self.workers if w.is_alive()]
            if not alive:
                return
            pipes = [pipe for pipe in self.results if not pipe.closed]
            ends = [worker.sentinel for worker in alive]
            for ready in connection.wait([*pipes, *ends], 0.5):
                if ready in pipes:
                    assert isinstance(ready, connection.Connection)
                    try:
                        ready.recv()
                    except (EOFError, OSError):
                        ready.close()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Batches are made by workers, in turn, and given in the order of the sampler."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        assert loader.prefetch_factor is not None
        self._prefetch_factor = loader.prefetch_factor
        if self._prefetch_factor <= 0:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for "
                "MultiProcessingDataLoaderIter"
            )
        self._in_order = loader.in_order
        self._worker_init_fn = loader.worker_init_fn
        context = _context(loader.multiprocessing_context)
        processes = _Processes(context)
        self._prefix = processes.prefix
        self._workers = processes.workers
        self._index_queues = processes.index_queues
        self._results = processes.results
        self._workers_done_event = processes.done
        self._end = weakref.finalize(self, processes.end)
        # At the interpreter's exit multiprocessing ends what is left.
        self._end.atexit = False
        forked = context.get_start_method() == "fork"
        try:
            with _starting(forked):
                for worker_id in range(self._num_workers):
                    self._start_worker(context, worker_id, forked)
        except BaseException:
            self._shutdown_workers()
            raise
        # PyTorch draws once more here, and does not use it.
        _pipes.shared_seed(loader)
        self._begin(loader)

    def _start_worker(self, context: Any, worker_id: int, forked: bool) -> None:
        indices = context.Queue()
        # What a worker did not ask for any more is lost.
        indices.cancel_join_thread()
        receiver, sender = context.Pipe(duplex=False)
        work = Work(
            kind=self._dataset_kind,
            dataset=self._dataset,
            auto_collation=self._auto_collation,
            collate_fn=self._collate_fn,
            drop_last=self._drop_last,
            base_seed=self._base_seed,
            shared_seed=self._shared_seed,
            init_fn=self._worker_init_fn,
            worker_id=worker_id,
            num_workers=self._num_workers,
            forked=forked,
            parent=os.getpid(),
            prefix=self._prefix,
        )
        process = context.Process(
            target=run, args=(work, indices, sender, self._workers_done_event)
        )
        process.daemon = True
        try:
            process.start()
        except (TypeError, AttributeError, PicklingError):
            warnings.warn(_UNPICKLABLE, stacklevel=2)
            raise
        sender.close()  # so that the end of the worker ends the pipe
        self._index_queues.append(indices)
        self._results.append(receiver)
        self._workers.append(process)

    # -- a pass --------------------------------------------------------------------

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        for queue in self._index_queues:
            queue.put(Resume(self._shared_seed))
        waiting = self._num_workers
        while waiting:  # what comes before the answers belongs to the last pass
            what, message = self._receive()
            if isinstance(what, Resume):
                waiting -= 1
            elif isinstance(message, transport.Message):
                message.open()
        self._begin(loader)

    def _begin(self, loader: DataLoader[Any]) -> None:
        self._send_idx = 0  # the next request's number
        self._rcvd_idx = 0  # the number of the batch to be given next
        # By number: the worker that was asked, and its answer when that came early.
        self._task_info: dict[int, list[Any]] = {}
        # Which workers' streams have not ended, and how many batches each owes.
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _try_put_index(self) -> None:
        """Asks the next worker for the next batch, if there is either."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker_id = self._next_worker()
        if worker_id is None:
            return
        self._index_queues[worker_id].put((self._send_idx, index))
        self._task_info[self._send_idx] = [worker_id, _MISSING]
        self._workers_num_tasks[worker_id] += 1
        self._send_idx += 1

    def _next_worker(self) -> int | None:
        share = self._prefetch_factor * self._num_workers
        for worker_id in itertools.islice(
            self._worker_queue_idx_cycle, self._num_workers
        ):
            if not self._workers_status[worker_id]:
                continue
            active = sum(self._workers_status)
            if self._in_order or self._workers_num_tasks[worker_id] < share // active:
                return worker_id
        return None

    def _next_data(self) -> Any:
        while True:
            self._pass_over_ended()
            if self._rcvd_idx >= self._send_idx:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            worker_id, answer = self._task_info[self._rcvd_idx]
            if answer is not _MISSING:
                del self._task_info[self._rcvd_idx]
                self._rcvd_idx += 1
                return self._process_data(answer, worker_id)
            index, answer = self._receive()
            if not self._in_order and not isinstance(answer, StreamEnd):
                self._rcvd_idx += index == self._rcvd_idx
                return self._process_data(answer, self._task_info.pop(index)[0])
            self._put_aside(index, answer)

    def _put_aside(self, index: Any, answer: Any) -> None:
        if not isinstance(answer, StreamEnd):
            self._task_info[index][1] = answer
            return
        self._workers_status[answer.worker_id] = False
        if not self._persistent_workers:
            self._index_queues[answer.worker_id].put(None)
        self._try_put_index()

    def _pass_over_ended(self) -> None:
        """Goes on to a batch that is there, or that a worker may still make."""
        while self._rcvd_idx < self._send_idx:
            info = self._task_info.get(self._rcvd_idx)
            if info is not None:
                if info[1] is not _MISSING or self._workers_status[info[0]]:
                    return
                del self._task_info[self._rcvd_idx]
            self._rcvd_idx += 1

    def _process_data(self, answer: Any, worker_id: int) -> Any:
        self._workers_num_tasks[worker_id] -= 1
        self._try_put_index()
        if isinstance(answer, ExceptionWrapper):
            answer.reraise()
        if not self._pin_memory:
            return answer.open()
        data = answer.data if isinstance(answer, _Opened) else pinned(answer.open())
        self._look_ahead()
        return data

    def _look_ahead(self) -> None:
        """Sends the next batch to the device if a worker has made it already.

        So it is copied while the batch that is given now is computed with. Errors, and
        workers that end, are left for when their turn comes.
        """
        if not self._in_order:
            return
        for pipe in connection.wait([p for p in self._results if not p.closed], 0):
            with contextlib.suppress(EOFError, OSError):
                self._put_aside(*pipe.recv())  # type: ignore[union-attr]
        info = self._task_info.get(self._rcvd_idx)
        if info is not None and isinstance(info[1], transport.Message):
            info[1] = _Opened(pinned(info[1].open()))

    # -- waiting -------------------------------------------------------------------

    def _receive(self) -> tuple[Any, Any]:
        """The next answer of any worker; RuntimeError when one died."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            patience = STATUS_INTERVAL
            if deadline is not None:
                patience = max(deadline - time.monotonic(), 0)
            open_pipes = [pipe for pipe in self._results if not pipe.closed]
            ready = connection.wait(open_pipes, patience)
            for pipe in ready:
                try:
                    return pipe.recv()  # type: ignore[union-attr]
                except (EOFError, OSError):
                    self._worker_ended(self._results.index(pipe))  # type: ignore[arg-type]
            if not ready and deadline is not None:
                raise RuntimeError(
                    f"DataLoader timed out after {self._timeout} seconds"
                )

    def _worker_ended(self, worker_id: int) -> None:
        self._results[worker_id].close()
        if self._dataset_kind == _DatasetKind.Iterable:
            if not self._workers_status[worker_id]:
                return  # its stream had ended: nothing is lost
        worker = self._workers[worker_id]
        worker.join(STATUS_INTERVAL)
        self._workers_status[worker_id] = False
        code, pid = worker.exitcode, worker.pid
        if code is not None and code < 0:
            name = signal.strsignal(-code) or f"Signal {-code}"
            cause = f"DataLoader worker (pid {pid}) is killed by signal: {name}. "
        else:
            cause = (
                f"DataLoader worker (pid {pid}) exited unexpectedly with exit code "
                f"{code}. Details are lost due to multiprocessing. Rerunning with "
                "num_workers=0 may give better error trace."
            )
        raise RuntimeError(
            f"DataLoader worker (pid(s) {pid}) exited unexpectedly"
        ) from RuntimeError(cause)

    def _shutdown_workers(self) -> None:
        """Ends the workers, whatever they are doing."""
        self._end()
