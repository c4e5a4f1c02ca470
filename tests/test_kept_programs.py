"""Programs kept from one run of `python -m torchshim` to the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchshim import _kept_programs as kept

SCRIPT = """
import torch
x = torch.arange(4.0, requires_grad=True)
(x.sin() * x).sum().backward()
print(x.grad)
"""


def run(**settings: str) -> subprocess.CompletedProcess[str]:
    """The script, its cache where the settings (environment variables) say."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return subprocess.run(
        [sys.executable, "-m", "torchshim", "-c", SCRIPT],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        env=inherited | settings,
        check=True,
    )


def test_the_next_run_compiles_nothing(tmp_path: Path) -> None:
    first = run(TORCHSHIM_CACHE_DIR=str(tmp_path))
    (directory,) = tmp_path.iterdir()
    written = {p.name: p.stat().st_mtime_ns for p in directory.iterdir()}
    assert written and kept._is_private(directory)
    second = run(TORCHSHIM_CACHE_DIR=str(tmp_path))
    assert (second.stdout, second.stderr) == (first.stdout, first.stderr)
    assert {p.name: p.stat().st_mtime_ns for p in directory.iterdir()} == written
    # What cannot be read is compiled again, without a word.
    for path in directory.iterdir():
        path.write_bytes(path.read_bytes()[:100])
    third = run(TORCHSHIM_CACHE_DIR=str(tmp_path))
    assert (third.stdout, third.stderr) == (first.stdout, first.stderr)


def test_where_nothing_is_kept(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    run(TORCHSHIM_CACHE_DIR="", **home)
    assert not list(tmp_path.iterdir())
    jax_cache = tmp_path / "jax"
    run(JAX_COMPILATION_CACHE_DIR=str(jax_cache), **home)
    # A name that is not UTF-8, which XLA does not take.
    run(TORCHSHIM_CACHE_DIR=os.fsdecode(bytes(tmp_path / "caf") + b"\xe9"), **home)
    assert not (tmp_path / "cache").exists()


def test_directories_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[object] = []
    config = SimpleNamespace(update=lambda *setting: settings.append(setting))
    monkeypatch.setattr(kept, "jax", SimpleNamespace(config=config))
    monkeypatch.setattr(kept, "atexit", SimpleNamespace(register=lambda *task: None))
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path))
    kept.keep_programs()
    assert len(settings) == 3
    (directory,) = tmp_path.iterdir()
    directory.chmod(0o770)
    kept.keep_programs()
    assert len(settings) == 3
    directory.chmod(0o700)
    monkeypatch.setenv(kept.VARIABLE, str(directory / "file"))
    (directory / "file").write_text("")
    kept.keep_programs()
    assert len(settings) == 3


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    for age in range(8):
        path = tmp_path / f"{age}"
        path.write_bytes(bytes(100))
        os.utime(path, (1000 - age, 1000 - age))
    (tmp_path / "directory").mkdir()
    kept.prune(tmp_path, 800)
    assert len(list(tmp_path.iterdir())) == 9
    kept.prune(tmp_path, 799)
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {"0", "1", "2", "3", "4", "directory"}
