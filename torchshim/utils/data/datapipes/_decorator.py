"""Decorators of pipes: their names as methods, and which are not deterministic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._errors import unsupported
from torchshim.utils.data.datapipes.datapipe import (
    IterDataPipe,
    MapDataPipe,
    load_steps,
)

_REASON = "pipes have no types at run time here"
argument_validation = unsupported("utils.data.argument_validation", _REASON)
runtime_validation = unsupported("utils.data.runtime_validation", _REASON)
runtime_validation_disabled = unsupported(
    "utils.data.runtime_validation_disabled", _REASON
)

_guaranteed = [False]


class functional_datapipe:
    """Makes a class of pipes a method of all pipes of its kind, under this name."""

    name: str

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        made_by = cls.cls if isinstance(cls, non_deterministic) else cls
        made_by = getattr(getattr(cls, "__self__", None), "cls", made_by)
        if not isinstance(made_by, type):
            raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
        if not made_by.__module__.startswith("torchshim."):
            load_steps()  # whose names are taken
        if issubclass(made_by, IterDataPipe):
            IterDataPipe.register_datapipe_as_function(
                self.name, cls, self.enable_df_api_tracing
            )
        elif issubclass(made_by, MapDataPipe):
            MapDataPipe.register_datapipe_as_function(self.name, cls)
        return cls


class guaranteed_datapipes_determinism:
    """From when it is made to the end of its block, pipes that are not are refused."""

    prev: bool

    def __init__(self) -> None:
        self.prev = _guaranteed[0]
        _guaranteed[0] = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _guaranteed[0] = self.prev


class non_deterministic:
    """Says of a class of pipes that they are not deterministic.

    Given a function instead, that tells from the arguments whether a pipe is not.
    """

    cls: Any = None
    deterministic_fn: Callable[..., Any]

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, "
                    f"but {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            self._refuse(_guaranteed[0], "")
            return self.cls(*args, **kwargs)
        if not (isinstance(args[0], type) and issubclass(args[0], IterDataPipe)):
            raise TypeError(
                f"Only `IterDataPipe` can be decorated, but {args[0].__name__} is found"
            )
        self.cls = args[0]
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> IterDataPipe[Any]:
        """Makes a pipe, unless it is not deterministic and has to be."""
        found = self.deterministic_fn(*args, **kwargs)
        if not isinstance(found, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to "
                f"return a boolean value, but {type(found)} is found"
            )
        self._refuse(_guaranteed[0] and found, " with the inputs")
        return self.cls(*args, **kwargs)

    def _refuse(self, refused: bool, how: str) -> None:
        if refused:
            raise TypeError(
                f"{self.cls.__name__} is non-deterministic{how}, but you set "
                "'guaranteed_datapipes_determinism'. You can turn off determinism for "
                "this DataPipe if that is acceptable for your application"
            )
