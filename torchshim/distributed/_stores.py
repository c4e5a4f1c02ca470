"""Where members of a group leave words for each other: threads of one process.

https://docs.pytorch.org/docs/2.13/distributed.html#distributed-key-value-store
"""

from __future__ import annotations

import socket
import threading
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torchshim._errors import Unsupported

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "HashStore",
    "PrefixStore",
    "QueueEmptyError",
    "Store",
    "TCPStore",
]


class DistError(RuntimeError):
    """What distributed programs raise."""


class DistBackendError(DistError):
    """What carries messages failed."""


class DistNetworkError(DistError):
    """A network failed."""


class DistStoreError(DistError):
    """What a store raises."""


class QueueEmptyError(DistStoreError):
    """A queue has nothing to give."""


for _kind in (DistError, DistBackendError, DistNetworkError, DistStoreError):
    _kind.__module__ = "torch.distributed"
QueueEmptyError.__module__ = "torch.distributed"


class _Words:
    """What a store holds, and how its users wait for one another."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.changed = threading.Condition()


def _as_bytes(value: Any, function: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(
        f"{function}(): values are str or bytes, not {type(value).__name__}"
    )


class Store:
    """Values of bytes by keys; reading one waits until it is there."""

    _words: _Words
    # Keys that PyTorch's store keeps for itself, and counts.
    _internal = 0
    _error: type[Exception] = DistStoreError

    def __init__(self) -> None:
        self._words = _Words()
        self._timeout = timedelta(seconds=300)

    @property
    def timeout(self) -> timedelta:
        """How long reading waits."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Says how long reading waits."""
        self._timeout = timeout

    def _key(self, key: str) -> str:
        return key

    def set(self, key: str, value: str | bytes) -> None:
        """Keeps a value."""
        with self._words.changed:
            self._words.values[self._key(key)] = _as_bytes(value, "set")
            self._words.changed.notify_all()

    def get(self, key: str) -> bytes:
        """The value, when it is there."""
        self._wait([key], self.timeout, f"Timeout waiting for key: {key}")
        return self._words.values[self._key(key)]

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which is 0 at first: the sum."""
        with self._words.changed:
            before = self._words.values.get(self._key(key), b"0")
            try:
                total = int(before) + amount
            except ValueError:
                raise ValueError("stoll") from None
            self._words.values[self._key(key)] = str(total).encode()
            self._words.changed.notify_all()
        return total

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthens a value."""
        with self._words.changed:
            before = self._words.values.get(self._key(key), b"")
            self._words.values[self._key(key)] = before + _as_bytes(value, "append")
            self._words.changed.notify_all()

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Replaces a value if it is the expected one: what is there afterwards.

        A key that is not there gets a value where an empty one is expected.
        """
        expected = _as_bytes(expected_value, "compare_set")
        with self._words.changed:
            found = self._words.values.get(self._key(key))
            if found is None and expected:
                return expected
            if found is None or found == expected:
                found = _as_bytes(desired_value, "compare_set")
                self._words.values[self._key(key)] = found
                self._words.changed.notify_all()
        return found

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are there."""
        self._wait(keys, self.timeout if timeout is None else timeout, "")

    def _wait(self, keys: Sequence[str], timeout: timedelta, missing: str) -> None:
        wanted = [self._key(key) for key in keys]
        end = time.monotonic() + timeout.total_seconds()
        words = self._words
        with words.changed:
            while not all(key in words.values for key in wanted):
                if not words.changed.wait(max(end - time.monotonic(), 0)):
                    raise self._error(self._told(missing, timeout))

    def _told(self, missing: str, timeout: timedelta) -> str:
        return "Wait timeout"

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(self._key(key) in self._words.values for key in keys)

    def delete_key(self, key: str) -> bool:
        """Forgets a value: whether it was there."""
        with self._words.changed:
            return self._words.values.pop(self._key(key), None) is not None

    def num_keys(self) -> int:
        """The number of keys."""
        return len(self._words.values) + self._internal

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Keeps several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Several values, when they are there."""
        return [self.get(key) for key in keys]

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` can be used at once."""
        return True

    def clone(self) -> Store:
        """Another store on the same values."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made


class HashStore(Store):
    """A store of the threads of one process."""


def _alone(kind: str, world_size: int | None) -> None:
    if world_size != 1:
        raise Unsupported(
            f"torch.distributed.{kind}: a store of several processes is not supported "
            "(world_size=1 makes one of this process)"
        )


# A file is gone with the last store on it.
_files: weakref.WeakValueDictionary[str, _Words] = weakref.WeakValueDictionary()


class FileStore(Store):
    """A store by the name of a file; nothing is written to it."""

    _internal = 1
    _error = RuntimeError

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        _alone("FileStore", world_size)
        super().__init__()
        self._words = _files.setdefault(file_name, self._words)
        self._path = file_name

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    def _told(self, missing: str, timeout: timedelta) -> str:
        milliseconds = timeout // timedelta(milliseconds=1)
        return f"{missing} after {milliseconds} ms" if missing else "Wait timeout"

    def has_extended_api(self) -> bool:
        """False."""
        return False

    def delete_key(self, key: str) -> bool:
        """Forgets a value: True."""
        super().delete_key(key)
        return True


class TCPStore(Store):
    """A store by the name of a host and a port; nobody is met there."""

    _internal = 1

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        _alone("TCPStore", world_size)
        if not is_master:
            raise Unsupported("torch.distributed.TCPStore: there is no other process")
        super().__init__()
        self._timeout = timeout
        if port == 0:
            with socket.socket() as free:
                free.bind(("", 0))
                port = free.getsockname()[1]
        self.host, self.port = host_name, port


class PrefixStore(Store):
    """Another store, whose keys begin with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._words = store._words
        self._prefix, self.underlying_store = prefix, store
        self._internal, self._error = store._internal, store._error

    @property
    def timeout(self) -> timedelta:
        """That of the other store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Says how long reading waits, of the other store, too."""
        self.underlying_store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return self.underlying_store._key(f"{self._prefix}/{key}")

    def _told(self, missing: str, timeout: timedelta) -> str:
        return self.underlying_store._told(missing, timeout)

    def has_extended_api(self) -> bool:
        """As the other store."""
        return self.underlying_store.has_extended_api()

    def delete_key(self, key: str) -> bool:
        """Forgets a value: whether it was there."""
        return self.underlying_store.delete_key(f"{self._prefix}/{key}")
