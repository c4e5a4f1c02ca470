"""Where members of a group leave words for each other.

https://docs.pytorch.org/docs/2.13/distributed.html#distributed-key-value-store
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from torchshim.distributed._dist_errors import DistStoreError
from torchshim.distributed._words import Words

__all__ = ["HashStore", "PrefixStore", "Store"]


def _as_bytes(value: Any, function: str) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise TypeError(
        f"{function}(): values are str or bytes, not {type(value).__name__}"
    )


_NO_QUEUES = "queue support is not implemented."
# What is told of an operation that a program's own store lacks.
_LACKING = {
    "queue_push": _NO_QUEUES,
    "queue_pop": _NO_QUEUES,
    "queue_len": _NO_QUEUES,
    "list_keys": "listKeys support is not implemented.",
}
# PyTorch's names of those without which no store can be.
_NEEDED = {name: name for name in ("add", "check", "wait", "clone")}
_NEEDED |= {"delete_key": "deleteKey", "num_keys": "getNumKeys"}


def _lacking(operation: str) -> Exception:
    if operation in _LACKING:
        return NotImplementedError(_LACKING[operation])
    if operation in _NEEDED:
        own = f"::c10d::Store::{_NEEDED[operation]}"
        return RuntimeError(f'Tried to call pure virtual function "{own}"')
    return RuntimeError("Not implemented.")


class Store:
    """Values of bytes by keys; reading one waits until it is there.

    A kind of store says in `_call` where its operations are carried out; a program's
    own class has the methods themselves, with values of bytes.
    """

    # Keys that PyTorch's store keeps for itself, and counts.
    _internal = 0

    def __init__(self, timeout: timedelta = timedelta(seconds=300)) -> None:
        self._timeout = timeout

    def _call(
        self, operation: str, arguments: list[bytes], timeout: timedelta | None = None
    ) -> list[bytes]:
        if getattr(type(self), operation) is getattr(Store, operation):
            return self._composed(operation, arguments)
        return by_method(self, operation, arguments, timeout)

    def _composed(self, operation: str, arguments: list[bytes]) -> list[bytes]:
        """An operation that a program's own store lacks, of those that it has."""
        keys = [each.decode() for each in arguments]
        if operation == "multi_get":
            return [self.get(key) for key in keys]
        if operation == "multi_set":
            for key, value in zip(keys[::2], arguments[1::2], strict=True):
                self.set(key, value)
            return []
        if operation == "append":
            before, wanted = b"", arguments[1]
            while (found := self.compare_set(keys[0], before, wanted)) != wanted:
                before, wanted = found, found + arguments[1]
            return []
        raise _lacking(operation)

    def _key(self, key: str) -> bytes:
        if not isinstance(key, str):
            raise TypeError(f"keys are str, not {type(key).__name__}")
        return key.encode()

    @property
    def timeout(self) -> timedelta:
        """How long reading waits."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Says how long reading waits."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Keeps a value."""
        self._call("set", [self._key(key), _as_bytes(value, "set")])

    def get(self, key: str) -> bytes:
        """The value, when it is there. DistStoreError when it does not come."""
        return self._call("get", [self._key(key)])[0]

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which is 0 at first: the sum."""
        if not isinstance(amount, int):
            raise TypeError(f"add(): an int is needed, not {type(amount).__name__}")
        return int(self._call("add", [self._key(key), str(int(amount)).encode()])[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Lengthens a value."""
        self._call("append", [self._key(key), _as_bytes(value, "append")])

    def compare_set(
        self, key: str, expected_value: str | bytes, desired_value: str | bytes
    ) -> bytes:
        """Replaces a value if it is the expected one: what is there afterwards.

        A key that is not there gets a value where an empty one is expected.
        """
        values = [_as_bytes(v, "compare_set") for v in (expected_value, desired_value)]
        return self._call("compare_set", [self._key(key), *values])[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys are there."""
        self._call("wait", [self._key(key) for key in keys], timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return bool(self._call("check", [self._key(key) for key in keys]))

    def delete_key(self, key: str) -> bool:
        """Forgets a value: whether it was there."""
        return bool(self._call("delete_key", [self._key(key)]))

    def num_keys(self) -> int:
        """The number of keys."""
        return int(self._call("num_keys", [])[0]) + self._internal

    def list_keys(self) -> list[str]:
        """The keys, in no order."""
        return [key.decode() for key in self._call("list_keys", [])]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Keeps several values."""
        pairs = zip(keys, values, strict=True)
        both = [(self._key(k), _as_bytes(v, "multi_set")) for k, v in pairs]
        self._call("multi_set", [each for pair in both for each in pair])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Several values, when they are there."""
        return self._call("multi_get", [self._key(key) for key in keys])

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Puts a value at the end of a queue, which `get` knows nothing of."""
        self._call("queue_push", [self._key(key), _as_bytes(value, "queue_push")])

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Takes the first value of a queue.

        Waits for one, or raises QueueEmptyError without `block`.
        """
        return self._call("queue_pop", [self._key(key), b"1" if block else b""])[0]

    def queue_len(self, key: str) -> int:
        """The length of a queue."""
        return int(self._call("queue_len", [self._key(key)])[0])

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` can be used at once."""
        return type(self)._call is not Store._call

    def clone(self) -> Store:
        """Another store on the same values."""
        if type(self)._call is Store._call:
            raise _lacking("clone")
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made


class HashStore(Store):
    """A store of the threads of one process."""

    def __init__(self) -> None:
        super().__init__()
        self._words = Words()

    def _call(
        self, operation: str, arguments: list[bytes], timeout: timedelta | None = None
    ) -> list[bytes]:
        limit = self._timeout if timeout is None else timeout
        return self._words.call(operation, arguments, limit.total_seconds())


class PrefixStore(Store):
    """Another store, whose keys begin with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("store argument cannot be None")
        super().__init__()
        self._prefix, self.underlying_store = prefix, store
        self._internal = store._internal

    @property
    def _underlying_non_prefix_store(self) -> Store:
        found: Store = self
        while isinstance(found, PrefixStore):
            found = found.underlying_store
        return found

    def _call(
        self, operation: str, arguments: list[bytes], timeout: timedelta | None = None
    ) -> list[bytes]:
        return self.underlying_store._call(operation, arguments, timeout)

    def _key(self, key: str) -> bytes:
        return self.underlying_store._key(f"{self._prefix}/{key}")

    @property
    def timeout(self) -> timedelta:
        """That of the other store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Says how long reading waits, of the other store, too."""
        self.underlying_store.set_timeout(timeout)

    def has_extended_api(self) -> bool:
        """As the other store."""
        return self.underlying_store.has_extended_api()

    def delete_key(self, key: str) -> bool:
        """Forgets a value: whether it was there."""
        return self.underlying_store.delete_key(f"{self._prefix}/{key}")


def by_method(
    store: Any, operation: str, arguments: list[bytes], timeout: timedelta | None
) -> list[bytes]:
    """Carries out an operation by the store's method of that name."""
    method, first = getattr(store, operation), arguments[:1]
    keys = [each.decode() for each in arguments]
    if operation == "multi_set":
        method(keys[::2], arguments[1::2])
        return []
    if operation == "multi_get":
        return list(method(keys))
    if operation == "wait":
        method(keys) if timeout is None else method(keys, timeout)
        return []
    if operation == "check":
        return first if method(keys) else []
    if operation == "delete_key":
        return first if method(*keys) else []
    if operation == "list_keys":
        return [key.encode() for key in method()]
    if operation == "queue_pop":
        return [method(keys[0], bool(arguments[1]))]
    amount = [int(arguments[1])] if operation == "add" else arguments[1:]
    found = method(*keys[:1], *amount)
    if operation in ("add", "num_keys", "queue_len"):
        return [str(found).encode()]
    return [found] if operation in ("get", "compare_set") else []


def wait_failed(keys: Sequence[bytes], timeout: timedelta) -> DistStoreError:
    """What a store with a server says when the time is over."""
    named = ", ".join(f"/{key.decode()}" for key in keys)
    milliseconds = timeout // timedelta(milliseconds=1)
    return DistStoreError(f"wait timeout after {milliseconds}ms, keys: {named}")
