"""What a zip archive says of its records, checked as PyTorch's reader does.

Nothing is taken for granted: each number is compared with the size of the file before
it is used, so that a damaged archive is refused in PyTorch's words.
"""

from __future__ import annotations

import os
import struct
from typing import IO, NamedTuple

_CORRUPT = (
    "PytorchStreamReader failed {}. This is an internal miniz error. If you are seeing "
    "this error, there is a high likelihood that your checkpoint file is corrupted. "
    "This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)
# The header before a record, an entry of the directory, what ends the archive; with
# more than 4 GiB, what stands before that and tells where its larger twin is.
_LOCAL, _ENTRY, _END, _LOCATOR, _END64 = 30, 46, 22, 20, 56
_LAST_32 = 0xFFFFFFFF
STORED, DEFLATED = 0, 8
# Bits of an entry's flags: encrypted in one way or another.
_ENCRYPTED, _PATCHED, _MASKED = 0x1 | 0x40, 0x20, 0x2000


def decoded(name: str) -> str:
    """A name as text; UnicodeDecodeError for one that is none, as in PyTorch."""
    return name.encode(errors="surrogateescape").decode()


class Entry(NamedTuple):
    """A record: where its header is, and what the directory says of it."""

    name: str
    flags: int
    method: int
    packed: int  # bytes in the file
    size: int  # bytes when unpacked
    start: int


def corrupt(what: str) -> RuntimeError:
    """PyTorch's error for an archive that cannot be read."""
    return RuntimeError(_CORRUPT.format(what))


def _unreadable(why: str = "invalid header or archive is corrupted") -> RuntimeError:
    return corrupt(f"reading zip archive: {why}")


class Directory:
    """The entries of the archive that begins where a file stands."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._begin = file.tell()
        self.size = file.seek(0, os.SEEK_END) - self._begin
        file.seek(self._begin)
        if self.size < _END:
            raise _unreadable("not a ZIP archive")
        self.entries = list(self._read_entries(*self._ends()))

    def at(self, offset: int, count: int) -> bytes:
        """Bytes of the archive, fewer where it ends."""
        self._file.seek(self._begin + offset)
        return self._file.read(count)

    def _ends(self) -> tuple[int, int, int, int]:
        """Where the directory is, how long, the number of entries, of the disk."""
        # The end may be followed by a comment of 64 KiB.
        first = max(self.size - 0xFFFF - _END, 0)
        tail = self.at(first, self.size - first)
        found = tail.rfind(b"PK\5\6", 0, len(tail) - _END + 4)
        if found < 0:
            raise _unreadable("failed finding central directory")
        disk, disk_of_it, here, count, length, start = struct.unpack(
            "<4H2L", tail[found + 4 : found + 20]
        )
        found += first
        if found >= _LOCATOR + _END64:
            locator = self.at(found - _LOCATOR, _LOCATOR)
            larger = self._larger_end(locator) if locator[:4] == b"PK\6\7" else None
            if larger is not None:
                disk, disk_of_it, here, count, length, start = larger
        if count != here or ((disk or disk_of_it) and (disk, disk_of_it) != (1, 1)):
            raise _unreadable("unsupported multidisk archive")
        if length < count * _ENTRY or start + length > self.size:
            raise _unreadable()
        return start, length, count, disk

    def _larger_end(self, locator: bytes) -> tuple[int, ...] | None:
        where, disks = struct.unpack("<QL", locator[8:])
        if where > self.size - _END64:
            raise _unreadable("not a ZIP archive")
        end = self.at(where, _END64)
        if end[:4] != b"PK\6\6":
            return None
        (rest,) = struct.unpack("<Q", end[4:12])
        disk, disk_of_it, here, count, length, start = struct.unpack("<2L4Q", end[16:])
        if rest < _END64 - 12:
            raise _unreadable()
        if disks != 1:
            raise _unreadable("unsupported multidisk archive")
        if max(count, here) > _LAST_32:
            raise _unreadable("too many files")
        if length > _LAST_32:
            raise _unreadable("unsupported central directory size")
        return disk, disk_of_it, here, count, length, start

    def _read_entries(self, start: int, length: int, count: int, disk: int):
        data = self.at(start, length)
        if len(data) < length:
            raise _unreadable("file read failed")
        at = 0
        for _ in range(count):
            header = data[at : at + _ENTRY]
            if len(header) < _ENTRY or header[:4] != b"PK\1\2":
                raise _unreadable()
            flags, method, time = struct.unpack("<3H", header[8:14])
            packed, size, name, extra, comment, of_disk = struct.unpack(
                "<2L4H", header[20:36]
            )
            (offset,) = struct.unpack("<L", header[42:])
            ends = at + _ENTRY + name + extra
            text = data[at + _ENTRY : at + _ENTRY + name]
            large = None
            if extra and _LAST_32 in (packed, size, offset):
                large = _large_field(data[ends - extra : ends], extra)
            if _LAST_32 not in (packed, size):
                stored = method == STORED and not time
                if (stored and size != packed) or (size and not packed):
                    raise _unreadable()
            if of_disk == 0xFFFF or of_disk not in (disk, 1):
                raise _unreadable("unsupported multidisk archive")
            if packed != _LAST_32 and offset + _LOCAL + packed > self.size:
                raise _unreadable()
            if flags & _MASKED:
                raise _unreadable("unsupported encryption")
            if ends + comment > length:
                raise _unreadable()
            at = ends + comment
            if large is not None:
                size, packed, offset = _with_large(large, size, packed, offset)
            named = text.decode(errors="surrogateescape")
            yield Entry(named, flags, method, packed, size, offset)

    def data_of(self, name: str, entry: Entry) -> int:
        """Where the data of a record begin in the file."""
        header = self.at(entry.start, _LOCAL)
        if len(header) < _LOCAL:
            raise corrupt(f"reading file {name}: file read failed")
        if header[:4] != b"PK\3\4":
            raise corrupt(
                f"reading file {name}: invalid header or archive is corrupted"
            )
        start = entry.start + _LOCAL + sum(struct.unpack("<HH", header[26:]))
        if start + entry.packed > self.size:
            raise corrupt(
                f"reading file {name}: invalid header or archive is corrupted"
            )
        return self._begin + start


def check(name: str, entry: Entry) -> None:
    """An error for a record that cannot be read."""
    if entry.method not in (STORED, DEFLATED):
        raise corrupt(f"retrieving file meta-data for {name}: unsupported method")
    if entry.flags & (_ENCRYPTED | _PATCHED):
        raise corrupt(f"retrieving file meta-data for {name}: unsupported encryption")


def _large_field(extra: bytes, length: int) -> bytes | None:
    """The field with what 32 bits cannot tell, of the further ones of an entry."""
    if len(extra) < length:
        raise _unreadable()
    while extra:
        if len(extra) < 4:
            raise _unreadable()
        kind, size = struct.unpack("<HH", extra[:4])
        if size + 4 > len(extra):
            raise _unreadable()
        if kind == 1:
            return extra[4 : 4 + size]
        extra = extra[4 + size :]
    return None


def _with_large(field: bytes, *numbers: int) -> tuple[int, ...]:
    """Size, bytes in the file and place, those from the field that need it."""
    found = []
    for number in numbers:
        if number == _LAST_32:
            if len(field) < 8:
                raise _unreadable()
            (number,) = struct.unpack("<Q", field[:8])
            field = field[8:]
        found.append(number)
    return tuple(found)
