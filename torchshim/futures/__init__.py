"""Results that come later.

https://docs.pytorch.org/docs/2.13/futures.html
"""

from __future__ import annotations

import concurrent.futures
import traceback
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Generic, TypeVar

from torchshim._core.device import device, device_count

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that is set once, perhaps by another thread."""

    __module__ = "torch.jit"  # which is what PyTorch prints
    # Completes it, where what it waits for is done by who waits: told whether to wait.
    _source: Callable[[bool], None] | None = None

    def __init__(self, *, devices: Any = None) -> None:
        for each in devices or ():
            where = device(each)
            if where.type not in ("cpu", "meta") and not device_count(where.type):
                raise RuntimeError(
                    f"PyTorch is not linked with support for {where.type} devices"
                )
            if where.index is None:
                raise ValueError(f"Expected devices to have indices, got {where}")
        self._future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether the result (or an exception) is there."""
        self._go_on(False)
        return self._future.done()

    def _go_on(self, wait: bool) -> None:
        if self._source is not None and not self._future.done():
            self._source(wait)

    def wait(self) -> T:
        """The result, once it is there; raises the exception that was set."""
        self._go_on(True)
        return self._future.result()

    def value(self) -> T:
        """The result. RuntimeError if it is not there yet."""
        if not self.done():
            where = "/__w/pytorch/pytorch/aten/src/ATen/core/ivalue_inl.h"
            raise RuntimeError(
                f'completed() INTERNAL ASSERT FAILED at "{where}":1016, please report '
                "a bug to PyTorch. "
            )
        return self.wait()

    def set_result(self, result: T) -> None:
        """Sets the result. RuntimeError the second time."""
        self._check()
        self._future.set_result(result)

    def set_exception(self, result: Exception) -> None:
        """Sets what `wait` raises. RuntimeError the second time."""
        if not isinstance(result, Exception):
            raise AssertionError(
                f"{result} is of type {type(result)}, not an Exception."
            )
        self._check()
        self._future.set_exception(result)

    def _check(self) -> None:
        if self._future.done():
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a "
                "Future can only be marked completed once."
            )

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future of what `callback` gives for this one, once it is done."""
        if not callable(callback):
            raise TypeError(
                "then(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (self: torch._C.Future, arg0: "
                "collections.abc.Callable) -> torch._C.Future\n\n"
                f"Invoked with: {self!r}, {callback!r}"
            )
        made: Future[Any] = Future()

        def run(_: Any) -> None:
            try:
                found = callback(self)
            except Exception as error:
                made.set_exception(RuntimeError(_of_callback(error)))
            else:
                made.set_result(found)

        self._future.add_done_callback(run)
        made._source = self._go_on
        return made

    def __reduce__(self) -> Any:
        raise RuntimeError("Can not pickle torch.futures.Future")

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls `callback` with this future, once it is done."""
        if not callable(callback):
            raise TypeError(
                "add_done_callback(): incompatible function arguments. The following "
                "argument types are supported:\n    1. (self: torch._C.Future, arg0: "
                "collections.abc.Callable) -> None\n\n"
                f"Invoked with: {self!r}, {callback!r}"
            )
        self._future.add_done_callback(lambda _: callback(self))


def _of_callback(error: Exception) -> str:
    """What is said of an error in a callback: where it was, from the innermost on."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)[1:]
    if frames:
        lines = [f"  {f.filename}({f.lineno}): {f.name}\n" for f in reversed(frames)]
        text += "\n\nAt:\n" + "".join(lines)
    return f"Got the following error when running the callback: {text}"


def _refuse_none(futures: Iterable[Any]) -> None:
    if any(future is None for future in futures):
        raise RuntimeError("Future can't be None")


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done when all of these are, or with the first exception."""
    if not all(isinstance(each, (Future, NoneType)) for each in futures):
        raise TypeError(
            "_collect_all(): incompatible function arguments. The following argument "
            "types are supported:\n    1. (arg0: collections.abc.Sequence[torch._C."
            f"Future]) -> torch._C.Future\n\nInvoked with: {futures!r}"
        )
    _refuse_none(futures)
    made: Future[list[Future[Any]]] = Future()
    left = [len(futures)]

    def one(done: Future[Any]) -> None:
        left[0] -= 1
        error = done._future.exception()
        if made._future.done():
            return
        if isinstance(error, Exception):
            made.set_exception(error)
        elif not left[0]:
            made.set_result(futures)

    if not futures:
        made.set_result(futures)
    for future in futures:
        future.add_done_callback(one)

    def go_on(wait: bool) -> None:
        for future in futures:
            future._go_on(wait)

    made._source = go_on
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """All results, once they are there; raises the first exception."""
    return [future.wait() for future in collect_all(futures).wait()]


def _fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """`torch.fork`: calls a function at once; its result as a future."""
    made: Future[Any] = Future()
    try:
        made.set_result(func(*args, **kwargs))
    except Exception as error:
        made.set_exception(error)
    return made


def _wait(future: Any) -> Any:
    """`torch.wait`: the result of a future."""
    _refuse_none([future])
    if not isinstance(future, Future):
        raise TypeError(
            "wait(): incompatible function arguments. The following argument types are "
            "supported:\n    1. (arg0: torch._C.Future) -> object\n\n"
            f"Invoked with: {future!r}"
        )
    return future.wait()
