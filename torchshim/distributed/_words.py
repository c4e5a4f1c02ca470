"""What a store holds, and its operations: on bytes, wherever they come from.

The threads of a process share one `Words`; a server calls its own for its clients.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from torchshim.distributed._dist_errors import DistStoreError, QueueEmptyError

__all__ = ["OPERATIONS", "Words"]

# In this order they are numbered in messages to a server.
OPERATIONS = (
    "set",
    "get",
    "add",
    "append",
    "compare_set",
    "wait",
    "check",
    "delete_key",
    "num_keys",
    "list_keys",
    "multi_set",
    "multi_get",
    "queue_push",
    "queue_pop",
    "queue_len",
)


class Words:
    """Values by keys, and how their users wait for one another."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}
        self.changed = threading.Condition()

    def call(
        self, operation: str, arguments: list[bytes], timeout: float = 0.0
    ) -> list[bytes]:
        """The results of one of `OPERATIONS`, which waits `timeout` seconds at most.

        ValueError where a number is added to what is none; DistStoreError when the time
        is over, QueueEmptyError of a queue that is not waited for.
        """
        with self.changed:
            if operation in ("get", "wait", "multi_get"):
                self._until(lambda: self._all(arguments), timeout)
                return [self.values[key] for key in arguments if operation != "wait"]
            if operation == "queue_pop":
                key, block = arguments
                return [self._pop(key, timeout if block == b"1" else None)]
            found: list[bytes] = getattr(self, f"_{operation}")(*arguments)
            self.changed.notify_all()
            return found

    def _until(self, there: Callable[[], bool], timeout: float) -> None:
        end = time.monotonic() + timeout
        while not there():
            left = end - time.monotonic()
            if left <= 0 or not self.changed.wait(left):
                raise DistStoreError("Wait timeout")

    def _all(self, keys: list[bytes]) -> bool:
        return all(key in self.values for key in keys)

    def _pop(self, key: bytes, timeout: float | None) -> bytes:
        if timeout is not None:
            self._until(lambda: bool(self.queues.get(key)), timeout)
        queue = self.queues.get(key)
        if not queue:
            raise QueueEmptyError("queue is empty")
        return queue.popleft()

    def _set(self, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = value
        return []

    def _multi_set(self, *keys_and_values: bytes) -> list[bytes]:
        self.values.update(
            zip(keys_and_values[::2], keys_and_values[1::2], strict=True)
        )
        return []

    def _add(self, key: bytes, amount: bytes) -> list[bytes]:
        try:
            total = int(self.values.get(key, b"0")) + int(amount)
        except ValueError:
            raise ValueError("stoll") from None
        self.values[key] = str(total).encode()
        return [self.values[key]]

    def _append(self, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = self.values.get(key, b"") + value
        return []

    def _compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        found = self.values.get(key)
        if found is None and expected:
            return [expected]
        if found is None or found == expected:
            found = self.values[key] = desired
        return [found]

    def _check(self, *keys: bytes) -> list[bytes]:
        return [b"1"] if self._all(list(keys)) else []

    def _delete_key(self, key: bytes) -> list[bytes]:
        return [] if self.values.pop(key, None) is None else [b"1"]

    def _num_keys(self) -> list[bytes]:
        return [str(len(self.values)).encode()]

    def _list_keys(self) -> list[bytes]:
        return list(self.values)

    def _queue_push(self, key: bytes, value: bytes) -> list[bytes]:
        self.queues.setdefault(key, deque()).append(value)
        return []

    def _queue_len(self, key: bytes) -> list[bytes]:
        return [str(len(self.queues.get(key, ()))).encode()]
