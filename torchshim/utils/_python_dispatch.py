"""`__torch_dispatch__` is not supported; what programs ask about it is answered.

https://docs.pytorch.org/docs/2.13/notes/extending.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torchshim._errors import Unsupported
from torchshim._overrides import NO_DISPATCH

__all__ = [
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
]


class TorchDispatchMode:
    """Refused: NotImplementedError says what to use in its place."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise Unsupported(NO_DISPATCH)

    def __enter__(self) -> Any:
        raise Unsupported(NO_DISPATCH)

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        raise Unsupported(NO_DISPATCH)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor wraps others for `__torch_dispatch__`: none does."""
    return False


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether a class wraps tensors for `__torch_dispatch__`: none does."""
    return False


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a `TorchDispatchMode` is in force: there are none."""
    return False


BaseTorchDispatchMode = TorchDispatchMode


def _refuse(*args: Any, **kwargs: Any) -> Any:
    """Refused as `TorchDispatchMode` is."""
    raise Unsupported(NO_DISPATCH)


_pop_mode = _pop_mode_temporarily = _push_mode = _refuse
return_and_correct_aliasing = transform_subclass = _refuse


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A block without dispatch modes: those that were in force, none."""
    yield []


def _len_torch_dispatch_stack() -> int:
    """How many dispatch modes are in force: none."""
    return 0


def _get_current_dispatch_mode() -> None:
    """The dispatch mode on top: there is none."""


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The dispatch modes in force: there are none."""
    return []
