"""Handles of operations that were begun.

An operation reads its tensors when it begins, exchanges arrays (perhaps on the group's
own thread), and writes to its tensors on the thread that waits for it, or at the next
operation that begins after it is done: a program's tensors are for its own threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

import numpy as np

from torchshim._core.dtypes import array_dtype
from torchshim._functions.creation import placed
from torchshim._tensor import Tensor
from torchshim.autograd.grad_mode import no_grad
from torchshim.distributed._channel import Channel
from torchshim.futures import Future

__all__ = ["Received", "Sent", "Work", "begin", "settle", "write"]

# Operations that were begun and not waited for yet.
_open: list[Work] = []


@no_grad()
def write(tensor: Tensor, array: np.ndarray) -> None:
    """Gives a tensor the values of a flat array, which is not used afterwards."""
    source = placed(array.reshape(tuple(tensor.shape)), tensor.device)
    # A write that PyTorch's version counters do not see.
    tensor.data.copy_(source)


def settle() -> None:
    """Writes the results of operations that are done, though nobody waited for them."""
    for work in _open[:]:
        if work._done.is_set() and work._error is None:
            work.wait()


class Work:
    """An operation that was begun."""

    __module__ = "torch.distributed.distributed_c10d"

    _results: list[Tensor] | None = None

    def __init__(
        self,
        compute: Callable[[], Sequence[np.ndarray] | None],
        outputs: Sequence[Tensor],
        results: list[Tensor] | None,
    ) -> None:
        self._compute: Callable[[], Sequence[np.ndarray] | None] | None = compute
        self._outputs, self._results = outputs, results
        self._arrays: Sequence[np.ndarray] | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()
        self._future: Future[list[Tensor]] | None = None

    def _carry_out(self) -> None:
        assert self._compute is not None
        try:
            self._arrays = self._compute()
        except Exception as error:
            self._error = error
        self._compute = None
        self._done.set()

    def _deliver(self) -> None:
        if self in _open:
            _open.remove(self)
        if self._error is not None:
            raise self._error
        arrays, self._arrays = self._arrays, None
        if arrays is not None:
            for tensor, array in zip(self._outputs, arrays, strict=True):
                write(tensor, array)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the results: True. RuntimeError when the operation failed.

        `timeout`: how long to wait at most; for ever if it is zero.
        """
        seconds = timeout.total_seconds()
        if not self._done.wait(seconds if seconds > 0 else None):
            raise RuntimeError("Operation timed out!")
        self._deliver()
        return True

    def synchronize(self) -> None:
        """Waits for the results."""
        self.wait()

    def get_future(self) -> Future[list[Tensor]]:
        """The future of the results. RuntimeError of operations that have none."""
        if self._results is None:
            raise RuntimeError("Work::getFuture not implemented.")
        if self._future is None:
            self._future = Future()
            self._future._source = self._complete
        return self._future

    def _complete(self, wait: bool) -> None:
        """Completes the future, on the thread that asks for it."""
        future = self._future
        if future is None or not (wait or self._done.is_set()):
            return
        try:
            self.wait()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(self._results or [])

    def result(self) -> list[Tensor]:
        """The results."""
        if self._results is None:
            raise RuntimeError("result() not implemented.")
        self.wait()
        return self._results

    def is_completed(self) -> bool:
        """Whether the operation has ended."""
        if not self._done.is_set():
            return False
        if self._error is None:
            self._deliver()
        return True

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error that it has ended with."""
        return self._error

    def source_rank(self) -> int:
        """Which member sent what was received. RuntimeError of all else."""
        raise RuntimeError(
            "sourceRank() may only be called on work objects that correspond to a recv "
            "or recv-from-any call."
        )


class Sent(Work):
    """A message that was sent: nothing is left to do."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self) -> None:
        super().__init__(lambda: None, (), None)
        self._done.set()


class Received(Work):
    """A message that somebody waits for: taken when it is waited for."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self, channel: Channel, members: Sequence[int], tag: int, tensor: Tensor
    ) -> None:
        super().__init__(lambda: None, (tensor,), None)
        self._channel, self._members, self._tag = channel, members, tag
        self._source = -1

    def _take(self, timeout: float) -> None:
        tensor = self._outputs[0]
        channel, members = self._channel, self._members
        self._source, data = channel.receive(members, self._tag, timeout)
        if len(data) != tensor.nbytes:
            raise RuntimeError(
                f"recv: rank {channel.ranks[self._source]} sent {len(data)} bytes "
                f"where {tensor.nbytes} are expected"
            )
        self._arrays = [np.frombuffer(data, array_dtype(tensor.dtype))]
        self._done.set()

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the message: True."""
        if not self._done.is_set():
            seconds = timeout.total_seconds()
            self._take(seconds if seconds > 0 else self._channel.timeout)
        self._deliver()
        return True

    def is_completed(self) -> bool:
        """Whether the message is here."""
        if not self._done.is_set() and self._channel.holds(self._members, self._tag):
            self._take(self._channel.timeout)
        return super().is_completed()

    def source_rank(self) -> int:
        """Which member of the group sent the message."""
        return self._source


def begin(work: Work, channel: Channel, async_op: bool) -> Work | None:
    """Carries an operation out, or has the group's thread do so."""
    if not async_op:
        work._carry_out()
        work.wait()
        return None
    _open.append(work)
    channel.later(work._carry_out)
    return work
