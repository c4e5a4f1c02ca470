"""A store in a file that processes share: a log of what was done, under a lock."""

from __future__ import annotations

import fcntl
import os
import struct
import threading
import time
import weakref
from datetime import timedelta
from typing import BinaryIO

from torchshim.distributed._dist_errors import DistStoreError
from torchshim.distributed._stores import Store
from torchshim.distributed._words import OPERATIONS, Words

__all__ = ["FileStore"]

_HEAD = struct.Struct("!BI")
_SIZE = struct.Struct("!Q")
# How many stores there are on the file, whose last one removes it.
_USERS = b"refcount"
_READS = ("get", "wait", "check", "num_keys", "list_keys", "multi_get")
# How often a store looks whether a value has come.
_PAUSE = 0.005


class FileStore(Store):
    """A store by the name of a file, which the last of its users removes.

    `world_size` is what PyTorch takes and does not use. RuntimeError when a value does
    not come in time, or the file cannot be opened.
    """

    _internal = 0

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path = file_name
        self._words, self._read = Words(), 0
        self._lock = threading.Lock()
        self._call("add", [_USERS, b"1"])
        self._leaving = weakref.finalize(self, _leave, file_name)

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def _call(
        self, operation: str, arguments: list[bytes], timeout: timedelta | None = None
    ) -> list[bytes]:
        if operation.startswith("queue"):
            raise NotImplementedError("queue support is not implemented.")
        limit = self._timeout if timeout is None else timeout
        end = time.monotonic() + limit.total_seconds()
        while True:
            try:
                with self._lock:
                    return self._once(operation, arguments)
            except DistStoreError:
                if time.monotonic() < end:
                    time.sleep(_PAUSE)
                    continue
            raise RuntimeError(_told(operation, arguments, limit))

    def _once(self, operation: str, arguments: list[bytes]) -> list[bytes]:
        """What an operation gives now. DistStoreError if a value is not there."""
        try:
            file = open(self._path, "a+b")
        except OSError as error:
            raise RuntimeError(f"open({self._path}): {error.strerror}") from None
        with file:
            kind = fcntl.LOCK_SH if operation in _READS else fcntl.LOCK_EX
            fcntl.flock(file, kind)
            file.seek(self._read)
            _replay(file, self._words)
            self._read = file.tell()
            found = self._words.call(operation, arguments)
            if operation not in _READS:
                file.write(_record(operation, arguments))
                file.flush()
                self._read = file.tell()
        return found

    def has_extended_api(self) -> bool:
        """False."""
        return False

    def delete_key(self, key: str) -> bool:
        """Forgets a value: True."""
        super().delete_key(key)
        return True

    def clone(self) -> Store:
        """Another store on the same file."""
        return FileStore(self._path)


def _told(operation: str, arguments: list[bytes], limit: timedelta) -> str:
    if operation == "wait":
        return "Wait timeout"
    milliseconds = limit // timedelta(milliseconds=1)
    key = arguments[0].decode()
    return f"Timeout waiting for key: {key} after {milliseconds} ms"


def _record(operation: str, arguments: list[bytes]) -> bytes:
    parts = [_HEAD.pack(OPERATIONS.index(operation), len(arguments))]
    for each in arguments:
        parts += (_SIZE.pack(len(each)), each)
    return b"".join(parts)


def _replay(file: BinaryIO, words: Words) -> None:
    """Does what the rest of a file says was done."""
    while head := file.read(_HEAD.size):
        number, count = _HEAD.unpack(head)
        sizes = (_SIZE.unpack(file.read(_SIZE.size))[0] for _ in range(count))
        words.call(OPERATIONS[number], [file.read(size) for size in sizes])


def _leave(path: str) -> None:
    """One user less; the last one removes the file."""
    try:
        with open(path, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            words = Words()
            _replay(file, words)
            arguments = [_USERS, b"-1"]
            if int(words.call("add", arguments)[0]) <= 0:
                os.remove(path)
            else:
                file.write(_record("add", arguments))
    except OSError:  # somebody removed it
        pass
