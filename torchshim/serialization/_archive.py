"""The zip archives that PyTorch calls checkpoints: named records, not compressed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import stat
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeGuard

import numpy as np

from torchshim.serialization import _options
from torchshim.serialization._directory import (
    DEFLATED,
    STORED,
    Directory,
    Entry,
    check,
    corrupt,
    decoded,
)

# The header before a record, and what stands in it for a number of more than 32 bits.
_LOCAL_HEADER, _LAST_32 = 30, 0xFFFFFFFF
# Flags of a record: a name in UTF-8, sizes that come behind it.
_UTF_8, _BEHIND = 0x0800, 0x0008
# What made an archive of the larger form, and what reads it.
_MADE_BY, _NEEDED = 0x031E, 45


def _is_path(f: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this names a file, and is none itself."""
    return isinstance(f, (str, os.PathLike))


class Writer:
    """Writes records as PyTorch does, aligned in the file so that they can be mapped.

    The archive begins where the file stands.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._at = file, 0
        self._name, self._entries = name, bytearray()
        self._written: list[str] = []
        self._names, self._data = hashlib.blake2b(), hashlib.blake2b()

    def write(self, name: str, data: Any) -> None:
        """Adds a record: bytes, or an array of them."""
        self._names.update(name.encode())
        self._data.update(data)
        self._write(name, data)

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Adds a record: the first `size` bytes of these."""
        data = data.encode() if isinstance(data, str) else data
        self.write(name, memoryview(data)[:size])

    def write_record_metadata(self, name: str, size: int) -> None:
        """Adds a record of so many bytes that are to be written later: zeros."""
        self.write(name, bytes(size))

    def _write(self, name: str, data: Any) -> None:
        if not isinstance(data, bytes):
            data = memoryview(data)
        text, size, start = f"{self._name}/{name}".encode(), len(data), self._at
        large = _large_field(size, start)
        extra = large + _padding(start + _LOCAL_HEADER + len(text) + len(large))
        # Versions and dates play no part: the same object gives the same file.
        about = struct.pack("<5H", 0, _UTF_8 | _BEHIND * (size > 0), 0, 0, 0)
        lengths = struct.pack("<2H", len(text), len(extra))
        self._put(b"PK\3\4" + about + bytes(12) + lengths + text + extra)
        self._put(data)
        crc = struct.pack("<L", zlib.crc32(data))
        if size:
            sizes = struct.pack("<2Q" if large else "<2L", size, size)
            self._put(b"PK\7\x08" + crc + sizes)
        self._written.append(name)
        self._entries += (
            b"PK\1\2\0\0"
            + about
            + crc
            + struct.pack("<2L", *(min(size, _LAST_32),) * 2)
            + struct.pack("<2H", len(text), len(large))
            + bytes(10)
            + struct.pack("<L", min(start, _LAST_32))
            + text
            + large
        )

    def _put(self, data: Any) -> None:
        self._file.write(data)
        self._at += len(data)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        if kind is None:
            self._finish()

    def _finish(self) -> None:
        """Ends the archive with its version and a number that tells it apart."""
        self._write("version", b"3\n")
        if "byteorder" not in self._written:
            self._write("byteorder", sys.byteorder.encode())
        parts = (self._names, self._data)
        numbers = [int.from_bytes(part.digest()[:8], "little") for part in parts]
        identity = "".join(f"{number:020}" for number in numbers)
        self._write(".data/serialization_id", identity.encode())
        start, length, count = self._at, len(self._entries), len(self._written)
        self._put(bytes(self._entries))
        where = self._at
        told = (count, count, length, start)
        self._put(
            b"PK\6\6"
            + struct.pack("<Q2H2L4Q", 44, _MADE_BY, _NEEDED, 0, 0, *told)
            + struct.pack("<4sLQL", b"PK\6\7", 0, where, 1)
            + struct.pack("<4s2H", b"PK\5\6", 0, 0)
            + struct.pack("<2H", *(min(count, 0xFFFF),) * 2)
            + struct.pack("<2LH", min(length, _LAST_32), min(start, _LAST_32), 0)
        )


def _large_field(size: int, start: int) -> bytes:
    """The field with what 32 bits cannot tell of a record."""
    numbers = (size, size) * (size >= _LAST_32) + (start,) * (start >= _LAST_32)
    if not numbers:
        return b""
    return struct.pack(f"<2H{len(numbers)}Q", 1, 8 * len(numbers), *numbers)


def _padding(at: int) -> bytes:
    """A further field of a header, at this place, that puts the data on a round one."""
    length = -(at + 4) % _options.save.storage_alignment
    return b"FB" + struct.pack("<H", length) + b"Z" * length


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when all went well.

    What stood there stays as it was until then, whatever happens.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
    if os.path.isdir(target):
        raise RuntimeError(
            "[enforce fail at inline_container.cc:747] . open file failed with "
            "strerror: Is a directory"
        )
    if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
        with open(target, "wb") as file:  # a pipe or a device cannot be replaced
            yield file
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    except PermissionError:
        with open(target, "wb") as file:  # the file may be written, its folder not
            yield file
        return
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        else:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    # Reading it means setting it; where Linux tells, nothing is set.
    with contextlib.suppress(OSError, ValueError, IndexError):
        status = Path("/proc/self/status").read_text()
        return int(status.split("Umask:")[1].split()[0], 8)
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# Compressed records may take this many times the size of the file, and as many bytes.
_MOST_INFLATED, _SMALL = 64, 1 << 20
#: The versions of the format that PyTorch 2.13 reads.
_OLDEST, _NEWEST = 1, 10


