"""Files that are damaged or mean harm, options, and what may not be saved."""

from __future__ import annotations

import collections
import io
import os
import pickle
import re
import struct
import tempfile
import tracemalloc
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchshim
from tests.oracle import attempt, case
from tests.serialization.objects import FILES


def saved(torch: Any, value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def changed(data: bytes, changes: dict[str, Any], compression: int = 0) -> bytes:
    """An archive with other records; None leaves one out, a function changes it."""
    source, file = zipfile.ZipFile(io.BytesIO(data)), io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        names = {name.partition("/")[2] for name in source.namelist()}
        for name in sorted(names | set(changes), key=lambda n: (n != "data.pkl", n)):
            record = changes.get(name, lambda old: old)
            if callable(record):
                record = record(source.read(f"archive/{name}"))
            if record is not None:
                target.writestr(f"archive/{name}", record)
    return file.getvalue()


def loaded(torch: Any, data: bytes, **options: Any) -> Any:
    return attempt(torch.load, io.BytesIO(data), **options)


class Evil:
    """An object whose pickle calls a function."""

    def __init__(self, func: Any, *args: Any) -> None:
        self.call = func, args

    def __reduce__(self) -> Any:
        return self.call


class Mine:
    def __init__(self) -> None:
        self.x = 1


def tensor_of(torch: Any, offset: Any, size: Any, stride: Any) -> bytes:
    """A file with a tensor of any geometry on a storage of six elements."""
    x = torch.arange(6.0)
    name = b"ctorch._utils\n_rebuild_tensor_v2\n"
    whole = saved(torch, x)

    def pickled(old: bytes) -> bytes:
        body = old[old.index(b"Q") + 1 :]
        parts = [pickle.dumps(v, 2)[2:-1] for v in (offset, size, stride)]
        parts = [re.sub(rb"q[\x00-\x09]", b"", p, flags=re.S) for p in parts]
        rest = body[body.index(b"\x89") :]
        return old[: old.index(b"Q") + 1] + b"".join(parts) + rest

    assert name in zipfile.ZipFile(io.BytesIO(whole)).read("archive/data.pkl")
    return changed(whole, {"data.pkl": pickled})


@case
def damaged_archives(torch):
    data = saved(torch, torch.arange(6.0))
    yield loaded(torch, data[: len(data) // 2])
    yield loaded(torch, data[:10])
    yield loaded(torch, b"")
    yield loaded(torch, changed(data, {"data/0": lambda old: old[:8]}))
    yield loaded(torch, changed(data, {"data/0": lambda old: old * 3}))
    yield loaded(torch, changed(data, {"data/0": None}))
    yield loaded(torch, changed(data, {"data.pkl": None}))
    yield loaded(torch, changed(data, {"byteorder": b"middle"}))
    yield loaded(torch, changed(data, {"version": None}))
    yield loaded(torch, changed(data, {"version": b"99"}))
    yield loaded(torch, changed(data, {"constants.pkl": b""}))
    swapped = np.arange(6, dtype=">f4").tobytes()
    yield loaded(torch, changed(data, {"byteorder": b"big", "data/0": swapped}))
    yield loaded(torch, changed(data, {"byteorder": None}))


@case
def damaged_legacy_files(torch):
    data = saved(torch, torch.arange(6.0), _use_new_zipfile_serialization=False)
    yield loaded(torch, data[:-5])
    yield loaded(torch, pickle.dumps(3, 2) + data)
    magic = pickle.dumps(torch.serialization.MAGIC_NUMBER, 2)
    yield loaded(torch, magic + pickle.dumps(7, 2))
    yield loaded(torch, data, mmap=True)


@case
def geometry(torch):
    for at in (
        (1, (2,), (2,)),
        (0, (7,), (1,)),
        (6, (1,), (1,)),
        (-1, (1,), (1,)),
        (5, (3,), (-1,)),
        (0, (-3,), (1,)),
        (0, (4, 3), (0, 1)),
        (0, (3,), (1, 1)),
        (0, (1 << 40,), (1,)),
        (0, (1 << 62, 8), (1, 1)),
        (10, (0,), (1,)),
    ):
        yield loaded(torch, tensor_of(torch, *at))


@case
def refused_globals(torch):
    for value in (
        Evil(print, "run"),
        Evil(os.system, "true"),
        Evil(getattr, "", "strip"),
        Mine(),
        torch.nn.Linear(1, 1),
        torch.optim.SGD([torch.zeros(1)], 0.1),
        torch.Generator(),
        frozenset([1]),
        collections.defaultdict(list),
    ):
        data = saved(torch, value)
        yield loaded(torch, data)
        found = torch.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(data))
        yield sorted(found)
    for protocol in (3, 4):
        yield loaded(torch, saved(torch, {"a": b"x"}, pickle_protocol=protocol))


@case
def allowed_globals(torch):
    data = saved(torch, [Mine(), torch.nn.ReLU()])
    ours = torch.serialization
    before = set(ours.get_safe_globals())
    with ours.safe_globals([Mine, torch.nn.ReLU, set]):
        yield len(set(ours.get_safe_globals()) - before)
        yield loaded(torch, data)[0].x
    yield set(ours.get_safe_globals()) - before
    ours.add_safe_globals([(Mine, "tests.serialization.test_refusals.Mine")])
    yield loaded(torch, saved(torch, Mine())).x
    ours.clear_safe_globals()
    yield type(loaded(torch, saved(torch, Mine())))
    ours.add_safe_globals([(1, 2, 3)])
    # Entries are looked at by files that need them.
    yield loaded(torch, saved(torch, torch.ones(1)))
    yield loaded(torch, saved(torch, Mine()))
    ours.clear_safe_globals()


@case
def locations(torch):
    data = saved(torch, torch.arange(3.0))
    seen = []

    def asked(storage, location):
        seen.append((type(storage).__name__, storage.nbytes(), location))

    for place in ("cpu", torch.device("cpu"), {"cpu": "cpu"}, asked):
        yield loaded(torch, data, map_location=place)
    yield seen
    yield loaded(torch, data, map_location=lambda storage, location: storage)
    for wrong in 3, "cpu", torch.ones(2):
        yield loaded(torch, data, map_location=lambda storage, location, w=wrong: w)
    for place in ("cuda", "cuda:1", "foo", {"cpu": "hpu"}, 3):
        error = loaded(torch, data, map_location=place)
        yield str(error) if torch.cuda.is_available() is False else None
    yield torch.serialization.location_tag(torch.ones(1).untyped_storage())


@case
def registered_package(torch):
    def tag(storage):
        return "elsewhere" if storage.nbytes() == 20 else None

    def restore(storage, location):
        return storage if location == "elsewhere" else None

    registry = None
    torch.serialization.register_package(1, tag, restore)
    data = saved(torch, [torch.arange(5.0), torch.ones(1)])
    seen = []
    yield loaded(torch, data, map_location=lambda s, where: seen.append(where))
    yield seen, registry


@case
def options(torch):
    data = saved(torch, torch.ones(1))
    yield loaded(torch, data, mmap=True)
    yield loaded(torch, data, pickle_module=pickle, weights_only=True)
    yield loaded(torch, data, pickle_module=pickle)
    yield loaded(torch, data, encoding="ascii")
    yield loaded(torch, data, weights_only=False, encoding="ascii")
    yield attempt(torch.load, 5)
    yield attempt(torch.load, "/nowhere/at/all.pt")
    yield attempt(torch.save, 1, 5)
    yield attempt(torch.save, 1, "/nowhere/at/all.pt")
    yield attempt(torch.save, lambda: 1, io.BytesIO())
    x = torch.ones(2)
    yield attempt(torch.save, [x, x.view(torch.int32)], io.BytesIO())
    yield attempt(torch.save, x.register_hook, io.BytesIO())
    ours = torch.serialization
    yield ours.get_default_load_endianness()
    yield attempt(ours.set_default_load_endianness, "little")
    ours.set_default_load_endianness(ours.LoadEndianness.BIG)
    big = changed(data, {"byteorder": None, "data/0": np.ones(1, ">f4").tobytes()})
    yield loaded(torch, big)
    ours.set_default_load_endianness(None)
    yield ours.get_crc32_options(), ours.get_default_mmap_options()
    yield attempt(ours.set_default_mmap_options, 77)
    with ours.skip_data():
        skipped = saved(torch, torch.ones(2))
    # The elements are whatever is in memory.
    yield loaded(torch, skipped).shape
    with ours.skip_data():
        yield loaded(torch, data).shape
        yield attempt(saved, torch, 1, _use_new_zipfile_serialization=False)


@case
def paths_and_files(torch):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pt"
        for where in (path, str(path)):
            torch.save({"a": torch.ones(2)}, where)
            yield torch.load(where)
        names = zipfile.ZipFile(path).namelist()
        yield {"model/data.pkl", "model/data/0", "model/version"} <= set(names)
        with path.open("rb") as file:
            yield torch.load(file)
        with path.open("wb") as file:
            torch.save(torch.ones(1), file)
        yield torch.load(path)
        yield os.listdir(folder)


class Failing:
    def __reduce__(self):
        raise OSError("while saving")


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    torch, path = torchshim, tmp_path / "model.pt"
    torch.save({"a": torch.ones(2)}, path)
    before = path.read_bytes()
    with pytest.raises(OSError, match="while saving"):
        torch.save(Failing(), path)
    assert path.read_bytes() == before
    # ... also when it fails half-way through the data.
    from torchshim.serialization import _saving

    monkeypatch.setattr(_saving, "_bytes_of", lambda *storage: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torch.save({"a": torch.zeros(9)}, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.pt"]


def test_saving_through_a_link_and_with_the_same_permissions(tmp_path):
    torch, path, link = torchshim, tmp_path / "model.pt", tmp_path / "latest.pt"
    torch.save(1, path)
    path.chmod(0o640)
    link.symlink_to(path)
    torch.save(2, link)
    assert link.is_symlink() and torch.load(path) == 2
    assert path.stat().st_mode & 0o777 == 0o640


def refused(data: bytes, *kinds: type[BaseException]) -> None:
    """The file is an error, and costs no memory to speak of."""
    tracemalloc.start()
    try:
        with pytest.raises(kinds or (RuntimeError, pickle.UnpicklingError)):
            torchshim.load(io.BytesIO(data))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_bombs():
    data = saved(torchshim, torchshim.arange(6.0))
    zeros = changed(data, {"data/0": bytes(50 << 20)}, zipfile.ZIP_DEFLATED)
    refused(zeros)
    refused(changed(data, {"data.pkl": bytes(50 << 20)}, zipfile.ZIP_DEFLATED))
    # A directory that claims more than there is.
    at = data.rindex(b"PK\x01\x02", 0, data.index(b"data/0", len(data) // 2))
    huge = data[: at + 20] + struct.pack("<LL", 1 << 31, 1 << 31) + data[at + 28 :]
    refused(huge)
    # Sizes within the pickle.
    numbers = {"data.pkl": lambda old: old.replace(b"K\x06", b"J\xff\xff\xff\x7f")}
    refused(changed(data, numbers))
    legacy = saved(
        torchshim, torchshim.arange(6.0), _use_new_zipfile_serialization=False
    )
    count = struct.pack("<q", 6)
    refused(legacy.replace(count, struct.pack("<q", 1 << 40)))
    refused(legacy.replace(count, struct.pack("<q", -6)))


def pickled(body: bytes) -> bytes:
    """An archive with a pickle written by hand."""
    return changed(saved(torchshim, 1), {"data.pkl": b"\x80\x02" + body})


@pytest.mark.parametrize(
    "body",
    [
        b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        b"c__builtin__\nexec\n.",
        b"csys\nmodules\n.",
        b"cbuiltins\nbytearray\nJ\x00\x00\x00\x40\x85R.",
        b"c_codecs\nencode\nX\x01\x00\x00\x00xX\x03\x00\x00\x00zip\x86R.",
        b"ctorch\nTensor\nJ\x00\x00\x00\x40\x85R.",
        b"ctorch\nFloatTensor\nJ\x00\x00\x00\x40\x85\x81.",
        b"ctorch\nfloat32\n)R.",
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch\nTensor\nctorch\nTensor\n)}tR.",
        b"X\xff\xff\xff\xffa.",
        b"\x8a\xffa.",
        b"h\x05.",
        b"q\x05.",
        b"a.",
        b"(.",
        b"u.",
        b"t.",
        b"\x86.",
        b"]K\x01K\x02s.",
        b"K\x01K\x02a.",
        b"K\x01b.",
        b"K\x01)\x81.",
        b"X\x06\x00\x00\x00system\x85Q.",
        b"K\x01Q.",
        b"(X\x07\x00\x00\x00storageK\x01K\x01K\x01K\x01tQ.",
        b"cfoo\n",
        b"(I1\n.",
        b"\x93.",
        b"\xff.",
        b"K",
    ],
)
def test_harmful_pickles(body):
    kinds = (RuntimeError, pickle.UnpicklingError, TypeError)
    others = (EOFError, LookupError, AssertionError, struct.error)
    refused(pickled(body), *kinds, *others)


def test_states_cannot_change_what_a_tensor_is():
    body = (
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_parameter\n"
        b"ctorch\nTensor\n(ctorch._utils\n_rebuild_device_tensor_from_numpy\n"
        b"\x89NtX\x05\x00\x00\x00_slotK\x05stR."
    )
    refused(
        pickled(body), RuntimeError, pickle.UnpicklingError, TypeError, AttributeError
    )
    file = io.BytesIO()
    x = torchshim.ones(2)
    x.note = 1
    torchshim.save(x, file)
    name, other = b"X\x04\x00\x00\x00note", b"X\x05\x00\x00\x00_slot"
    data = changed(file.getvalue(), {"data.pkl": lambda old: old.replace(name, other)})
    refused(data, RuntimeError)


def test_any_cut_or_changed_byte_is_an_error_or_a_value():
    # Never a crash, a hang, or an error of the wrong kind.
    data = (FILES / "containers.pt").read_bytes()
    kinds = (RuntimeError, pickle.UnpicklingError, ValueError, TypeError, EOFError)
    random = np.random.default_rng(0)
    archive = zipfile.ZipFile(io.BytesIO(data))
    whole = archive.read("containers/data.pkl")
    for _ in range(300):
        old = bytearray(whole)
        old[random.integers(len(old))] = random.integers(256)
        if random.integers(4) == 0:
            del old[random.integers(len(old)) :]
        file = changed(
            saved(torchshim, [torchshim.zeros(12)]), {"data.pkl": bytes(old)}
        )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the protocol's number changed
                torchshim.load(io.BytesIO(file))
        except (*kinds, LookupError, AttributeError, AssertionError, struct.error):
            pass
