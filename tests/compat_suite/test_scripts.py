"""The scripts of `compat_suite`, and the suite's own comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_suite import forked
from compat_suite import script as suite
from compat_suite.__main__ import main, run_scripts
from compat_suite.script import Failure, Script
from compat_suite.text import text_close

# The others are run by `python -m compat_suite scripts`.
QUICK = 5  # seconds
SCRIPTS = [
    pytest.param(script, id=script.name) for script in suite.scripts(seconds=QUICK)
]


@pytest.fixture(scope="module")
def run_by_torchshim() -> Iterator[Callable[[Script], str]]:
    """Runs a script under torchshim, which is imported once."""
    with forked.Runner("torchshim") as runner:
        yield runner.run


@pytest.fixture(scope="module")
def run_by_pytorch() -> Iterator[Callable[[Script], str]]:
    """Runs a script under PyTorch, which is imported once."""
    with forked.Runner("torch") as runner:
        yield runner.run


@pytest.mark.parametrize("script", SCRIPTS)
def test_prints_what_was_recorded(
    script: Script, run_by_torchshim: Callable[[Script], str]
) -> None:
    script.compare(script.expected_path.read_text(), run_by_torchshim(script))


@pytest.mark.live
@pytest.mark.parametrize("script", SCRIPTS)
def test_pytorch_still_prints_what_was_recorded(
    script: Script, real_torch: Any, run_by_pytorch: Callable[[Script], str]
) -> None:
    script.compare(script.expected_path.read_text(), run_by_pytorch(script))


@pytest.mark.live
@pytest.mark.parametrize("end", ["sys.exit(3)", "sys.exit('no')", "1 / 0"])
def test_pytorch_runs_what_fails(
    place: Path,
    end: str,
    real_torch: Any,
    run_by_pytorch: Callable[[Script], str],
) -> None:
    code = "import sys, torch\nprint(torch.__name__, sys.argv, __name__)\n"
    script = make(place, code, None)
    assert run_by_pytorch(script) == f"torch {[str(script.path)]} __main__\n"
    script.path.write_text(code + end)
    with pytest.raises(Failure) as failed:
        run_by_pytorch(script)
    with pytest.raises(Failure) as usual:
        script.run(shim=False)
    lines, wanted = (str(each.value).splitlines() for each in (failed, usual))
    assert (lines[0], lines[-1]) == (wanted[0], wanted[-1])


def test_every_recorded_output_has_its_script() -> None:
    recorded = sorted(path.stem for path in (suite.PLACE / "expected").glob("*"))
    assert recorded == sorted(script.name for script in suite.scripts())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(suite, "PLACE", tmp_path)
    for name in (*suite.FOLDERS, "expected"):
        (tmp_path / name).mkdir()
    return tmp_path


def make(place: Path, code: str, expected: str | None) -> Script:
    script = Script(place / "cases" / "made.py")
    script.path.write_text(code)
    if expected is not None:
        script.expected_path.write_text(expected)
    return script


def test_the_whole_output_is_compared(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "import sys, torch\nprint(sys.modules['torch'].__spec__.name)\nprint(1.5)"
    printed = "torchshim\n1.5\n"
    make(place, code, printed).check()
    with pytest.raises(Failure, match=r"-2\.5\n\+1\.5"):
        make(place, code, None).compare("torchshim\n2.5\n", printed)
    make(place, code, printed + "more\n")
    with pytest.raises(Failure, match=r"-more"):
        make(place, code, None).check()
    assert run_scripts(suite.scripts(), Script.check) == 1
    assert "0 of 1 scripts: ok" in capsys.readouterr().out


def test_a_script_that_fails_or_was_not_recorded(place: Path) -> None:
    with pytest.raises(Failure, match="exit status 3"):
        make(place, "import sys; sys.exit(3)", "").check()
    with pytest.raises(Failure, match="ZeroDivisionError"):
        make(place, "print(1)\n1 / 0", "1\n").check()
    (place / "expected" / "made.txt").unlink()
    with pytest.raises(Failure, match="--record"):
        make(place, "", None).check()


def test_a_script_may_ask_for_a_tolerance_with_a_reason(place: Path) -> None:
    code = "print('loss 1.0001 at 3')"
    wide = "# compat: rtol=1e-3 (sums in another order)\n" + code
    assert make(place, wide, None).tolerance == (1e-3, 0.0)
    make(place, wide, "loss 1.0002 at 3\n").check()
    for text, expected in (
        (wide, "loss 1.0002 at 4\n"),
        (wide, "loss 1.1002 at 3\n"),
        (code, "loss 1.0002 at 3\n"),
    ):
        with pytest.raises(Failure):
            make(place, text, None).compare(expected, "loss 1.0001 at 3\n")
    make(place, code, "loss 1.0002 at 3\n").check(rtol=1e-3)
    with pytest.raises(ValueError, match="reason"):
        _ = make(place, "# compat: rtol=1e-3\n", "").tolerance


def test_scripts_are_chosen_by_name_and_time(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(place, "print(1)", "1\n")
    slow = place / "scripts" / "slow.py"
    slow.write_text("# compat: seconds=9.5 (a large model)\nprint(2)")
    (place / "expected" / "slow.txt").write_text("3\n")
    assert [(s.name, s.seconds) for s in suite.scripts()] == [
        ("made", 1.0),
        ("slow", 9.5),
    ]
    assert [s.name for s in suite.scripts("^s")] == ["slow"]
    assert [s.name for s in suite.scripts(seconds=5)] == ["made"]
    assert main(["scripts", "--seconds", "5"]) == 0
    assert main(["scripts"]) == 1
    assert "1 of 2 scripts: ok" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["scripts", "--match", "nothing"])


@pytest.mark.parametrize(
    ("expected", "actual", "close"),
    [
        ("loss 1.0000 at 3", "loss 1.000001 at 3", True),
        ("loss 1.0", "lost 1.0", False),
        ("loss 1.0", "loss 1.1", False),
        ("epoch 1", "epoch 2", False),
        ("a1.0", "a1.00001", False),
        ("[ 0.0000,  1.0]", "[-1e-7,  1.0]", True),
        ("tensor([1.0000, 2.0000])", "tensor([1.0, 2.0])", True),
        ("nan 1e-5 inf", "nan 1e-05 inf", True),
        ("nan", "1.0", False),
        ("1.0 2.0", "1.0\n2.0", False),
        ("x = 1.", "x = 1. ", False),
    ],
)
def test_texts_with_numbers(expected: str, actual: str, close: bool) -> None:
    assert text_close(expected, actual, 1e-5, 1e-6) is close
    assert text_close(expected, expected, 0, 0)
    assert not text_close(expected, actual, 0, 0)
