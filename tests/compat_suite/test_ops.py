"""`compat_suite ops` and `names`: the pool, the results, the list of names."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pytest

from compat_suite.__main__ import main
from compat_suite.operators import results
from compat_suite.operators.pool import Pool
from compat_suite.operators.results import Entry, Failure, Results, grouped, table
from compat_suite.public import coverage, listing
from compat_suite.report.build import Kept, page

WORKER = """
import json, os, sys, time
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    name = json.loads(line)
    print(json.dumps({"started": "float32 grad"}), flush=True)
    if name == "crash":
        sys.stderr.write("last words")
        sys.stderr.flush()
        os._exit(3)
    if name == "hang":
        time.sleep(60)
    done = {"name": name, "namespace": "torch", "made": {"forward": {"float32": 1}},
            "failures": [], "reason": "", "seconds": 0.1}
    print(json.dumps({"done": done, "last": name == "full"}), flush=True)
"""


def entries() -> list[Entry]:
    good = Entry("add", "torch", {"forward": {"float32": 3}, "grad": {"float32": 3}})
    bad = Entry("linalg.svd", "linalg", {"forward": {"float32": 2, "float64": 2}})
    bad.failures = [
        Failure("forward", "float64", "(float64[2, 3])", "result: shape", "(2,) (3,)"),
        Failure("forward", "float64", "(float64[1])", "missing: torch.linalg.svd"),
    ]
    left = Entry("to_sparse", "torch", reason="no sparse tensors")
    return [good, bad, left]


def test_processes_that_crash_or_hang_cost_their_entry_alone(tmp_path: Path) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    seen: list[Entry] = []
    pool = Pool({}, 2, 3.0, seen.append, (str(worker),))
    names = ["a", "crash", "b", "hang", "full", "c"]
    found = pool.run(names, lambda name: "torch")
    assert [e.name for e in found] == names and len(seen) == len(names)
    by_name = {e.name: e for e in found}
    assert not any(by_name[n].failures for n in ("a", "b", "c", "full"))
    (crash,), (hang,) = by_name["crash"].failures, by_name["hang"].failures
    assert crash.cause == "crash: exit status 3" and crash.details == "last words"
    assert hang.cause == "no end after 3 s"
    assert (crash.kind, crash.dtype) == ("grad", "float32")


def test_the_table_counts_entries_by_namespace() -> None:
    lines = [line.split() for line in table(entries()).splitlines()]
    rows = {line[0]: line for line in lines[1:]}
    assert rows["linalg"][:3] == ["linalg", "1", "0/1"]
    assert rows["torch"][:4] == ["torch", "2", "1", "1/1"]
    assert rows["passed"][1:] == "50.0 % 100.0 % 66.7 %".split()


def test_failures_are_grouped_by_cause_missing_names_first() -> None:
    text = grouped(entries())
    missing, rest = text.split("\n", 1)
    assert missing == "missing: torch.linalg.svd  (1: linalg.svd)"
    assert "result: shape\n  1 entries (forward 1): linalg.svd" in rest


def test_reasons_stand_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "left_out.txt"
    file.write_text("# why\nf: g\nf int8: h\n~linalg.svd: signs\n")
    monkeypatch.setattr(results, "LEFT_OUT", file)
    assert results.left_out() == {"f": "g", "f int8": "h"}
    assert results.differing() == {"linalg.svd": "signs"}
    assert "      known: signs" in grouped(entries())
    found = Results({}, {}, entries())
    shown = page(Kept({"operators": found}))
    assert '"known":"signs"' in shown and shown.count('"known":""') == 2


@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_a_run_is_read_as_it_was_kept(tmp_path: Path, name: str) -> None:
    run = Results({"torch": "2.13.0"}, {"samples": 2}, entries())
    run.write(tmp_path / name)
    assert Results.read(tmp_path / name) == run


def test_every_name_has_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    found = coverage.coverage()
    assert found["torch"]["abs"] == found["torch.Tensor"]["abs_"] == coverage.HAS
    assert found["torch.nn"]["Linear"] == found["torch"]["linalg"] == coverage.HAS
    assert main(["names", "--match", r"^torch\.Tensor\.abs_$"]) == 0
    assert capsys.readouterr().out.startswith("torch.Tensor.abs_: has\n")


def test_every_refusal_is_about_a_name() -> None:
    listed = [f"{path}.{n}" for path, names in listing.read().items() for n in names]
    for pattern, reason in coverage.refusals():
        assert reason and fnmatch.filter(listed, pattern), pattern


def test_the_commands_need_what_they_say(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["report"])
    with pytest.raises(SystemExit):
        main(["report", "--out", "x", "--results", str(tmp_path / "missing.json")])


def test_results_of_some_entries_replace_older_ones() -> None:
    older = Results({"torch": "2.13.0"}, {"samples": 2}, entries())
    newer = Results(
        {"torch": "2.13.0"}, {"samples": 3}, [Entry("linalg.svd", "linalg")]
    )
    both = newer.onto(older)
    assert [e.name for e in both.entries] == ["add", "linalg.svd", "to_sparse"]
    assert not both.entries[1].failures and both.options == {"samples": 3}


@pytest.mark.live
def test_what_differs_from_pytorch_is_found(
    real_torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compat_suite.operators import checks, database, translation

    def run(name: str) -> Entry:
        options = checks.Options(("float32",), samples=2)
        return checks.check(database.by_name()[name], options, lambda part: None)

    assert run("neg").failures == []
    of = translation.function
    monkeypatch.setattr(
        translation, "function", lambda found, name: lambda x: of(found, name)(x) * 1.01
    )
    wrong = run("neg").failures
    assert {f.kind for f in wrong} >= {"forward", "grad"}
    assert any("result: values" in f.cause for f in wrong)


@pytest.mark.live
def test_tangents_vmap_and_memory_order_are_compared_where_asked_for(
    real_torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from compat_suite.operators import checks, database, translation

    def run() -> Entry:
        options = checks.Options(("float32",), samples=2, kinds=results.MORE)
        return checks.check(database.by_name()["neg"], options, lambda part: None)

    found = run()
    assert found.failures == [] and set(found.made) == set(results.MORE)
    of = translation.function

    def turned(found: Any, name: str) -> Any:
        return lambda x: (of(found, name)(x) * 1.0).T.contiguous().T

    monkeypatch.setattr(translation, "function", turned)
    assert {f.cause for f in run().failures} == {"result: strides"}
    monkeypatch.setattr(translation, "function", lambda found, name: lambda x: x**4)
    assert {f.kind for f in run().failures} == set(results.MORE)
