"""Files that are no checkpoints, or broken ones: the error that PyTorch raises."""

from __future__ import annotations

import io
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

import torchshim
from tests.oracle import attempt, case
from tests.serialization.objects import FILES
from tests.serialization.test_refusals import changed, saved

QUANTIZED = FILES.parent / "quantized"
NO_CHECKPOINTS = {
    "nothing": b"",
    "text": b"hello world\n",
    "python": b"import torch\nprint(1)\n",
    "number": b"12345\n",
    "json": b'{"a": 1}\n',
    "html": b"<!DOCTYPE html><html></html>",
    "csv": b"a,b,c\n1,2,3\n",
    "yaml": b"lr: 0.1\n",
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:123\nsize 12\n",
    "unicode": "ünïcode\n".encode(),
    "zeros": b"\0" * 100,
    "bytes": bytes(range(128, 256)),
    "start of an archive": b"PK\x03\x04",
    "archive of junk": b"PK\x03\x04" + b"junk" * 30,
    "integer": b"I12\n.",
    "command": b'cos\nsystem\n(S"echo hi"\ntR.',
    **{f"pickle {n}": pickle.dumps({"a": 1, "b": [1]}, n) for n in (0, 2, 4, 5)},
}


def loaded(torch: Any, data: bytes, *, weights_only: bool = True, **options: Any):
    return attempt(torch.load, io.BytesIO(data), weights_only=weights_only, **options)


@case(warnings=False)
def no_checkpoints(torch):
    for name, data in NO_CHECKPOINTS.items():
        yield name, loaded(torch, data)
        if name != "command":
            yield name, loaded(torch, data, weights_only=False)


BROKEN = (
    *(b"X\xff\xff\xff\xffa.", b"\x8a\xffa.", b"h\x05.", b"q\x05.", b"a.", b"(.", b"u."),
    *(b"t.", b"\x85.", b"\x86.", b"]K\x01K\x02s.", b"K\x01K\x02a.", b"}(K\x01u."),
    *(
        b"K\x01b.",
        b"K\x01)\x81.",
        b"K\x01Q.",
        b"(I1\n.",
        b"\x93.",
        b"\xff.",
        b"K",
        b"J",
    ),
    *(b"J", b"M\0", b"G\0", b"U\x05ab", b"U", b"K\x01", b".", b"X\2\0\0\0\xff\xff."),
)


@case(warnings=False)
def broken_pickles(torch):
    whole = saved(torch, 1)
    for body in BROKEN:
        yield body, loaded(torch, changed(whole, {"data.pkl": b"\x80\x02" + body}))


@case(warnings=False)
def cut_files(torch):
    state = {"a": torch.ones(3), "b": torch.arange(4)}
    archive = saved(torch, state)
    for length in (10, 100, len(archive) // 2, len(archive) - 30, len(archive) - 1):
        yield loaded(torch, archive[:length])
    legacy = (FILES / "views.legacy.pt").read_bytes()
    for length in (5, 14, 40):
        yield loaded(torch, legacy[:length])
    yield loaded(torch, legacy[:5], weights_only=False)


@case
def compressed(torch):
    state = {"a": torch.ones(300), "b": torch.arange(4), "c": torch.ones(0)}
    archive = saved(torch, state)
    deflated = changed(archive, {}, zipfile.ZIP_DEFLATED)
    assert len(deflated) < len(archive)
    yield loaded(torch, deflated)
    yield loaded(torch, deflated, weights_only=False, map_location="cpu")
    yield loaded(torch, changed(archive, {}, zipfile.ZIP_BZIP2))
    yield loaded(torch, changed(archive, {}, zipfile.ZIP_LZMA))


def test_compressed_files_are_not_mapped(tmp_path):
    path = tmp_path / "x.pt"
    path.write_bytes(
        changed(saved(torchshim, torchshim.ones(3)), {}, zipfile.ZIP_DEFLATED)
    )
    with pytest.raises(RuntimeError, match="compressed and cannot be mapped"):
        torchshim.load(path, mmap=True)
    assert torchshim.load(path).tolist() == [1, 1, 1]


def test_bombs_are_refused():
    small = saved(torchshim, torchshim.zeros(4))
    bomb = changed(small, {"data/0": bytes(1 << 24)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(RuntimeError, match="times larger than the file"):
        torchshim.load(io.BytesIO(bomb))


def test_damaged_compressed_records():
    deflated = changed(saved(torchshim, torchshim.rand(200)), {}, zipfile.ZIP_DEFLATED)
    info = zipfile.ZipFile(io.BytesIO(deflated)).getinfo("archive/data/0")
    start = info.header_offset + 30 + len(info.filename)
    for cut in (1, 20, 300):
        data = bytearray(deflated)
        data[start + cut : start + cut + 40] = np.full(40, 255, np.uint8).tobytes()
        try:
            torchshim.load(io.BytesIO(bytes(data)))
        except RuntimeError as error:
            assert "reading file data/0" in str(error)


# Saved in PyTorch: `quantize_per_tensor(ones(3), 0.1, 0, quint8)` and
# `quantize_per_channel(ones(2, 3), tensor([0.1, 0.2]), tensor([0, 0]), 0, qint8)`.
@pytest.mark.parametrize("name", ["tensor", "channels"])
@pytest.mark.parametrize("weights_only", [True, False])
def test_quantized_tensors(name, weights_only):
    found = torchshim.load(QUANTIZED / f"{name}.pt", weights_only=weights_only)
    assert (found.dequantize() - 1).abs().max() < 1e-6
    assert found.is_quantized and found.shape == ((3,) if name == "tensor" else (2, 3))


@case
def meta_tensors(torch):
    state = {
        "a": torch.ones(3, device="meta"),
        "b": torch.nn.Parameter(torch.ones(2, device="meta")),
    }
    for weights_only in (True, False):
        found = loaded(torch, saved(torch, state), weights_only=weights_only)
        yield (
            found["a"].device,
            found["a"].shape,
            found["b"].device,
            type(found["b"]).__name__,
        )
