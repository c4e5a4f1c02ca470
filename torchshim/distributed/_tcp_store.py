"""A store that processes reach by TCP; one of them serves it.

A request is the number of an operation, a timeout in milliseconds, and byte strings; an
answer is the number of an error (0 for none), and byte strings.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
import weakref
from datetime import timedelta

from torchshim.distributed._dist_errors import (
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from torchshim.distributed._sockets import connect, listen, received
from torchshim.distributed._stores import Store, wait_failed
from torchshim.distributed._words import OPERATIONS, Words

__all__ = ["CLOSED", "TCPStore"]

_HEAD = struct.Struct("!BQI")
_SIZE = struct.Struct("!Q")
_ERRORS: tuple[type[Exception], ...] = (DistStoreError, QueueEmptyError, ValueError)
CLOSED = (
    "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server "
    "shutdown or crash?"
)
_JOINED = b"init/"
# Strings are of this length at most: who sends more is no client.
_LONGEST = 1 << 32


def _packed(number: int, limit: int, strings: list[bytes]) -> bytes:
    parts = [_HEAD.pack(number, limit, len(strings))]
    for each in strings:
        parts += (_SIZE.pack(len(each)), each)
    return b"".join(parts)


def _unpacked(connection: socket.socket) -> tuple[int, int, list[bytes]]:
    number, limit, count = _HEAD.unpack(received(connection, _HEAD.size))
    strings = []
    for _ in range(count):
        (size,) = _SIZE.unpack(received(connection, _SIZE.size))
        if size > _LONGEST:
            raise ConnectionError("a string is too long")
        strings.append(bytes(received(connection, size)))
    return number, limit, strings


class _Server:
    """Answers each client on a thread of its own, as long as a store holds it."""

    def __init__(self, listener: socket.socket) -> None:
        self.port: int = listener.getsockname()[1]
        connections: list[socket.socket] = []
        told = listener, Words(), connections
        threading.Thread(target=_accept, args=told, daemon=True).start()
        weakref.finalize(self, _close, listener, connections)


def _accept(
    listener: socket.socket, words: Words, connections: list[socket.socket]
) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # closed
            return
        connections.append(connection)
        told = connection, words
        threading.Thread(target=_serve, args=told, daemon=True).start()


def _serve(connection: socket.socket, words: Words) -> None:
    try:
        while True:
            number, limit, strings = _unpacked(connection)
            try:
                found = words.call(OPERATIONS[number], strings, limit / 1000)
                answer = _packed(0, 0, found)
            except _ERRORS as error:
                kind = _ERRORS.index(type(error)) + 1
                answer = _packed(kind, 0, [str(error).encode()])
            connection.sendall(answer)
    except (OSError, IndexError, TypeError):  # gone, or no client of ours
        connection.close()


def _close(listener: socket.socket, connections: list[socket.socket]) -> None:
    for each in (listener, *connections):
        try:  # wakes the threads that wait
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    listener.close()


# Servers that several stores of a process share, by their ports.
_shared: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()


class _Client:
    """A connection to a server, used by one thread at a time."""

    def __init__(self, host: str, port: int, timeout: timedelta) -> None:
        self.connection = connect(host, port, timeout)
        self._lock = threading.Lock()
        weakref.finalize(self, self.connection.close)

    def call(self, operation: str, strings: list[bytes], limit: int) -> list[bytes]:
        request = _packed(OPERATIONS.index(operation), limit, strings)
        with self._lock:
            try:
                self.connection.sendall(request)
                kind, _, found = _unpacked(self.connection)
            except OSError:
                raise DistNetworkError(CLOSED) from None
        if kind:
            raise _ERRORS[kind - 1](found[0].decode())
        return found


class TCPStore(Store):
    """A store at a host and a port; the master serves it, for all others.

    The master waits for `world_size` clients, itself among them, unless
    `wait_for_workers=False`. Port 0 takes a free one. With `multi_tenant`, several
    masters of one process share a server. `use_libuv` says how PyTorch's server waits,
    and changes nothing here. DistNetworkError where no server is reached or the port is
    taken, DistStoreError where clients do not come in time.
    """

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
        super().__init__(timeout)
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        self._server: _Server | None = None
        if is_master:
            self._server = _served(port, multi_tenant, master_listen_fd)
            port = self._server.port
        self.host, self.port, self.libuvBackend = host_name, port, use_libuv
        self._client = _Client(host_name, port, timeout)
        if wait_for_workers and world_size is not None and world_size > 0:
            joined = int(self._client.call("add", [_JOINED, b"1"], 0)[0])
            if is_master:
                self._wait_for(world_size, joined)

    def _wait_for(self, count: int, joined: int) -> None:
        end = time.monotonic() + self._timeout.total_seconds()
        while joined < count:
            if time.monotonic() > end:
                seconds = int(self._timeout.total_seconds()) + 1
                raise DistStoreError(
                    f"Timed out after {seconds} seconds waiting for clients. "
                    f"{joined}/{count} clients joined."
                )
            time.sleep(0.005)
            joined = int(self._client.call("add", [_JOINED, b"0"], 0)[0])

    def _call(
        self, operation: str, arguments: list[bytes], timeout: timedelta | None = None
    ) -> list[bytes]:
        limit = self._timeout if timeout is None else timeout
        milliseconds = max(0, limit // timedelta(milliseconds=1))
        try:
            return self._client.call(operation, arguments, milliseconds)
        except QueueEmptyError:
            raise
        except DistStoreError:
            keys = arguments[:1] if operation == "queue_pop" else arguments
            raise wait_failed(keys, limit) from None

    def list_keys(self) -> list[str]:
        """The keys, in no order, without those that the store keeps for itself."""
        return [key for key in super().list_keys() if key != _JOINED.decode()]

    def __repr__(self) -> str:
        connection = self._client.connection
        ends = connection.getsockname(), connection.getpeername()
        addr, remote = (f"[{end[0]}]:{end[1]}" for end in ends)
        socket = f"SocketImpl(fd={connection.fileno()}, addr={addr}, remote={remote})"
        served = self._server
        server = f"TCPServer(port={served.port})" if served else "<nullptr>"
        return f"TCPStore(client=TCPClient({socket}), server={server})"

    @property
    def address(self) -> str:
        """Where this process is reached from the master's network."""
        return self._client.connection.getsockname()[0]


def _served(port: int, shared: bool, descriptor: int | None) -> _Server:
    found = _shared.get(port) if shared else None
    if found is None:
        found = _Server(listen("", port, descriptor))
        if shared:
            _shared[found.port] = found
    return found
