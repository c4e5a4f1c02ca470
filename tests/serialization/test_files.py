"""Checkpoints of either engine, read and written by either."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import torchshim
from tests import oracle
from tests.oracle import case
from tests.serialization import pickles
from tests.serialization.objects import FILES, PLAIN, objects, show
from torchshim.serialization._archive import Reader, Writer

# PyTorch itself cannot read them from files in the old format.
NEW_FILES_ONLY = ("dtypes", "generator", "storage")
NAMES = sorted(str(path.relative_to(FILES)) for path in FILES.rglob("*.pt"))


@case(stride=True, warnings=False).over(*NAMES)
def kept_file(torch, name):
    # Files that were written by PyTorch, and by torchshim, once.
    return show(torch, torch.load(FILES / name, weights_only=False))


@case(stride=True).over(*PLAIN)
def weights_only(torch, name):
    return show(torch, torch.load(FILES / f"{name}.pt"))


@case.over(legacy=[False, True])
def round_trip(torch, legacy):
    with warnings.catch_warnings():
        # That typed storages will go is told once in a process.
        warnings.simplefilter("ignore")
        torch.ones(1).storage()
    for name, value in objects(torch).items():
        if legacy and name in NEW_FILES_ONLY:
            continue
        file = io.BytesIO()
        torch.save(value, file, _use_new_zipfile_serialization=not legacy)
        file.seek(0)
        yield name, show(torch, torch.load(file, weights_only=False))


@case
def bytes_written(torch):
    # All but the number that tells one file from another.
    file = io.BytesIO()
    with torch.serialization._open_zipfile_writer(file) as archive:
        for size in (0, 1, 13, 64, 1000):
            archive.write_record(f"data/{size}", b"x" * size, size)
    data = file.getvalue()
    numbered = data.index(b"archive/.data/serialization_id")
    yield len(data), data[:numbered]
    with zipfile.ZipFile(file) as archive:
        numbered = archive.infolist()[-1]
        yield numbered.filename, numbered.header_offset, numbered.file_size
        yield archive.testzip()
    # Without the sum of the number.
    entries = data.index(b"PK\1\2")
    last = data.rindex(b"PK\1\2")
    yield data[entries : last + 16], data[last + 20 :]


@case
def within_a_file(torch):
    file = io.BytesIO(b"before")
    file.seek(6)
    torch.save(torch.ones(2), file)
    torch.save(torch.zeros(2), file)
    file.seek(6)
    yield len(file.getvalue()), torch.load(file).shape
    yield file.getvalue().index(b"PK\3\4", 6)


@case
def empty_records(torch):
    file = io.BytesIO()
    torch.save([torch.empty(0), torch.ones(1)], file)
    file.seek(0)
    yield len(file.getvalue()), torch.load(file)


def test_records_beyond_4_gib(tmp_path):
    # A file with holes: nothing of its length is written.
    path = tmp_path / "large.pt"
    with path.open("wb") as file:
        writer = Writer(file, "archive")
        for name in ("a", "b"):
            file.seek(writer._at + 2**32 - 2**31 * (name == "a"))
            writer._at = file.tell()
            writer.write(name, name.encode())
        with writer:
            pass
    with path.open("rb") as file:
        reader = Reader(file)
        assert [reader.read(name) for name in ("a", "b")] == [b"a", b"b"]
    with zipfile.ZipFile(path) as archive:
        assert [archive.read(f"archive/{name}") for name in ("a", "b")] == [b"a", b"b"]


@case
def archives_of_records(torch):
    module = torch.serialization
    records = {"a": b"12039810", "b": b"1239081209484958", "c/d": b"9458"}
    file = io.BytesIO()
    with module._open_zipfile_writer(file) as archive:
        for name, data in records.items():
            archive.write_record(name, data, len(data))
        archive.write_record("part", b"12345", 3)
    file.seek(0)
    with module._open_zipfile_reader(file) as archive:
        yield {name: archive.get_record(name) for name in (*records, "part")}
        yield archive.has_record("a"), archive.has_record("e")
        at = archive.get_record_offset("c/d")
        yield file.getvalue()[at : at + 4]
    file = io.BytesIO()
    with module._open_zipfile_writer(file) as archive:
        archive.write_record("order", "little", 6)
        archive.write_record_metadata("empty", 5)
    with module._open_zipfile_reader(io.BytesIO(file.getvalue())) as archive:
        yield archive.get_record("order"), archive.get_record("empty")


@case.over("views.pt", "views.legacy.pt", "torchshim/views.pt")
def aliases(torch, name):
    loaded = torch.load(FILES / name)
    loaded[0][1, 1] = -1
    loaded[2][3, 2] = -2
    yield [t.tolist() for t in loaded]
    yield len({t.untyped_storage().data_ptr() for t in loaded})
    module = torch.load(FILES / "module.pt", weights_only=False)
    yield module.tied is module.first
    with torch.no_grad():
        module.tied.weight.zero_()
    yield module.first.weight


@case
def mapped(torch):
    for name in ("views.pt", "dtypes.pt", "state_dict.pt"):
        loaded = torch.load(FILES / name, mmap=True)
        yield show(torch, loaded)
    loaded = torch.load(FILES / "views.pt", mmap=True)
    loaded[0].add_(1)
    yield loaded[1] * 2, loaded[3]
    yield torch.load(FILES / "views.pt")[0]  # the file stays as it was


@case
def training_goes_on(torch):
    # From files: the model, the optimizer's state, and the next steps.
    layer = torch.nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.fill_(0.25)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.5)
    optimizer.load_state_dict(torch.load(FILES / "optimizer_state.pt"))
    for _ in range(2):
        layer(torch.ones(3, 2)).sum().backward()
        optimizer.step()
        yield layer.weight
    whole = torch.load(FILES / "momentum.pt", weights_only=False)
    parameter = whole.param_groups[0]["params"][0]
    parameter.grad = torch.ones(1, 2)
    whole.step()
    yield parameter
    net = torch.load(FILES / "module.pt", weights_only=False)
    yield net.first(torch.ones(1, 4)), net.act(net.norm(torch.ones(2, 3)))


@pytest.mark.live
@pytest.mark.parametrize("legacy", [False, True])
def test_exchange_live(legacy):
    torch = oracle.find_torch()
    for name in objects(torch):
        if legacy and name in NEW_FILES_ONLY:
            continue
        for writer, reader in ((torch, torchshim), (torchshim, torch)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value = objects(writer)[name]
                file = io.BytesIO()
                writer.save(value, file, _use_new_zipfile_serialization=not legacy)
                seen = []
                for engine in (writer, reader):
                    file.seek(0)
                    loaded = engine.load(file, weights_only=False)
                    seen.append(repr(_plain(show(engine, loaded))))
            assert seen[0] == seen[1], f"{name} from {writer.__name__}"


def _plain(value):
    """What `show` gives, without tensors of either engine."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return str(value.dtype), value.clone().tolist()
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def test_saving_leaves_a_training_step_alone():
    # Tensors that are saved stay what they are: the same program runs afterwards.
    torch = torchshim
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters())

    def step():
        optimizer.zero_grad()
        loss = layer(torch.ones(4, 3)).sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    def save():
        state = {"model": layer.state_dict(), "optimizer": optimizer}
        torch.save(state, io.BytesIO())

    for _ in range(3):
        step()
        save()
    before = torch.explain()
    for _ in range(2):
        step()
        save()
    assert not torch.explain(before).programs
    step()
    assert layer.weight._storage is None


