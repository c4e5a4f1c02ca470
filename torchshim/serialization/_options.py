"""Settings of `save` and `load`; `torch.utils.serialization.config` shows them."""

from __future__ import annotations

import mmap
import sys
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any


class LoadEndianness(Enum):
    """The byte order of files that do not tell."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


MAP_SHARED: int | None = getattr(mmap, "MAP_SHARED", None)
MAP_PRIVATE: int | None = getattr(mmap, "MAP_PRIVATE", None)


class load:
    """What holds for `torch.load`."""

    mmap: bool = False
    endianness: LoadEndianness | None = None
    mmap_flags: int | None = None if sys.platform == "win32" else 2
    calculate_storage_offsets: bool = False


class save:
    """What holds for `torch.save`."""

    compute_crc32: bool = True
    use_pinned_memory_for_d2h: bool = False
    storage_alignment: int = 64


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of files without a mark; None stands for little endian."""
    return load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files without a mark."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    load.endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` was asked for checksums; files here always have them."""
    return save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Asks for checksums of the records, or not to need them."""
    save.compute_crc32 = compute_crc32


def get_default_mmap_options() -> int | None:
    """How files are mapped: `mmap.MAP_PRIVATE` or `mmap.MAP_SHARED`."""
    return load.mmap_flags


class set_default_mmap_options:
    """Sets how files are mapped, for good or as a context manager.

    With `mmap.MAP_SHARED`, writes to tensors loaded with ``mmap=True`` reach the file.
    """

    def __init__(self, flags: int) -> None:
        if MAP_PRIVATE is None:
            raise RuntimeError(
                "Changing the default mmap options is currently not supported for "
                "Windows"
            )
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected "
                f"mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev = load.mmap_flags
        load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        load.mmap_flags = self.prev


class _Skipping(threading.local):
    """Whether this thread leaves the data of storages out."""

    on = False


skipping = _Skipping()


class skip_data:
    """Within it `save` leaves zeros in place of data, and `load` reads no data."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = skipping.on
        skipping.on = True

    def __exit__(self, *error: object) -> None:
        skipping.on = self._before


# What programs allow beyond the built-in list.
_allowed: set[Any] = set()


def add_safe_globals(safe_globals: list[Callable[..., Any] | tuple[Any, str]]) -> None:
    """Allows functions and classes in files loaded with ``weights_only=True``.

    They may be called while such a file is loaded. A pair gives the name under which
    the file mentions one.
    """
    global _allowed
    _allowed = _allowed | set(safe_globals)


def get_safe_globals() -> list[Callable[..., Any] | tuple[Any, str]]:
    """What `add_safe_globals` has allowed."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Takes back all that `add_safe_globals` has allowed."""
    global _allowed
    _allowed = set()


class safe_globals:
    """Allows functions and classes as long as the context lasts."""

    def __init__(
        self, safe_globals: list[Callable[..., Any] | tuple[Any, str]]
    ) -> None:
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        add_safe_globals(self.safe_globals)

    def __exit__(self, *error: object) -> None:
        global _allowed
        _allowed = _allowed - set(self.safe_globals)
