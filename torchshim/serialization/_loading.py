"""`torch.load`."""

from __future__ import annotations

import io
import os
import pickle
import re
import struct
import sys
from collections.abc import Callable
from typing import IO, Any, TypeAlias

import numpy as np

from torchshim import _warnings as warnings
from torchshim._core.device import device
from torchshim._core.dtypes import array_dtype, dtype, uint8
from torchshim._functions.storage import UntypedStorage
from torchshim._functions.typed_storage import TypedStorage
from torchshim.serialization import _options, _weights_only
from torchshim.serialization._archive import Reader, _is_path
from torchshim.serialization._locations import cpu_storage, restorer
from torchshim.serialization._names import StorageType, find, storage_type
from torchshim.serialization._safetensors import load_safetensors
from torchshim.serialization._saving import (
    MAGIC_NUMBER,
    PROTOCOL_VERSION,
    check_dill,
)
from torchshim.serialization._scanning import storages_in

UNSAFE = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in "
    "`torch.load` from `False` to `True`. Re-running `torch.load` with `weights_only` "
    "set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)
_DOCS = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by "
    "default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)
# What `map_location` may be.
MAP_LOCATION: TypeAlias = (
    Callable[["UntypedStorage", str], "UntypedStorage"]
    | device
    | str
    | dict[str, str]
    | None
)
_ZIP = b"PK\x03\x04"


