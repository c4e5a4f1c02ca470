"""Sockets between processes: listening, connecting, reading a number of bytes."""

from __future__ import annotations

import errno
import os
import socket
import time
from datetime import timedelta

from torchshim.distributed._dist_errors import DistNetworkError

__all__ = ["connect", "listen", "received"]


def listen(host: str, port: int, descriptor: int | None = None) -> socket.socket:
    """A socket that listens; an empty host takes every address. DistNetworkError."""
    if descriptor is not None:
        bound = socket.socket(fileno=descriptor)
        bound.listen(128)  # which may have been done
        return bound
    made = socket.socket()
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError as error:
        made.close()
        number = error.errno or 0
        raise DistNetworkError(
            "The server socket has failed to listen on any local network address. "
            f"port: {port}, useIpv6: false, code: -{number}, name: "
            f"{errno.errorcode.get(number, '')}, message: {os.strerror(number).lower()}"
        ) from None
    return made


def connect(host: str, port: int, timeout: timedelta) -> socket.socket:
    """A connection, tried again until the time is over. DistNetworkError then."""
    end = time.monotonic() + timeout.total_seconds()
    pause = 0.01
    while True:
        left = end - time.monotonic()
        try:
            made = socket.create_connection((host, port), max(left, 0.01))
        except OSError:
            if left <= pause:
                milliseconds = timeout // timedelta(milliseconds=1)
                raise DistNetworkError(
                    f"The client socket has timed out after {milliseconds}ms while "
                    f"trying to connect to ({host}, {port})."
                ) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.2)
            continue
        made.settimeout(None)
        # Messages are short and answered at once.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made


def received(connection: socket.socket, size: int) -> bytearray:
    """The next `size` bytes. ConnectionError where they end before."""
    found = bytearray(size)
    rest = memoryview(found)
    while rest.nbytes:
        count = connection.recv_into(rest)
        if count == 0:
            raise ConnectionError("closed by the other side")
        rest = rest[count:]
    return found
