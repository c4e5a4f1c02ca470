"""Context managers that are decorators too, on generators as well."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any

from torchshim import _warnings as warnings


class _DecoratorContextManager:
    """A context manager that can be used as a decorator: a fresh one for each call."""

    def __call__(self, orig_func: Any) -> Any:
        if inspect.isclass(orig_func):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future "
                "versions. You should only decorate functions or methods. To preserve "
                "the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
            return wrap(self.clone, lambda *args, **kwargs: orig_func(*args, **kwargs))
        return wrap(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc_info: object) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Another one with the same arguments."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """As above, where the class itself is the decorator: `@no_grad`."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        if orig_func is None:
            return object.__new__(cls)
        return cls()(orig_func)


def wrap(factory: Callable[[], Any], function: Callable[..., Any]) -> Any:
    """`function` run in a context of its own at each call."""
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(factory, function)

    @functools.wraps(function)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with factory():
            return function(*args, **kwargs)

    return decorate_context


def _wrap_generator(
    factory: Callable[[], Any], function: Callable[..., Any]
) -> Callable[..., Any]:
    """A generator whose body, but not its caller, runs in the context."""

    @functools.wraps(function)
    def generator_context(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = function(*args, **kwargs)
        resume: Callable[..., Any] = generator.send
        given: tuple[Any, ...] = (None,)
        while True:
            try:
                with factory():
                    response = resume(*given)
            except StopIteration as stop:
                return stop.value
            try:
                resume, given = generator.send, ((yield response),)
            except GeneratorExit:
                with factory():
                    generator.close()
                raise
            except BaseException as error:
                resume, given = generator.throw, (error,)

    return generator_context
