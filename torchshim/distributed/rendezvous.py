"""How processes find each other: by variables of the environment, a port, or a file.

https://docs.pytorch.org/docs/2.13/distributed.html#initialization
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from torchshim.distributed._file_store import FileStore
from torchshim.distributed._stores import PrefixStore, Store
from torchshim.distributed._tcp_store import TCPStore
from torchshim.distributed.constants import default_pg_timeout

__all__ = ["host_of", "meet", "register_rendezvous_handler", "rendezvous"]

Met = Iterator[tuple[Store, int, int]]
_handlers: dict[str, Callable[..., Met]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Met]) -> None:
    """Has `handler(url, timeout=...)` yield (store, rank, world size) of URLs."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Met:
    """Yields (store, rank, world size), as a URL and the arguments tell them."""
    if not isinstance(url, (str, bytes)):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    return meet(url, rank, world_size, kwargs.pop("timeout", default_pg_timeout))


def meet(url: str | bytes, rank: int, world_size: int, timeout: timedelta) -> Met:
    """`rendezvous` with arguments that are checked."""
    text = url.decode() if isinstance(url, bytes) else url
    parts = urlsplit(text)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    told = {"rank": rank, "world_size": world_size}
    named = {name: str(value) for name, value in told.items() if value != -1}
    if named:
        query = dict(parse_qsl(parts.query))
        if not query.keys().isdisjoint(told):
            raise AssertionError(
                f"The url: {text} has node-specific arguments(rank, world_size) "
                "already."
            )
        query |= named
        joined = "&".join(f"{name}={value}" for name, value in query.items())
        text = parts._replace(query=joined).geturl()
    return _handlers[parts.scheme](text, timeout=timeout)


def _missing(scheme: str, what: str) -> ValueError:
    return ValueError(
        f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}"
    )


def _told(url: str, scheme: str, timeout: timedelta) -> tuple[Any, int, int]:
    """The parts of a URL that has to tell rank and number of processes."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    for name in ("rank", "world_size"):
        if name not in query:
            raise _missing(scheme, f"{name.replace('_', ' ')} parameter missing")
    return parts, int(query["rank"]), int(query["world_size"])


def _by_port(url: str, timeout: timedelta = default_pg_timeout) -> Met:
    parts, rank, count = _told(url, "tcp", timeout)
    if parts.port is None:
        raise _missing("tcp", "port number missing")
    yield _tcp_store(parts.hostname, parts.port, rank, count, timeout), rank, count


def _by_file(url: str, timeout: timedelta = default_pg_timeout) -> Met:
    parts = urlsplit(url)
    if not parts.path:
        raise _missing("file", "path missing")
    parts, rank, count = _told(url, "file", timeout)
    store = FileStore(parts.netloc + parts.path, count)
    store.set_timeout(timeout)
    yield store, rank, count


def _by_environment(url: str, timeout: timedelta = default_pg_timeout) -> Met:
    query = dict(parse_qsl(urlsplit(url).query))

    def told(name: str) -> str:
        if name.lower() in query:
            return query[name.lower()]
        if not os.environ.get(name):
            raise _missing("env", f"environment variable {name} expected, but not set")
        return os.environ[name]

    rank, count = int(told("RANK")), int(told("WORLD_SIZE"))
    host, port = told("MASTER_ADDR"), int(told("MASTER_PORT"))
    yield _tcp_store(host, port, rank, count, timeout), rank, count


def _tcp_store(
    host: str | None, port: int, rank: int, count: int, timeout: timedelta
) -> Store:
    if not 0 <= port < 2**16:
        raise ValueError(f"port must have value from 0 to 65535 but was {port}.")
    host = host or "localhost"
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True):
        # The launcher serves the store; each start of the processes has its own part.
        attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
        store = TCPStore(host, port, count, False, timeout, wait_for_workers=False)
        return PrefixStore(f"/worker/attempt_{attempt}", store)
    return TCPStore(host, port, count, rank == 0, timeout, multi_tenant=True)


for _scheme, _handler in (
    ("tcp", _by_port),
    ("env", _by_environment),
    ("file", _by_file),
):
    register_rendezvous_handler(_scheme, _handler)


def host_of(store: Store) -> str:
    """The address by which others reach this process: as it reaches the store's."""
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return store.address
    try:  # the name may belong to no address of this machine
        found = socket.gethostbyname(socket.gethostname())
        with socket.socket() as probe:
            probe.bind((found, 0))
    except OSError:
        return "127.0.0.1"
    return found
