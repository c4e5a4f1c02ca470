"""What a pickle mentions, found without making or executing anything."""

from __future__ import annotations

import io
import pickle
from typing import Any

from torchshim._core.dtypes import dtype, uint8
from torchshim._functions.storage import UntypedStorage
from torchshim.serialization import _weights_only
from torchshim.serialization._names import StorageType, storage_type


def globals_in(data: bytes) -> set[str]:
    """The names that a pickle mentions."""
    scan = _Scan(io.BytesIO(data))
    scan.load()
    return scan.names


def storages_in(
    file: Any, weights_only: bool, options: dict[str, Any]
) -> dict[Any, tuple[dtype, Any]]:
    """By key, the dtype and the number of elements of a pickle's storages.

    With `weights_only`, of what may be in such a file; else of any pickle.
    """
    scan = (_Scan if weights_only else _AnyScan)(file, **options)
    scan.load()
    return scan.storages


def _note(storages: dict[Any, tuple[dtype, Any]], saved: Any) -> None:
    if type(saved) is not tuple or len(saved) < 5:
        return
    kind, key, _, count = saved[1:5]
    if kind is UntypedStorage:
        storages[key] = uint8, count
    elif isinstance(kind, StorageType):
        storages[key] = kind.dtype, count


def _storage_type(name: str) -> Any:
    try:
        return storage_type(name)
    except KeyError:
        return None


class _Scan(_weights_only.Unpickler):
    """Reads what `weights_only=True` reads."""

    def __init__(self, file: Any, **options: Any) -> None:
        super().__init__(file, **options)
        self.names: set[str] = set()
        self.storages: dict[Any, tuple[dtype, Any]] = {}

    def find(self, module: str, name: str) -> Any:
        self.names.add(f"{module}.{name}")
        return _storage_type(name)

    def reduce(self) -> None:
        self.stack.pop()

    build = reduce

    def new(self) -> None:
        self.stack.pop()

    def persistent(self) -> None:
        _note(self.storages, self.stack.pop())
        self.stack.append(None)

    def _list(self, verb: str) -> list[Any]:
        return []

    def _dict(self, instruction: str) -> Any:
        return _Nothing


class _AnyScan(pickle.Unpickler):
    """Reads any pickle, with `_Nothing` in the place of all that has a name."""

    def __init__(self, file: Any, **options: Any) -> None:
        super().__init__(file, **options)
        self.storages: dict[Any, tuple[dtype, Any]] = {}

    def find_class(self, module_name: str, global_name: str) -> Any:
        return _storage_type(global_name) or _Nothing

    def persistent_load(self, pid: Any) -> Any:
        _note(self.storages, pid)
        return _Nothing


class _Inert(type):
    """Takes whatever pickles do to classes and objects, and does nothing."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self

    __setitem__ = __setstate__ = append = extend = add = __call__


class _Nothing(metaclass=_Inert):
    """A class that is its own only object."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls
