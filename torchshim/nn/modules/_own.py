"""Methods that layers share, of which each has its own by name.

PyTorch writes `forward` out for each layer. Its name is in what Python says of a wrong
call: `Conv2d.forward() missing 1 required positional argument`.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

_Function = TypeVar("_Function")
_MARK = "of_each"


def of_each(function: _Function) -> _Function:
    """Declares that direct subclasses have this method as one of their own."""
    setattr(function, _MARK, True)
    return function


def name_methods(cls: Any) -> None:
    """Gives a class its own copies of such methods of its bases."""
    for name in ("__init__", "forward"):
        shared: Any = None if name in vars(cls) else getattr(cls, name)
        if not hasattr(shared, _MARK):
            continue
        own = FunctionType(
            shared.__code__,
            shared.__globals__,
            name,
            shared.__defaults__,
            shared.__closure__,
        )
        own.__kwdefaults__ = shared.__kwdefaults__
        own.__annotations__ = shared.__annotations__
        own.__doc__ = shared.__doc__
        own.__module__ = shared.__module__
        own.__qualname__ = f"{cls.__qualname__}.{name}"
        type.__setattr__(cls, name, own)
