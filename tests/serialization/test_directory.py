"""Archives whose directory is damaged, byte by byte, in both ways of writing one."""

from __future__ import annotations

import io
import pickle
from typing import Any

import torchshim
from tests.oracle import attempt, case
from tests.serialization.objects import FILES
from tests.serialization.test_refusals import saved

# As PyTorch writes it, with the larger form of the end; as torchshim once wrote it.
WRITERS = {"torch": FILES / "piece.pt", "torchshim": FILES / "torchshim" / "piece.pt"}


def told(torch: Any, data: bytes) -> str:
    """What loading gives, the beginning of it."""
    found = attempt(torch.load, io.BytesIO(data))
    if not isinstance(found, Exception):
        return str(found)
    text = str(found).partition(" in position")[0]  # of the text that names are in
    return f"{type(found).__name__}: {text[:99]}"


def with_byte(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + bytes([value]) + data[at + 1 :]


@case.over("torch", "torchshim")
def changed_bytes(torch, writer):
    data = WRITERS[writer].read_bytes()
    entry, end = data.index(b"PK\1\2"), data.rindex(b"PK\5\6")
    last = data.rindex(b"PK\1\2")
    large = data.find(b"PK\6\6")
    places = [*range(entry, entry + 46), *range(last + 4, last + 46)]
    # Of what is called a folder PyTorch gives memory that nobody wrote.
    places.remove(entry + 38)
    places.remove(last + 38)
    places += range(large if large >= 0 else end, len(data))
    for at in places:
        for value in (0, 1, 255):
            yield at, value, told(torch, with_byte(data, at, value))


@case.over("torch", "torchshim")
def shifted_bytes(torch, writer):
    data = WRITERS[writer].read_bytes()
    for at in range(0, len(data), 23):
        yield at, told(torch, data[:at] + data[at + 1 :])
        yield at, told(torch, data[:at] + b"PK" + data[at:])
        yield at, told(torch, data[:at])


@case.over("torch", "torchshim")
def changed_names(torch, writer):
    data = WRITERS[writer].read_bytes()
    middle = data.index(b"PK\1\2")
    head, tail = data[:middle], data[middle:]
    folder = tail[46 : tail.index(b"/")]
    assert tail.count(folder + b"/version") == 1
    yield told(torch, b"PK\3\4 in front" + data)
    yield told(torch, data + b"behind")
    yield told(torch, data.replace(folder + b"/", folder + b"_"))
    for name in (b"/data.pkl", b"/version", b"/byteorder", b"/data/0"):
        for other in (b"\xff" * len(name), b"/" + b"x" * len(name[1:])):
            yield name, told(torch, head + tail.replace(name, other))
        moved = tail.replace(folder + name, b"other/"[: len(folder)] + name)
        yield name, told(torch, head + moved)
    last = tail.rindex(b"PK\5\6")
    nothing = tail[last : last + 8] + bytes(14)
    yield told(torch, b"PK\3\4" + bytes(40) + nothing)


@case
def versions(torch):
    data = WRITERS["torch"].read_bytes()
    at = data.index(b"3\n", data.index(b"/version"))
    for text in (b"0\n", b"1\n", b"10", b"11", b"-1", b"+2", b" 3", b"3a", b"x\n"):
        yield text, told(torch, data[:at] + text + data[at + 2 :])


@case
def alignments(torch):
    data = WRITERS["torch"].read_bytes()
    for name in (b"/.storage_alignment", b"/.format_version"):
        at = data.index(b"\0", data.index(name))
        first = data.index(b"PK\7\10", at)
        yield name, told(torch, with_byte(data, first - 1, ord("x")))
        header = data.rindex(b"PK\3\4", 0, at)
        yield name, told(torch, with_byte(data, header, 0))


def pieces(torch: Any, protocol: int = 2) -> list[Any]:
    """The pickles of a file in the old format, and the bytes of its one storage."""
    file = io.BytesIO(
        saved(
            torch,
            {"x": torch.arange(3)},
            _use_new_zipfile_serialization=False,
            pickle_protocol=protocol,
        )
    )

    class Reader(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str) -> Any:
            return lambda *args: {}

        def persistent_load(self, pid: Any) -> Any:
            return None

    found, begin = [], 0
    for _ in range(5):
        Reader(file).load()
        found.append(file.getvalue()[begin : file.tell()])
        begin = file.tell()
    return [*found, file.read()]


@case(warnings=False)
def old_format(torch):
    magic, protocol, system, body, keys, data = pieces(torch)
    (key,) = pickle.loads(keys)
    rest = magic + protocol + system
    other = pickle.dumps(["nothing"], 2)
    for weights_only in (True, False):

        def load(data, weights_only=weights_only):
            found = attempt(torch.load, io.BytesIO(data), weights_only=weights_only)
            # Python's own text has a break until 3.12.
            told = str(found).replace(f"'{key}'", "KEY").replace(",\nbut", ", but")
            return type(found).__name__, told.partition(" on <module")[0]

        yield load(rest + body + keys + data)
        yield load(rest + body + other + data)
        yield load(rest + body + pickle.dumps([key, "nothing"], 2) + data)
        yield load(rest + body + keys + b"\2" + data[1:])
        yield load(rest + body + keys + b"\xff" * 8 + data[8:])
        yield load(rest + body.replace(b"_rebuild_", b"_unknown_") + other)
        yield load(rest + body.replace(b"_rebuild_", b"_unknown_") + keys + b"\1")
        yield load(rest + body.replace(b"\1" + b"storage", b"\1" + b"strange"))
    yield load(b"\x80\x02)Q." + rest)


@case.over(0, 1, 2, 3, 4, 5)
def protocols(torch, protocol):
    value = {"x": torch.ones(2), "module": torch.nn.Linear(1, 1), "s": {1, "x" * 300}}
    torch.nn.init.ones_(value["module"].weight)
    for zipped in (True, False):
        data = saved(
            torch,
            value,
            _use_new_zipfile_serialization=zipped,
            pickle_protocol=protocol,
        )
        found = attempt(torch.load, io.BytesIO(data), weights_only=False)
        if isinstance(found, dict):
            yield list(found), found["x"], found["module"].weight
        else:
            yield found


def test_what_is_no_storage_in_a_description():
    data = (FILES / "piece.pt").read_bytes().replace(b"storageq", b"strangeq")
    for weights_only in (True, False):
        found = attempt(torchshim.load, io.BytesIO(data), weights_only=weights_only)
        assert isinstance(found, (AssertionError, pickle.UnpicklingError))
