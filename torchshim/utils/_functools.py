"""Results that are kept, of methods and of functions without arguments."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

_cache_sentinel: Any = object()


def cache_method(f: Callable[..., Any]) -> Callable[..., Any]:
    """As `functools.cache`, for methods: the object keeps the results itself.

    >>> class Squares:
    ...     @cache_method
    ...     def of(self, x):
    ...         print("computed")
    ...         return x * x
    >>> squares = Squares()
    >>> squares.of(3), squares.of(3)
    computed
    (9, 9)
    """
    cache_name = "_cache_method_" + f.__name__

    @functools.wraps(f)
    def wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise AssertionError("cache_method does not accept keyword arguments")
        kept = getattr(self, cache_name, None)
        if not kept:
            kept = {}
            setattr(self, cache_name, kept)
        if args not in kept:
            kept[args] = f(self, *args)
        return kept[args]

    return wrap


@functools.cache
def _executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=2)


def prefetchable_cache(func: Callable[[], Any]) -> Any:
    """The result of a function, computed once: when asked for, or ahead in a thread.

    The function has `prefetch()`, which begins, `set(value)` and `clear()`.
    """
    lock = threading.Lock()
    kept: Any = _cache_sentinel
    coming: Future[Any] | None = None

    def wrapper() -> Any:
        nonlocal kept, coming
        with lock:
            if kept is _cache_sentinel:
                kept = func() if coming is None else coming.result()
                coming = None
            return kept

    def set_value(val: Any) -> None:
        nonlocal kept
        with lock:
            if kept is not _cache_sentinel:
                raise RuntimeError("prefetchable_cache value already set")
            kept = val

    def clear() -> None:
        nonlocal kept, coming
        with lock:
            kept, coming = _cache_sentinel, None

    def prefetch() -> None:
        nonlocal coming
        with lock:
            if kept is _cache_sentinel and coming is None:
                coming = _executor().submit(func)

    vars(wrapper).update(set=set_value, clear=clear, prefetch=prefetch)
    return wrapper
