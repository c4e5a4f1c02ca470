"""One iterator a pipe: starting another one ends the one before.

Pipes have buffers of their own, which two iterators at a time would mix up. The rule
and the texts are those of PyTorch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

_FEEDBACK = (
    "\nFor feedback regarding this single iterator per IterDataPipe constraint, feel "
    "free to comment on this issue: https://github.com/pytorch/data/issues/45."
)


class _SnapshotState(Enum):
    """Whether a pipe has been started, or moved on to where it was before."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def _described(pipe: Any) -> str:
    names = inspect.signature(type(pipe)).parameters
    members = [(n, v) for n, v in inspect.getmembers(pipe) if n in names]
    shown = [
        f"{n}={v.__name__ if inspect.isfunction(v) else repr(v)}" for n, v in members
    ]
    return f"{type(pipe).__name__}({', '.join(shown)})"


def _check_valid(pipe: Any, number: int | None) -> None:
    if getattr(pipe, "_is_child_datapipe", False):
        if not pipe._check_valid_iterator_id(number):
            raise RuntimeError(
                "This iterator has been invalidated, because a new iterator has been "
                "created from one of the ChildDataPipes of "
                f"{_described(pipe.main_datapipe)}." + _FEEDBACK
            )
    elif pipe._valid_iterator_id != number:
        raise RuntimeError(
            "This iterator has been invalidated because another iterator has been "
            f"created from the same IterDataPipe: {_described(pipe)}\nThis may be "
            "caused by multiple references to the same IterDataPipe. We recommend "
            "using `.fork()` if that is necessary." + _FEEDBACK
        )


def _start(pipe: Any) -> int | None:
    """Makes an iterator that begins now the valid one; gives its number."""
    if getattr(pipe, "_is_child_datapipe", False):
        pipe._set_main_datapipe_valid_iterator_id()
    else:
        number = pipe._valid_iterator_id
        pipe._valid_iterator_id = 0 if number is None else number + 1
        pipe.reset()
    return pipe._valid_iterator_id


class _Checked:
    """An iterator that a pipe's `__iter__` returned, with the check at each step."""

    def __init__(self, iterator: Any, pipe: Any, number: int | None) -> None:
        self.iterator, self.datapipe, self.iterator_id = iterator, pipe, number

    def __iter__(self) -> _Checked:
        return self

    def __next__(self) -> Any:
        _check_valid(self.datapipe, self.iterator_id)
        result = next(self.iterator)
        if self.iterator is not self.datapipe:  # whose own __next__ counts
            self.datapipe._number_of_samples_yielded += 1
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.iterator, name)


def _noted(error: Exception, pipe: Any) -> None:
    """Says in an error's text which pipe it went through first."""
    note = f"thrown by __iter__ of {_described(pipe)}"
    if not error.args or not isinstance(error.args[0], str):
        error.args = (f"\nThis exception is {note}",)
    elif "thrown by __iter__ of" not in error.args[0] and (
        "single iterator per IterDataPipe constraint" not in error.args[0]
    ):
        text = f"{error.args[0]}\nThis exception is {note}"
        error.args = (text, *error.args[1:])


def _generating(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def iterate(pipe: Any) -> Iterator[Any]:
        if pipe._fast_forward_iterator is not None:
            restored, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            pipe._snapshot_state = _SnapshotState.Iterating
            yield from restored
            return
        number = _start(pipe)
        try:
            for item in func(pipe):
                pipe._number_of_samples_yielded += 1
                yield item
                _check_valid(pipe, number)
        except Exception as error:
            _noted(error, pipe)
            raise

    return iterate


def _returning(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def iterate(pipe: Any) -> Any:
        iterator = func(pipe)
        pipe._snapshot_state = _SnapshotState.Iterating
        if pipe._fast_forward_iterator is not None:
            restored, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
            return restored
        return _Checked(iterator, pipe, _start(pipe))

    return iterate


def _counting(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def step(pipe: Any) -> Any:
        result = func(pipe)
        pipe._number_of_samples_yielded += 1
        return result

    return step


def _resetting(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def reset(pipe: Any) -> None:
        # A pipe that was moved on to where it was is not to begin anew.
        if pipe._snapshot_state is not _SnapshotState.Restored:
            pipe._number_of_samples_yielded = 0
            pipe._snapshot_state = _SnapshotState.Iterating
            func(pipe)

    return reset


def hook(cls: Any) -> None:
    """Puts the rule around the methods that a class of pipes defines."""
    own = vars(cls)
    if "__iter__" in own:
        generates = inspect.isgeneratorfunction(own["__iter__"])
        cls.__iter__ = (_generating if generates else _returning)(own["__iter__"])
        if "__next__" in own and not generates:
            cls.__next__ = _counting(own["__next__"])
    if "reset" in own:
        cls.reset = _resetting(own["reset"])
