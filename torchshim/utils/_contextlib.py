"""Context managers that are decorators too, as `torch.utils._contextlib`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torchshim.autograd._contextlib import (
    _DecoratorContextManager as _DecoratorContextManager,
)
from torchshim.autograd._contextlib import (
    _NoParamDecoratorContextManager as _NoParamDecoratorContextManager,
)
from torchshim.autograd._contextlib import _wrap_generator as _wrap_generator
from torchshim.autograd._contextlib import wrap


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function run in a context, or in a new one that `ctx` makes for each call.

    Classes are refused. Of a generator the body runs in the context, not its caller.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has "
            "__enter__), making it ambiguous which interface to use.  If you intended "
            "to pass a context manager factory, rewrite your call as "
            "context_decorator(lambda: ctx()); if you intended to pass a context "
            "manager directly, rewrite your call as context_decorator(lambda: ctx)"
        )
    if inspect.isclass(func):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the "
            "constructor or all methods should have the context manager applied; "
            "additionally, decorating a class at definition-site will prevent use of "
            "the identifier as a conventional type.  To specify which methods to "
            "decorate, decorate each of them individually."
        )
    return wrap(ctx if callable(ctx) else lambda: ctx, func)
