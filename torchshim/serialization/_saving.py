"""`torch.save`."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import sys
from collections.abc import Iterator
from pathlib import PurePath
from typing import IO, Any

import numpy as np

from torchshim.serialization import _options
from torchshim.serialization._archive import Reader, Writer, _is_path, replacing
from torchshim.serialization._pickling import Storages, dump, size_of

DEFAULT_PROTOCOL = 2
MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes an object with its tensors to a file that PyTorch reads, too.

    `f` is a path or a binary file. Tensors on the same memory are on the same memory
    when they are loaded. A file that `f` names is replaced once all is written, so
    that it never is half a checkpoint. See
    https://docs.pytorch.org/docs/2.13/generated/torch.save.html.

    >>> import io
    >>> import torchshim as torch
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 1.])}
    """
    check_dill(pickle_module)
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' "
            "attribute"
        )
    if not _use_new_zipfile_serialization:
        if _options.skipping.on:
            raise RuntimeError(
                "Cannot use skip_data=True with _use_new_zipfile_serialization=False"
            )
        with _opened(f) as file:
            _save_legacy(obj, file, pickle_module, pickle_protocol)
        return
    data = io.BytesIO()
    storages = dump(obj, data, pickle_module, pickle_protocol)
    with _opened(f) as file, Writer(file, _archive_name(f)) as writer:
        writer.write("data.pkl", data.getvalue())
        alignment = str(_options.save.storage_alignment)
        writer.write(".format_version", b"1")
        writer.write(".storage_alignment", alignment.encode())
        if not _disable_byteorder_record:
            writer.write("byteorder", sys.byteorder.encode())
        for key in storages.sources:
            writer.write(f"data/{key}", _bytes_of(storages, key))


def _bytes_of(storages: Storages, key: str) -> Any:
    if _options.skipping.on:
        return np.zeros(size_of(storages.sources[key]), np.uint8)
    return storages.data(key)


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[IO[bytes]]:
    if _is_path(f):
        with replacing(os.fspath(f)) as file:
            yield file
        return
    if not callable(f.write):
        raise TypeError(
            f"Buffer of {str(type(f)).strip('<>')} has no callable attribute 'write'"
        )
    yield f
    if hasattr(f, "flush"):
        f.flush()


@contextlib.contextmanager
def open_zipfile_writer(name_or_buffer: Any) -> Iterator[Writer]:
    """An archive to write records to."""
    with (
        _opened(name_or_buffer) as file,
        Writer(file, _archive_name(name_or_buffer)) as writer,
    ):
        yield writer


@contextlib.contextmanager
def open_zipfile_reader(name_or_buffer: Any) -> Iterator[Reader]:
    """An archive to read records from."""
    if _is_path(name_or_buffer):
        with open(name_or_buffer, "rb") as file:
            yield Reader(file)
        return
    yield Reader(name_or_buffer)


def _archive_name(f: Any) -> str:
    if not _is_path(f):
        return "archive"
    return PurePath(os.fspath(f)).name.rpartition(".")[0] or PurePath(f).name


def _save_legacy(obj: Any, file: IO[bytes], pickle_module: Any, protocol: int) -> None:
    sizes = {"short": struct.calcsize("=h"), "int": 4, "long": struct.calcsize("=l")}
    system = {
        "protocol_version": PROTOCOL_VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }
    data = io.BytesIO()
    storages = dump(obj, data, pickle_module, protocol, legacy=True)
    for head in (MAGIC_NUMBER, PROTOCOL_VERSION, system):
        pickle_module.dump(head, file, protocol=protocol)
    file.write(data.getvalue())
    keys = sorted(storages.sources)
    pickle_module.dump(keys, file, protocol=protocol)
    for key in keys:
        held = storages.data(key)
        file.write(struct.pack("<q", held.nbytes // storages.kind(key).itemsize))
        file.write(held.tobytes())


def check_dill(pickle_module: Any) -> None:
    """ValueError for a dill that is too old."""
    if pickle_module is None or pickle_module.__name__ != "dill":
        return
    version = tuple(int(part) for part in pickle_module.__version__.split(".")[:3])
    if version < (0, 3, 1):
        raise ValueError(
            "'torch' supports dill >= 0.3.1, but you have dill "
            f"{pickle_module.__version__}. Please upgrade dill or switch to 'pickle'"
        )
