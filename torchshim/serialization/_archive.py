"""The zip archives that PyTorch calls checkpoints: named records, not compressed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from torchshim.serialization import _options

_CORRUPT = (
    "PytorchStreamReader failed {}. This is an internal miniz error. If you are seeing "
    "this error, there is a high likelihood that your checkpoint file is corrupted. "
    "This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)
_LOCAL_HEADER = 30
# Dates play no part: the same object gives the same file.
_DATE = (1980, 1, 1, 0, 0, 0)


class Writer:
    """Writes records, each aligned in the file so that it can be mapped."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._name = name
        self._names, self._data = hashlib.blake2b(), hashlib.blake2b()

    def write(self, name: str, data: Any) -> None:
        """Adds a record: bytes, or an array of them."""
        self._names.update(name.encode())
        self._data.update(data)
        self._write(name, data)

    def _write(self, name: str, data: Any) -> None:
        info = zipfile.ZipInfo(f"{self._name}/{name}", _DATE)
        info.extra = self._padding(info, len(data))
        self._zip.writestr(info, data)

    def _padding(self, info: zipfile.ZipInfo, size: int) -> bytes:
        """An extra field of the header that puts the data on a round address."""
        assert self._zip.fp is not None
        start = self._zip.fp.tell() + _LOCAL_HEADER + len(info.filename.encode()) + 4
        if size * 1.05 > zipfile.ZIP64_LIMIT:
            start += 20  # the sizes that zipfile puts in front
        length = -start % _options.save.storage_alignment
        return b"FB" + struct.pack("<H", length) + b"Z" * length

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, *error: object) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            self._zip.close()

    def _finish(self) -> None:
        """Ends the archive with its version and a number that tells it apart."""
        self._write("version", b"3\n")
        parts = (self._names, self._data)
        numbers = [int.from_bytes(part.digest()[:8], "little") for part in parts]
        identity = "".join(f"{number:020}" for number in numbers)
        self._write(".data/serialization_id", identity.encode())


@contextlib.contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of `path` when all went well.

    What stood there stays as it was until then, whatever happens.
    """
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(path)} does not exist.")
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
#: The newest version of the format that PyTorch 2.13 reads.
_NEWEST = 10


class Reader:
    """Reads records; never more memory than the file is long."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        begin = file.tell()
        size = file.seek(0, os.SEEK_END)
        file.seek(begin)
        if size - begin < 22:
            raise corrupt("reading zip archive: not a ZIP archive")
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError):
            raise corrupt(
                "reading zip archive: failed finding central directory"
            ) from None
        infos = self._zip.infolist()
        if not infos:
            raise corrupt("reading zip archive: archive does not contain any files")
        plain = [info for info in infos if info.compress_type == zipfile.ZIP_STORED]
        if sum(info.file_size for info in plain) > size:
            raise RuntimeError(
                "the records of this archive claim to be larger than the file"
            )
        if sum(info.file_size for info in infos) > size * _MOST_INFLATED + _SMALL:
            raise RuntimeError(
                "the records of this archive claim to be more than "
                f"{_MOST_INFLATED} times larger than the file: if you trust it, unpack "
                "it and pack it again without compression"
            )
        folder, slash, _ = infos[0].filename.partition("/")
        if not slash:
            raise RuntimeError(
                "[enforce fail at inline_container.cc:180] . file in archive is not in "
                f"a subdirectory: {folder}"
            )
        prefix = folder + slash
        self._infos = {
            info.filename[len(prefix) :]: info
            for info in infos
            if info.filename.startswith(prefix)
        }
        if "version" not in self._infos and ".data/version" not in self._infos:
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this '
                "error message be improved?  If so, please report an enhancement "
                "request to PyTorch.)"
            )
        if ".data/serialization_id" in self._infos:
            self._info(".data/serialization_id")
        self._check_version()

    def _check_version(self) -> None:
        named = "version" if "version" in self._infos else ".data/version"
        digits = self.read(named)[:20].strip()
        version = int(digits) if digits.isdigit() else 0
        if version > _NEWEST:
            raise RuntimeError(
                "[enforce fail at inline_container.cc:230] . Attempted to read a "
                f"PyTorch file with version {version}, but the maximum supported "
                f"version for reading is {_NEWEST}. The version of your PyTorch "
                "installation may be too old, please upgrade PyTorch to latest version "
                "to mitigate this issue."
            )

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self._infos.get(name)
        if info is None:
            raise corrupt(f"locating file {name}: file not found")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise corrupt(f"retrieving file meta-data for {name}: unsupported method")
        if info.flag_bits & 1:
            raise RuntimeError(f"the record {name} is encrypted")
        return info

    def size(self, name: str) -> int:
        """The length of a record in bytes."""
        return self._info(name).file_size

    def read(self, name: str) -> bytes:
        """A record; as in PyTorch, its checksum may be missing."""
        offset, size = self.offset(name), self.size(name)
        info = self._info(name)
        self._file.seek(offset)
        data = self._file.read(info.compress_size if self.compressed(name) else size)
        if self.compressed(name):
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = inflate.decompress(data, size) if size else b""
            except zlib.error:
                raise corrupt(f"reading file {name}: decompression failed") from None
        if len(data) != size:
            raise corrupt(f"reading file {name}: file read failed")
        return data

    def compressed(self, name: str) -> bool:
        """Whether a record has to be unpacked."""
        return self._info(name).compress_type == zipfile.ZIP_DEFLATED

    def offset(self, name: str) -> int:
        """Where the data of a record begin in the file."""
        info = self._info(name)
        self._file.seek(info.header_offset)
        header = self._file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise corrupt(f"reading file {name}: file read failed")
        lengths = struct.unpack("<HH", header[26:30])
        return info.header_offset + _LOCAL_HEADER + sum(lengths)

    def mapped(self, name: str, path: str, shared: bool) -> np.ndarray:
        """The bytes of a record as part of the file, read when they are used."""
        if self.compressed(name):
            raise RuntimeError(
                f"the record {name} is compressed and cannot be mapped: load it with "
                "mmap=False"
            )
        offset, size = self.offset(name), self.size(name)
        if not size:
            return np.zeros(0, np.uint8)
        if offset + size > os.path.getsize(path):
            raise corrupt(f"reading file {name}: file read failed")
        mode = "r+" if shared else "c"
        return np.memmap(path, np.uint8, mode, offset, (size,))


def corrupt(what: str) -> RuntimeError:
    """PyTorch's error for an archive that cannot be read."""
    return RuntimeError(_CORRUPT.format(what))