def load(
    f: Any,
    map_location: MAP_LOCATION = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what `save` wrote, here or in PyTorch.

    By default the file can make tensors, containers and numbers only, and nothing in
    it is executed: ``pickle.UnpicklingError`` for anything else that
    `torch.serialization.add_safe_globals` does not allow. ``weights_only=False`` reads
    any object and runs what the file says: for files that you trust.

    `map_location` says on which device tensors are put: a device, a dict from where
    they were, or a function of a storage and its location. With ``mmap=True`` values
    stay in the file until they are used. RuntimeError for files that are damaged. See
    https://docs.pytorch.org/docs/2.13/generated/torch.load.html.
    """
    weights_only = _is_weights_only(weights_only, pickle_module)
    if weights_only:
        if pickle_module is not None:
            raise RuntimeError(
                "Can not safely load weights when explicit pickle_module is specified"
            )
        if pickle_load_args:
            warnings.warn(
                "pickle_load_args only works if `weights_only=False`.", stacklevel=2
            )
    elif pickle_module is None:
        pickle_module = pickle
    if mmap is None:
        mmap = _options.load.mmap
    check_dill(pickle_module)
    pickle_load_args.setdefault("encoding", "utf-8")
    if not _is_path(f):
        _check_seekable(f)
        return _load_file(
            f, None, map_location, pickle_module, weights_only, mmap, pickle_load_args
        )
    path = os.fspath(f)
    if path.endswith(".safetensors"):
        return load_safetensors(path, map_location)
    with open(path, "rb") as file:
        return _load_file(
            file,
            path,
            map_location,
            pickle_module,
            weights_only,
            mmap,
            pickle_load_args,
        )


def _is_weights_only(given: bool | None, pickle_module: Any) -> bool:
    asked = pickle_module is None if given is None else given
    yes = ("1", "y", "yes", "true")
    force = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in yes
    forbid = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in yes
    if force and forbid:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or "
            "`TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if force:
        return True
    if forbid and given is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since "
            "the`weights_only` argument was not explicitly passed to `torch.load`, "
            "forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return asked


def _check_seekable(file: Any) -> bool:
    try:
        file.seek(file.tell())
        return True
    except (io.UnsupportedOperation, AttributeError) as error:
        text = str(error)
        if "seek" not in text and "tell" not in text:
            raise
        raise type(error)(
            f"{text}. You can only torch.load from a file that is seekable. Please "
            "pre-load the data into a buffer like io.BytesIO and try to load from it "
            "instead."
        ) from None


def _load_file(
    file: IO[bytes],
    path: str | None,
    map_location: Any,
    pickle_module: Any,
    weights_only: bool,
    mmap: bool,
    options: dict[str, Any],
) -> Any:
    source: _Archive | _Legacy
    if _is_zipfile(file):
        reader = Reader(file)
        if "constants.pkl" in reader:
            _refuse_script(weights_only)
        if mmap and path is None:
            raise ValueError("f must be a file path in order to use the mmap argument")
        source = _Archive(reader, restorer(map_location), path if mmap else None)
    elif mmap:
        name = "" if path is None else f"{path}, "
        raise RuntimeError(
            "mmap can only be used with files saved with "
            f"`torch.save({name}_use_new_zipfile_serialization=True), please "
            "torch.save your checkpoint with this option in order to use mmap."
        )
    else:
        _refuse_tar(file, weights_only)
        source = _Legacy(file, restorer(map_location))
    if not weights_only:
        try:
            return source.load(_full_unpickler(pickle_module), options)
        except EOFError:
            raise EOFError("Ran out of input") from None
    try:
        return source.load(_weights_only.Unpickler, options)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(_explained(str(error))) from None


def _starts_with(file: IO[bytes], start: bytes) -> bool:
    position = file.tell()
    found = file.read(len(start))
    file.seek(position)
    return found == start


def _is_zipfile(f: IO[bytes]) -> bool:
    return _starts_with(f, _ZIP)


def _refuse_script(weights_only: bool) -> None:
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive "
        "dispatching to 'torch.jit.load' (call 'torch.jit.load' directly to silence "
        "this warning)",
        UserWarning,
        stacklevel=4,
    )
    if weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to "
            f"``torch.load``. {UNSAFE}"
        )
    raise NotImplementedError("TorchScript archives are not supported")


def _refuse_tar(file: IO[bytes], weights_only: bool) -> None:
    position = file.tell()
    head = file.read(512)
    file.seek(position)
    if head[257:262] != b"ustar":
        return
    if weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar "
            f"format. {UNSAFE}"
        )
    raise NotImplementedError("files in the legacy .tar format are not supported")


def _explained(message: str) -> str:
    """PyTorch's advice around what the unpickler says."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default.", message):
        advice = (
            "Weights only load failed. This file can still be loaded, to do so you "
            "have two options, \033[1mdo those steps only if you trust the source of "
            f"the checkpoint\033[0m. \n\t(1) {UNSAFE}\n\t(2) Alternatively, to load "
            "with `weights_only=True` please check the recommended steps in the "
            f"following error message.\n\tWeightsUnpickler error: {message}"
        )
        return advice + _DOCS
    advice = f"Weights only load failed. {UNSAFE}\n"
    if not re.search(r"whose module (\S+) is blocked", message):
        advice += (
            "Please file an issue with the following so that we can make "
            "`weights_only=True` compatible with your use case: WeightsUnpickler "
            "error: "
        )
    return f"{advice}\n\n{message}{_DOCS}"


def _full_unpickler(pickle_module: Any) -> Any:
    class Unpickler(pickle_module.Unpickler):
        """Finds PyTorch's names among ours."""

        def find_class(self, mod_name: str, name: str) -> Any:
            if "Storage" in name:
                try:
                    return storage_type(name)
                except KeyError:
                    pass
            if mod_name == "torch" or mod_name.startswith("torch."):
                return find(mod_name, name)
            return super().find_class(mod_name, name)

    return Unpickler


def decoded(value: Any) -> str:
    # Files of Python 2 hold these as bytes.
    return value.decode("ascii") if isinstance(value, bytes) else value


def _storage_id(saved: Any, places: int) -> tuple[Any, ...]:
    """What a file says of a storage; UnpicklingError where it says something else."""
    if not isinstance(saved, tuple):
        raise AssertionError(f"saved_id must be a tuple, got {type(saved).__name__}")
    if decoded(saved[0] if saved else None) != "storage":
        named = decoded(saved[0]) if saved else saved
        if places == 6:  # the old format
            raise RuntimeError(f"Unknown saved id type: {named}")
        raise AssertionError(
            "Unknown typename for persistent_load, expected 'storage' but got "
            f"'{named}'"
        )
    kind, key, location, count, *_ = saved[1:] if len(saved) >= places else (0,) * 4
    named = isinstance(kind, StorageType) or kind is UntypedStorage
    if not named or type(count) is not int or count < 0:
        raise pickle.UnpicklingError(f"not the description of a storage: {saved}")
    return kind, decoded(key), decoded(location), count


def _kind_of(named: Any) -> dtype:
    return uint8 if named is UntypedStorage else named.dtype


class _Archive:
    """A file in the zip format."""

    def __init__(
        self,
        reader: Reader,
        restore: Callable[[UntypedStorage, str], UntypedStorage],
        path: str | None,
    ) -> None:
        self.reader = reader
        self.restore = restore
        self.path = path  # where the file is to be mapped
        if ".format_version" in reader:
            reader.read(".format_version")
        self.swapped = self._byte_order() != sys.byteorder
        if ".storage_alignment" in reader:
            int(reader.read(".storage_alignment"))  # ValueError, as in PyTorch
        self.loaded: dict[str, UntypedStorage] = {}

    def _byte_order(self) -> str:
        if "byteorder" in self.reader:
            found = self.reader.read("byteorder")
            if found not in (b"little", b"big"):
                raise ValueError(
                    f"Unknown endianness type: {found.decode(errors='replace')}"
                )
            return found.decode()
        wanted = _options.load.endianness
        if wanted is _options.LoadEndianness.NATIVE:
            return sys.byteorder
        return "big" if wanted is _options.LoadEndianness.BIG else "little"

    def load(self, unpickler: Any, options: dict[str, Any]) -> Any:
        reading = unpickler(io.BytesIO(self.reader.read("data.pkl")), **options)
        reading.persistent_load = self._storage
        return reading.load()

    def _storage(self, saved: Any) -> TypedStorage:
        named, key, location, count = _storage_id(saved, 5)
        kind = _kind_of(named)
        found = self.loaded.get(key)
        if found is None:
            data = self._data(f"data/{key}", count * kind.itemsize, kind)
            found = self.loaded[key] = self.restore(cpu_storage(data), location)
        return TypedStorage(found, kind)

    def _data(self, name: str, size: int, kind: dtype) -> np.ndarray:
        have = self.reader.size(name)
        if have != size:
            raise RuntimeError(
                f"record size ({have} bytes) does not match expected size ({size} "
                f"bytes = {size} elements * 1 bytes/element) for dtype Byte"
            )
        if _options.skipping.on:
            return np.zeros(size, np.uint8)
        if self.path is not None and not self.swapped:
            shared = _options.load.mmap_flags == _options.MAP_SHARED
            return self.reader.mapped(name, self.path, shared)
        return _ordered(self.reader.read(name), kind, self.swapped)


def _ordered(data: bytes, kind: dtype, swapped: bool) -> np.ndarray:
    flat = np.frombuffer(data, np.uint8)
    if not swapped or kind.itemsize == 1:
        return flat
    return flat.view(array_dtype(kind)).byteswap().view(np.uint8)


class _Legacy:
    """A file of several pickles, as PyTorch wrote them before 1.6.

    The storages' data come after the object. So the object's pickle is first read for
    what it says of its storages, without making anything, and loaded in the end.
    """

    def __init__(
        self,
        file: IO[bytes],
        restore: Callable[[UntypedStorage, str], UntypedStorage],
    ) -> None:
        self.file = file
        self.restore = restore
        self.data: dict[str, np.ndarray] = {}
        self.loaded: dict[str, UntypedStorage] = {}
        self.failure: Exception | None = None
        self.size = 0

    def load(self, unpickler: Any, options: dict[str, Any]) -> Any:
        file = self.file
        weights_only = unpickler is _weights_only.Unpickler
        head = unpickler(file, **options).load()
        if head != MAGIC_NUMBER:
            raise RuntimeError("Invalid magic number; corrupt file?")
        version = unpickler(file, **options).load()
        if version != PROTOCOL_VERSION:
            raise RuntimeError(f"Invalid protocol version: {version}")
        system = unpickler(file, **options).load()
        little = not isinstance(system, dict) or system.get("little_endian", True)
        begin = file.tell()
        self.size = file.seek(0, os.SEEK_END)
        file.seek(begin)
        try:
            found = storages_in(file, weights_only, options)
            keys = unpickler(file, **options).load()
            self._read_all(found, keys, bool(little))
        except Exception as error:  # raised after what loading the object raises
            self.failure = error
        end = file.tell()
        file.seek(begin)
        reading = unpickler(file, **options)
        reading.persistent_load = self._persistent
        result = reading.load()
        if self.failure is not None:
            raise self.failure
        file.seek(end)
        return result

    def _read_all(self, found: dict[Any, Any], keys: Any, little: bool) -> None:
        for key in keys:
            if key not in found:
                raise AssertionError(
                    f"storage key {key!r} not found in deserialized_objects"
                )
            kind, count = found[key]
            self.data[decoded(key)] = self._read(kind, count, little)

    def _read(self, kind: dtype, expected: Any, little: bool) -> np.ndarray:
        (count,) = struct.unpack("<q" if little else ">q", self._exactly(8))
        if count != expected:
            have = count * kind.itemsize % (1 << 64)
            raise RuntimeError(
                "storage has wrong byte size: expected %ld got %ld"
                f"{have}{expected * kind.itemsize}"
            )
        data = self._exactly(count * kind.itemsize)
        return _ordered(data, kind, little != (sys.byteorder == "little"))

    def _exactly(self, size: int) -> bytes:
        # In pieces: no more memory is taken than the file has to fill it.
        pieces, missing = [], size
        while missing:
            piece = self.file.read(min(missing, 1 << 24))
            if not piece:
                raise RuntimeError(
                    f"unexpected EOF, expected {missing} more bytes. The file might be "
                    "corrupted."
                )
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _persistent(self, saved: Any) -> Any:
        if isinstance(saved, tuple) and len(saved) > 1 and saved[0] == "module":
            return saved[1]  # a class, with the text of its source
        named, key, location, count = _storage_id(saved, 6)
        if list(saved)[5] is not None:
            raise NotImplementedError(
                "storages within storages, as files of PyTorch before 0.4 have them, "
                "are not supported"
            )
        kind = _kind_of(named)
        found = self.loaded.get(key)
        if found is None:
            data = self.data.get(key)
            if data is None and self.failure is not None:
                data = self._stand_in(count * kind.itemsize)
            if data is None or data.nbytes != count * kind.itemsize:
                raise RuntimeError(
                    f"the file does not have the {count} elements of storage {key!r}"
                )
            found = self.loaded[key] = self.restore(cpu_storage(data), location)
        return TypedStorage(found, kind)

    def _stand_in(self, size: int) -> np.ndarray:
        """Zeros where the data cannot be read, for the errors that come before that."""
        assert self.failure is not None
        if size > self.size:  # no more memory than the file takes
            raise self.failure
        return np.zeros(size, np.uint8)