class Reader:
    """Reads records; never more memory than the file is long."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._directory = Directory(file)
        entries, size = self._directory.entries, self._directory.size
        if not entries:
            raise _located(
                "inline_container.cc:171", "archive does not contain any files"
            )
        plain = sum(entry.size for entry in entries if entry.method == STORED)
        if plain > size:
            raise RuntimeError(
                "the records of this archive claim to be larger than the file"
            )
        if sum(entry.size for entry in entries) > size * _MOST_INFLATED + _SMALL:
            raise RuntimeError(
                "the records of this archive claim to be more than "
                f"{_MOST_INFLATED} times larger than the file: if you trust it, unpack "
                "it and pack it again without compression"
            )
        self._folder, slash, _ = entries[0].name.partition("/")
        if not slash:
            raise _located(
                "inline_container.cc:180",
                f"file in archive is not in a subdirectory: {self._folder}",
            )
        prefix = self._folder + slash
        within = {entry.name: entry for entry in entries}
        self._entries = {
            name[len(prefix) :]: entry
            for name, entry in within.items()
            if name.startswith(prefix)
        }
        if ".data/serialization_id" in self._entries:
            self.read(".data/serialization_id")
        if "version" not in self._entries and ".data/version" not in self._entries:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this '
                "error message be improved?  If so, please report an enhancement "
                "request to PyTorch.)"
            )
        self._check_version()
        if len(self._entries) < len(within):
            other = next(name for name in within if not name.startswith(prefix))
            raise _located(
                "inline_container.cc:340",
                f"file in archive is not in a subdirectory {prefix}: {other}",
            )
        for name in self._entries:
            decoded(name)

    def _check_version(self) -> None:
        named = ".data/version" if ".data/version" in self._entries else "version"
        text = self.read(named).decode(errors="surrogateescape")
        number = re.match(r"\s*[+-]?\d+", text)
        if number is None:
            raise _located(
                "inline_container.cc:215",
                f"Couldn't parse the version {text} as Long Long.",
            )
        version = int(number[0])
        told = f"Attempted to read a PyTorch file with version {version}, but the "
        if version < _OLDEST:
            raise _located(
                "inline_container.cc:219",
                f"{told}minimum supported version for reading is {_OLDEST}. Your "
                "PyTorch script module file is too old. Please regenerate it with "
                "latest version of PyTorch to mitigate this issue.",
            )
        if version > _NEWEST:
            raise _located(
                "inline_container.cc:230",
                f"{told}maximum supported version for reading is {_NEWEST}. The "
                "version of your PyTorch installation may be too old, please upgrade "
                "PyTorch to latest version to mitigate this issue.",
            )

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def _entry(self, name: str) -> Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise corrupt(f"locating file {name}: file not found")
        check(name, entry)
        return entry

    def size(self, name: str) -> int:
        """The length of a record in bytes."""
        return self._entry(name).size

    def read(self, name: str) -> bytes:
        """A record; as in PyTorch, its checksum may be missing."""
        entry = self._entry(name)
        self._file.seek(self._directory.data_of(name, entry))
        data = self._file.read(entry.packed)
        if entry.method == DEFLATED:
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = inflate.decompress(data, entry.size) if entry.size else b""
            except zlib.error:
                raise corrupt(f"reading file {name}: decompression failed") from None
        if len(data) != entry.size:
            raise corrupt(f"reading file {name}: file read failed")
        return data

    get_record = read

    def get_record_offset(self, name: str) -> int:
        """Where in the file the bytes of a record begin."""
        return self._directory.data_of(name, self._entry(name))

    def has_record(self, name: str) -> bool:
        """Whether there is a record of this name."""
        return name in self

    def mapped(self, name: str, path: str, shared: bool) -> np.ndarray:
        """The bytes of a record as part of the file, read when they are used."""
        entry = self._entry(name)
        if entry.method == DEFLATED:
            raise RuntimeError(
                f"the record {name} is compressed and cannot be mapped: load it with "
                "mmap=False"
            )
        if not entry.size:
            return np.zeros(0, np.uint8)
        offset = self._directory.data_of(name, entry)
        if offset + entry.size > os.path.getsize(path):
            raise corrupt(f"reading file {name}: file read failed")
        mode = "r+" if shared else "c"
        return np.memmap(path, np.uint8, mode, offset, (entry.size,))


def _located(where: str, what: str) -> RuntimeError:
    """PyTorch's error that tells a place; UnicodeDecodeError for names in it."""
    return RuntimeError(f"[enforce fail at {where}] . {decoded(what)}")
