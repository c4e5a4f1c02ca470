"""Messages between processes: each has one connection with each other one.

A message is raw bytes behind a fixed header; nothing in it is executed or unpickled.
Who sends does not wait for a receiver: a thread for each connection takes what comes
and keeps it until somebody asks.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable
from datetime import timedelta

from torchshim.distributed._dist_errors import DistNetworkError
from torchshim.distributed._sockets import connect, listen, received
from torchshim.distributed._stores import PrefixStore, Store

__all__ = ["Address", "Mesh"]

# The group's number, what kind of message it is, its tag, and how many bytes follow.
_HEAD = struct.Struct("!QHqQ")
_HELLO = struct.Struct("!32sI")
# Where a message belongs: the group's number, whether it is of a collective operation,
# and its tag.
Address = tuple[int, bool, int]
Message = tuple[int, bytearray]


# The secrets of the meshes that this process was in.
_known: set[bytes] = set()


def _fresh(store: Store, timeout: timedelta) -> bytes:
    """The secret of a mesh to be: not that of one before, which may still be there."""
    end = time.monotonic() + timeout.total_seconds()
    while (found := store.get("secret")) in _known:
        if time.monotonic() > end:
            raise DistNetworkError("Timed out waiting for the first process")
        time.sleep(0.01)
    _known.add(found)
    return found


class Mesh:
    """The connections of a process with all others.

    Each process leaves its address in the store. The later one of two connects to the
    earlier one, and says a secret that only those know who can read the store.
    """

    def __init__(
        self, store: Store, rank: int, size: int, host: str, timeout: timedelta
    ) -> None:
        self.rank, self.size = rank, size
        self._arrived = threading.Condition()
        self._kept: dict[tuple[int, Address], deque[Message]] = {}
        self._gone: dict[int, str] = {}
        self._links: dict[int, socket.socket] = {}
        self._sending = [threading.Lock() for _ in range(size)]
        self._names: dict[int, str] = {}
        if size > 1:
            self._meet(PrefixStore("mesh", store), host, timeout)

    def _meet(self, store: Store, host: str, timeout: timedelta) -> None:
        if self.rank == 0:
            store.set("secret", secrets.token_hex(16))
        secret = _fresh(store, timeout)
        store = PrefixStore(secret.decode(), store)
        with listen(host, 0) as listener:
            port = listener.getsockname()[1]
            store.set(f"{self.rank}", f"{host} {port}")
            for peer in range(self.rank):
                where, _, number = store.get(f"{peer}").decode().partition(" ")
                link = connect(where, int(number), timeout)
                link.sendall(_HELLO.pack(secret, self.rank))
                self._links[peer] = link
            self._await(listener, secret, timeout)
        for peer, link in self._links.items():
            name, port = link.getpeername()[:2]
            self._names[peer] = f"[{name}]:{port}"
            told = peer, link
            threading.Thread(target=self._read, args=told, daemon=True).start()

    def _await(
        self, listener: socket.socket, secret: bytes, timeout: timedelta
    ) -> None:
        """Takes the connections of all later processes."""
        end = time.monotonic() + timeout.total_seconds()
        while len(self._links) < self.size - 1:
            listener.settimeout(max(end - time.monotonic(), 0.01))
            try:
                link, _ = listener.accept()
                link.settimeout(max(end - time.monotonic(), 0.01))
                said, peer = _HELLO.unpack(received(link, _HELLO.size))
            except TimeoutError:
                missing = [p for p in range(self.size) if p not in self._links]
                missing.remove(self.rank)
                raise DistNetworkError(
                    f"Timed out waiting for processes {missing} to connect"
                ) from None
            except OSError:
                continue
            if not hmac.compare_digest(said, secret) or peer in self._links:
                link.close()
                continue
            link.settimeout(None)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._links[peer] = link

    def _read(self, peer: int, link: socket.socket) -> None:
        """Keeps what a process sends, until its connection ends."""
        try:
            while True:
                group, kind, tag, size = _HEAD.unpack(received(link, _HEAD.size))
                data = received(link, size)
                key = peer, (group, kind > 0, tag)
                with self._arrived:
                    self._kept.setdefault(key, deque()).append((kind, data))
                    self._arrived.notify_all()
        except (OSError, MemoryError):
            with self._arrived:
                self._gone[peer] = (
                    f"Connection closed by peer {self._names[peer]}. This is "
                    "typically caused by a remote worker crashing. Check the logs of "
                    "the remote worker before reporting an error."
                )
                self._arrived.notify_all()
        with self._sending[peer]:
            link.close()

    def send(
        self, peer: int, group: int, kind: int, tag: int, parts: Iterable[memoryview]
    ) -> None:
        """Sends parts as one message. RuntimeError if the process is gone."""
        parts = list(parts)
        size = sum(part.nbytes for part in parts)
        head = _HEAD.pack(group, kind, tag, size)
        link = self._links[peer]
        try:
            with self._sending[peer]:
                link.sendall(head)
                for part in parts:
                    link.sendall(part)
        except OSError as error:
            with self._arrived:
                told = self._gone.setdefault(peer, f"Connection lost: {error}")
            raise RuntimeError(told) from None

    def receive(
        self, peers: Iterable[int], address: Address, timeout: float
    ) -> tuple[int, int, bytearray]:
        """The first message of one of some processes: who sent it, its kind, the bytes.

        RuntimeError when the time is over, or all of them are gone.
        """
        peers = list(peers)
        end = time.monotonic() + timeout
        with self._arrived:
            while (found := self._first(peers, address)) is None:
                if all(peer in self._gone for peer in peers):
                    raise RuntimeError(self._gone[peers[0]])
                left = end - time.monotonic()
                if left <= 0 or not self._arrived.wait(left):
                    raise RuntimeError(
                        f"Timed out waiting {round(timeout * 1000)}ms for recv "
                        "operation to complete"
                    )
        return found

    def _first(
        self, peers: list[int], address: Address
    ) -> tuple[int, int, bytearray] | None:
        for peer in peers:
            queue = self._kept.get((peer, address))
            if queue:
                kind, data = queue.popleft()
                if not queue:
                    del self._kept[peer, address]
                return peer, kind, data
        return None

    def holds(self, peers: Iterable[int], address: Address) -> bool:
        """Whether a message of one of some processes is there."""
        with self._arrived:
            return any(self._kept.get((peer, address)) for peer in peers)

    def close(self) -> None:
        """Ends all connections, after what was sent on them."""
        for link in self._links.values():
            try:
                # The other side reads to the end; what it sends is taken until then.
                link.shutdown(socket.SHUT_WR)
            except OSError:
                pass