def test_safetensors(tmp_path):
    import safetensors.numpy as numpy

    path = str(tmp_path / "model.safetensors")
    numpy.save_file({"a": np.arange(6.0).reshape(2, 3), "b": np.array([True])}, path)
    loaded = torchshim.load(path)
    assert loaded["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded["a"].dtype is torchshim.float64 and loaded["b"].tolist() == [True]
    with pytest.raises(RuntimeError, match="dict map_location"):
        torchshim.load(path, {"cpu": "cpu"})


SAFETENSORS = """
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file, save_model, load_model

layer = torch.nn.Linear(3, 4)
tensors = {
    **layer.state_dict(),
    "half": torch.arange(6.0).view(2, 3).half(),
    "brain": torch.ones(2, dtype=torch.bfloat16),
    "none": torch.zeros(0, 3),
    "one": torch.tensor(2.5),
    "part": torch.arange(6)[2:4],
}
save_file(tensors, "x.safetensors", metadata={"a": "b"})
found = load_file("x.safetensors")
print(all(torch.equal(tensors[k], v) for k, v in found.items()), len(found))
print([v.dtype for v in found.values()])
with safe_open("x.safetensors", framework="pt") as file:
    print(file.metadata(), file.get_slice("half")[:1])
save_model(layer, "m.safetensors")
print(load_model(torch.nn.Linear(3, 4), "m.safetensors"))
for wrong in {"a": layer.weight.T}, {"a": tensors["one"], "b": tensors["one"]}:
    try:
        save_file(wrong, "y.safetensors")
    except (RuntimeError, ValueError) as error:
        print(type(error).__name__)
"""


def test_safetensors_through_its_library(tmp_path):
    """It reads memory at `data_ptr()`, where there is none."""
    run = subprocess.run(
        [sys.executable, "-m", "torchshim", "-c", SAFETENSORS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(torchshim.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stderr == "" and run.returncode == 0
    assert run.stdout.splitlines() == [
        "True 7",
        "[torch.int64, torch.float32, torch.float32, torch.float32, torch.float32, "
        "torch.bfloat16, torch.float16]",
        "{'a': 'b'} tensor([[0., 1., 2.]], dtype=torch.float16)",
        "(set(), [])",
        "ValueError",
        "RuntimeError",
    ]


def test_what_pickle_itself_wrote():
    run = subprocess.run(
        [sys.executable, "-m", "torchshim", "-m", "tests.serialization.pickles"],
        cwd=Path(torchshim.__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stderr == "" and run.returncode == 0
    assert run.stdout == pickles.FILE.with_suffix(".txt").read_text()


def test_names_come_from_modules_that_offer_them():
    # `wishart` imports `Size` for its own use.
    import torchshim.distributions.wishart as wishart
    from torchshim.serialization._names import torch_name

    assert wishart.Size is torchshim.Size
    assert torch_name(torchshim.Size) == ("torch", "Size")
    assert torch_name(wishart.Wishart) == ("torch.distributions.wishart", "Wishart")
