"""What decides, in each thread, whether history is recorded.

https://docs.pytorch.org/docs/2.13/notes/autograd.html#locally-disable-grad-doc
"""

from __future__ import annotations

import threading
from typing import Any

from torchshim._arguments import check_bool
from torchshim._core.record import local
from torchshim._core.storage import TensorBase, set_version, version_of, views
from torchshim.autograd._contextlib import (
    _DecoratorContextManager,
    _NoParamDecoratorContextManager,
)

__all__ = [
    "enable_grad",
    "enforce_grad_layout_policy",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]


def _set_grad(mode: Any) -> None:
    local.rec.set_grad(bool(mode))


def is_grad_enabled() -> bool:
    """Whether operators record history in this thread.

    https://docs.pytorch.org/docs/2.13/generated/torch.is_grad_enabled.html

    >>> is_grad_enabled()
    True
    """
    return local.rec.grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    https://docs.pytorch.org/docs/2.13/generated/torch.is_inference_mode_enabled.html

    >>> is_inference_mode_enabled()
    False
    """
    return local.rec.inference


class no_grad(_NoParamDecoratorContextManager):
    """Results do not require grad, whatever their operands are.

    A context manager and a decorator, of this thread alone.
    https://docs.pytorch.org/docs/2.13/generated/torch.no_grad.html

    >>> with no_grad():
    ...     is_grad_enabled()
    False
    """

    prev = False

    def __enter__(self) -> None:
        rec = local.rec
        self.prev = rec.grad
        rec.set_grad(False)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        local.rec.set_grad(self.prev)


class enable_grad(_NoParamDecoratorContextManager):
    """History is recorded again within `no_grad`.

    A context manager and a decorator, of this thread alone.
    https://docs.pytorch.org/docs/2.13/generated/torch.enable_grad.html

    >>> with no_grad(), enable_grad():
    ...     is_grad_enabled()
    True
    """

    def __enter__(self) -> None:
        rec = local.rec
        self.prev = rec.grad
        rec.set_grad(True)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        local.rec.set_grad(self.prev)


class set_grad_enabled(_DecoratorContextManager):
    """Switches the recording of history on or off: a function, context or decorator.

    https://docs.pytorch.org/docs/2.13/generated/torch.set_grad_enabled.html

    >>> with set_grad_enabled(False):
    ...     is_grad_enabled()
    False
    """

    def __init__(self, mode: bool) -> None:
        self.prev = local.rec.grad
        self.mode = mode
        check_bool("set_grad_enabled", "enabled", mode)
        _set_grad(mode)

    def __call__(self, orig_func: Any) -> Any:
        _set_grad(self.prev)
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        _set_grad(self.mode)

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _set_grad(self.prev)

    def __repr__(self) -> str:
        return f"torch.autograd.grad_mode.set_grad_enabled(mode={self.mode})"

    __str__ = __repr__

    def clone(self) -> set_grad_enabled:
        return self.__class__(self.mode)


class inference_mode(_DecoratorContextManager):
    """`no_grad` and more: tensors made here never take part in recorded history.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.grad_mode.inference_mode.html

    >>> with inference_mode():
    ...     is_inference_mode_enabled(), is_grad_enabled()
    (True, False)
    """

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return object.__new__(cls)
        return cls()(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        rec = local.rec
        self._before = rec.grad, rec.inference, rec.forward
        # Leaving inference mode for a while means recording as usual.
        rec.grad, rec.inference, rec.forward = not self.mode, self.mode, not self.mode
        rec.set_mode()

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        rec = local.rec
        rec.grad, rec.inference, rec.forward = self._before
        rec.set_mode()

    def clone(self) -> inference_mode:
        return self.__class__(self.mode)


class _Flags(threading.local):
    """Switches of PyTorch's engine that change nothing about results here."""

    multithreading = True


_flags = _Flags()


def is_multithreading_enabled() -> bool:
    """Whether backward may use several threads, which it does not here.

    https://docs.pytorch.org/docs/2.13/autograd.html

    >>> is_multithreading_enabled()
    True
    """
    return _flags.multithreading


def is_view_replay_enabled() -> bool:
    """Whether views of an overwritten base are said to be made anew by replay.

    https://docs.pytorch.org/docs/2.13/autograd.html

    >>> is_view_replay_enabled()
    False
    """
    return views.replayed


class set_multithreading_enabled(_DecoratorContextManager):
    """Whether backward may use several threads; the walk here is always one thread's.

    https://docs.pytorch.org/docs/2.13/generated/torch.autograd.grad_mode.set_multithreading_enabled.html

    >>> with set_multithreading_enabled(False):
    ...     pass
    """

    def __init__(self, mode: bool) -> None:
        check_bool("set_multithreading_enabled", "enabled", mode)
        self.prev = _flags.multithreading
        _flags.multithreading = mode
        self.mode = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        _flags.multithreading = self.prev

    def clone(self) -> set_multithreading_enabled:
        return self.__class__(self.mode)


class enforce_grad_layout_policy(_DecoratorContextManager):
    """Whether a new `.grad` takes its parameter's memory order (it does by default).

    https://docs.pytorch.org/docs/2.13/autograd.html#default-gradient-layouts

    >>> with enforce_grad_layout_policy(False):
    ...     pass
    """

    def __init__(self, enable: bool = True) -> None:
        self.prev = local.rec.lays_out_grads
        local.rec.lays_out_grads = enable
        self.mode = enable

    def __call__(self, orig_func: Any) -> Any:
        local.rec.lays_out_grads = self.prev
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        local.rec.lays_out_grads = self.prev

    def clone(self) -> enforce_grad_layout_policy:
        return self.__class__(self.mode)


class _force_original_view_tracking(_DecoratorContextManager):
    """Whether views of an overwritten base are made anew by replay, as here always."""

    def __init__(self, mode: bool) -> None:
        self.prev = views.replayed
        self.mode = mode
        views.replayed = mode

    def __call__(self, orig_func: Any) -> Any:
        views.replayed = self.prev
        return super().__call__(orig_func)

    def __enter__(self) -> None:
        views.replayed = self.mode

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        views.replayed = self.prev

    def clone(self) -> _force_original_view_tracking:
        return self.__class__(self.mode)


class _unsafe_preserve_version_counter(_DecoratorContextManager):
    """Hides the writes of its body from the version counters of some tensors."""

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, TensorBase) else tensors
        if not isinstance(self.tensors, tuple):
            raise AssertionError("Expected tensors to be a tuple")
        self.prev_versions = tuple(map(version_of, self.tensors))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        for tensor, version in zip(self.tensors, self.prev_versions, strict=True):
            set_version(tensor, version)
