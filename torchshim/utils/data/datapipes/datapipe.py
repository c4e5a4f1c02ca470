"""Data pipes: data sets that are made of others, a step at a time.

Follows ``torch.utils.data.datapipes``.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from torchshim.utils.data.datapipes._hook_iterator import _SnapshotState, hook
from torchshim.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class DataChunk(list[_T]):
    """A batch of samples; what `batch` and `groupby` give."""

    def __init__(self, items: Iterable[_T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """The samples as text, each as `str` shows it."""
        return f"{indent}[{', '.join(str(item) for item in self)}]"

    def raw_iterator(self) -> Iterator[_T]:
        """The samples."""
        yield from self.items


def load_steps() -> None:
    """Imports the steps that are methods of every pipe."""
    for kind in ("iter", "map"):
        importlib.import_module(f"torchshim.utils.data.datapipes.{kind}")


class _Pipe:
    """What both kinds of pipes have: steps as methods, and hooks of pickling."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: Callable[..., Any] | None = None
    getstate_hook: Callable[..., Any] | None = None
    str_hook: Callable[..., Any] | None = None
    repr_hook: Callable[..., Any] | None = None
    # The class that the functions and hooks of a pipe belong to.
    _kind: Any

    def __getattr__(self, attribute_name: str) -> Any:
        if not attribute_name.startswith("_"):
            load_steps()
        found = self._kind.functions.get(attribute_name)
        if found is None:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '{attribute_name}"
            )
        bound = functools.partial(found, self)
        functools.update_wrapper(bound, found, assigned=("__doc__",))
        return bound

    @classmethod
    def register_function(cls, function_name: str, function: Any) -> None:
        """Makes a function of a pipe a method of all."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls,
        function_name: str,
        cls_to_register: Any,
        enable_df_api_tracing: bool = False,
    ) -> None:
        """Makes a class a method of all pipes; an Exception where the name is taken."""
        if enable_df_api_tracing:
            raise NotImplementedError("pipes of data frames are not supported")
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is "
                "already taken"
            )

        def made(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        functools.update_wrapper(made, cls_to_register, assigned=("__doc__",))
        cls.functions[function_name] = made

    def __getstate__(self) -> Any:
        chosen = self._kind.getstate_hook
        return self.__dict__ if chosen is None else chosen(self.__dict__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._kind.reduce_ex_hook is not None:
            try:
                return self._kind.reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    @classmethod
    def set_getstate_hook(cls, hook_fn: Any) -> None:
        """A function of the state that is pickled; None ends that."""
        if cls._kind.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls._kind.getstate_hook = hook_fn

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Any) -> None:
        """A function that says how a pipe is pickled; None ends that."""
        if cls._kind.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls._kind.reduce_ex_hook = hook_fn

    def __repr__(self) -> str:
        if self.repr_hook is not None:
            return self.repr_hook(self)
        return type(self).__qualname__

    def __str__(self) -> str:
        if self.str_hook is not None:
            return self.str_hook(self)
        return type(self).__qualname__

    def __dir__(self) -> list[str]:
        load_steps()
        return [*super().__dir__(), *self._kind.functions]


class IterDataPipe(_Pipe, IterableDataset[_T_co]):
    """A stream of samples; a subclass defines ``__iter__``, and `reset` if it buffers.

    Steps are methods: ``pipe.map(f).batch(2)``. One iterator of a pipe is valid at a
    time. Follows ``torch.utils.data.IterDataPipe``.

    >>> from torchshim.utils.data.datapipes.iter import IterableWrapper
    >>> list(IterableWrapper(range(4)).map(str).batch(3))
    [['0', '1', '2'], ['3']]
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded: int = 0
    _snapshot_state: _SnapshotState = _SnapshotState.NotStarted
    _fast_forward_iterator: Iterator[Any] | None = None

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        hook(cls)

    def __iter__(self) -> Iterator[_T_co]:
        return self  # type: ignore[return-value]

    def reset(self) -> None:
        """Back to the beginning: called when an iterator is made."""


class DFIterDataPipe(IterDataPipe[Any]):
    """A pipe of data frames; there are no steps for those here."""

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Pipe, Dataset[_T_co]):
    """Samples by key; a subclass defines ``__getitem__``, and mostly ``__len__``.

    Steps are methods: ``pipe.map(f).batch(2)``. Follows
    ``torch.utils.data.MapDataPipe``.

    >>> from torchshim.utils.data.datapipes.map import SequenceWrapper
    >>> SequenceWrapper(range(4)).map(str).batch(3)[1]
    ['3']
    """

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


IterDataPipe._kind = IterDataPipe
MapDataPipe._kind = MapDataPipe
hook(IterDataPipe)
