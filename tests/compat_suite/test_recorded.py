"""Runs of the operator database without torch: recorded samples and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torchshim as torch
from compat_suite.operators.comparison import compare
from compat_suite.operators.results import Entry
from compat_suite.operators.values import Known, Missing
from compat_suite.recorded import checks, database
from compat_suite.recorded.packing import Pack, Reading, Untold, function

#: A function, one of views, one of random numbers, one of the database's own.
FEW = ("exp", "cumsum", "narrow", "nn.functional.dropout", "linalg.eigh", "einsum")


def run(name: str) -> Entry:
    options = checks.Options()
    return checks.check(database.by_name()[name], options, lambda part: None)


@pytest.mark.parametrize("name", FEW)
def test_a_few_entries_agree(name: str) -> None:
    entry = run(name)
    assert entry.failures == [] and entry.reason == ""
    assert entry.made["forward"] and len(entry.dtypes()) > 1


def test_every_entry_is_recorded_or_left_out() -> None:
    left_out = database.left_out()
    entries = database.entries()
    assert len(entries) == 702
    for entry in entries:
        assert entry["cases"] or entry.get("untold") or entry["name"] in left_out


def test_what_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    own = torch.exp
    monkeypatch.setattr(torch, "exp", lambda *a, **k: own(*a, **k) * 1.01)
    kinds = {f.kind for f in run("exp").failures}
    assert kinds >= {"forward", "grad", "gradgrad"}


def test_a_file_tells_what_was_written(tmp_path: Path) -> None:
    pack = Pack()
    one = pack.row("float32", np.arange(6, dtype=np.float32), [[2, 3]])
    same = pack.row("float32", np.arange(6, dtype=np.float32), [[2, 3]])
    lying = pack.row("float32", np.arange(6, dtype=np.float32), [[3, 2], [1, 3], 0])
    other = pack.row("complex64", np.array([1 + 2j], np.complex64), [[]])
    assert one == same and len({one, lying, other}) == 3
    pack.write(tmp_path / "a.npz", {"entries": []})
    pack.write(tmp_path / "b.npz", {"entries": []})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    read, told = Pack.read(tmp_path / "a.npz")
    assert told == {"entries": []}
    assert read.tensor(one, True).tolist() == [[0, 1, 2], [3, 4, 5]]
    turned = read.tensor(lying, False)
    assert turned.stride() == (1, 3) and turned.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert read.known({"row": other}).array == np.complex64(1 + 2j)
    row = Pack().adopt(read, {"$": "tensor", "row": lying, "is": 0})["row"]
    assert row == 0


def test_a_tensor_that_is_named_twice_is_one() -> None:
    pack = Pack()
    row = pack.row("float32", np.ones(2, np.float32), [[2]])
    told = {"$": "tensor", "row": row, "is": 0, "grad": True}
    reading = Reading(_written(pack))
    first, second = reading([told, told])
    assert first is second and first.requires_grad
    assert reading([{**told, "is": 1}])[0] is not first
    assert reading({"$": "slice", "v": [1, None, 2]}) == slice(1, None, 2)
    assert reading({"$": "constant", "v": ["float32"]}) is torch.float32
    with pytest.raises(Untold):
        reading({"$": "constant", "v": ["load"]})


def test_tensors_in_one_memory_share_it() -> None:
    pack = Pack()
    memory = np.arange(3, dtype=np.float32)
    rows = [pack.row("float32", memory, [[2], [1], offset]) for offset in (0, 1)]
    told = [{"$": "tensor", "row": r, "is": i, "memory": 0} for i, r in enumerate(rows)]
    first, second = Reading(_written(pack))(told)
    first.add_(10)
    assert first.tolist() == [10, 11] and second.tolist() == [11, 2]


def _written(pack: Pack) -> Pack:
    arrays = {k: np.concatenate(v) for k, v in pack._parts.items()}
    return Pack(arrays, pack.tensors)


@pytest.mark.parametrize(
    "name",
    [
        "load",
        "torch.save",
        "hub.load",
        "os.system",
        "Tensor.__class__.mro",
        "__import__",
    ],
)
def test_only_operators_can_be_named(name: str) -> None:
    with pytest.raises(Missing):
        function(name, Reading(Pack()))


def test_a_program_of_calls() -> None:
    one = {"$": "given", "v": 0}
    calls = [
        ["torch.add", [one, one], {"$": "dict", "v": []}],
        ["torch.Tensor.mT.__get__", [{"$": "given", "v": 1}], {"$": "dict", "v": []}],
    ]
    told: Any = {"calls": calls, "result": {"$": "given", "v": 2}}
    result = function(told, Reading(Pack()))(torch.ones(2, 3))
    assert result.shape == (3, 2) and result.sum().item() == 12


def test_rounding_is_allowed_as_far_as_pytorch_has_it() -> None:
    expected = np.array([1.0, 0.001], np.float32)
    actual = torch.tensor([1.0, 0.0012])
    for error, agrees in ((0.0, False), (1e-4, True)):
        known = Known("torch.float32", expected, error)
        assert (compare(known, actual, lambda: None) is None) is agrees


@pytest.mark.live
def test_pytorch_still_gives_what_was_recorded(real_torch: Any) -> None:
    from compat_suite.operators import database as live
    from compat_suite.recorded.recording import Recorder

    pack = Pack()
    told = Recorder(live.by_name()["cumsum"], pack).record()
    recorded = database.by_name()["cumsum"]
    known, _ = database.read()
    assert len(told["cases"]) == len(recorded["cases"])
    for new, old in zip(told["cases"], recorded["cases"], strict=True):
        assert new["text"] == old["text"] and new["kind"] == old["kind"]
        left = Reading(_written(pack), True)(new["expected"])
        right = Reading(known, True)(old["expected"])
        assert repr(type(left)) == repr(type(right))
