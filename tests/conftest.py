"""Makes each case of `tests.oracle` a test."""

from __future__ import annotations

import contextlib
import gc
import inspect
import signal
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests import oracle
from tests.compiling import (
    USUAL,
    compile_fast,
    compile_nothing,
    compile_plain,
    compiling_nothing,
)

# Choices of `--oracle` with which nothing runs that needs no PyTorch.
_LIVE_ALONE = ("live", "sampled")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--oracle",
        choices=("auto", "recorded", "live", "sampled"),
        default="auto",
        help="what cases are compared with: PyTorch's recorded results; PyTorch live, "
        "leaving out all tests that do not compare with it; of these one in three, and "
        "for the others whether their records are what PyTorch gives (sampled); or "
        "(auto) the recorded results and, where torch is installed, live ones too",
    )
    parser.addoption(
        "--compile",
        choices=("some", "fast", "full", "numpy"),
        default="some",
        help="how the programs of a test are run: compiled fast, where most run once, "
        "of the cases one in ten (the others as with numpy); all of them compiled "
        "fast; compiled as users' are; or computed by NumPy as far as it can. (Those "
        "of scripts and examples, in processes of their own, are run as users' are.)",
    )


def pytest_configure(config: pytest.Config) -> None:
    choice = config.getoption("--compile")
    if choice == "numpy":
        compile_nothing()
    else:
        compile_plain()
    if choice in ("some", "fast"):
        compile_fast()
    # A shell's background jobs ignore Ctrl-C, and what they start inherits that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def as_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy computes what it computes for users, whatever `--compile` says."""
    from torchshim._core import stepwise

    for name, value in USUAL.items():
        monkeypatch.setattr(stepwise, name, value)


def pytest_report_header(config: pytest.Config) -> str:
    choice = config.getoption("--oracle")
    live = choice != "recorded" and oracle.find_torch() is not None
    recorded = "recorded results" if choice not in _LIVE_ALONE else ""
    return "oracle: " + " and ".join(
        filter(None, [recorded, f"torch {oracle.TORCH_VERSION} live" if live else ""])
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Under `--oracle=live`, keep what compares with PyTorch in the same run."""
    if config.getoption("--oracle") not in _LIVE_ALONE:
        return
    live = [item for item in items if item.get_closest_marker("live")]
    others = [item for item in items if not item.get_closest_marker("live")]
    config.hook.pytest_deselected(items=others)
    items[:] = live


# The file whose tests run, and how many files ran before.
_running: dict[str, Any] = {"file": None, "before": 0}
# So many files leave garbage behind before it is looked for.
_FILES = 25


def pytest_runtest_setup(item: pytest.Item) -> None:
    # (Cases are compared with what was recorded where there is no PyTorch.)
    if isinstance(item, pytest.Function) and item.get_closest_marker("live"):
        recorded = item.config.getoption("--oracle") == "recorded"
        if recorded or oracle.find_torch() is None:
            pytest.skip(f"needs torch {oracle.TORCH_VERSION}")
    _begin_recording()
    _forget_old_objects(item)


def _forget_old_objects(item: pytest.Item) -> None:
    """Collections of garbage look at what the tests of this file have made, not at all.

    There are millions of objects after a while, of traces and programs. That is a
    second for each `gc.collect()`, and for many that Python starts itself.
    """
    if item.path == _running["file"]:
        return
    _running["file"] = item.path
    _running["before"] += 1
    if _running["before"] % _FILES == 0:
        gc.unfreeze()
        gc.collect()
    gc.freeze()


def _begin_recording() -> None:
    """Programs are counted: a test's recordings begin with its own first event.

    Not with what the test before it left unread, nor are they pruned in its middle, nor
    cut where that one's loops were.
    """
    from torchshim._core import trie
    from torchshim._core.loops import ScriptLoops
    from torchshim._core.record import local

    rec = local.rec
    rec.flush()
    rec.loops = ScriptLoops()
    if rec.states > trie.STATE_BOUND // 2:
        rec.prune(rec.root)


@pytest.fixture
def real_torch() -> Any:
    """PyTorch itself, for tests that are marked live."""
    return oracle.find_torch()


# Where XLA runs all cases: each operator, and what is about programs.
_ALL_COMPILED = ("tests.core.", "tests.ops.")


class CaseItem(pytest.Item):
    """A case as pytest sees it."""

    def __init__(self, *, case: oracle.Case, line: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self.line = line
        module = self.getparent(pytest.Module).obj
        self.live = getattr(module, "LIVE", True)
        if self.live:
            self.add_marker(pytest.mark.live)
        if case.options.xfail:
            self.add_marker(pytest.mark.xfail(reason=case.options.xfail, strict=True))

    def runtest(self) -> None:
        module_name = self.getparent(pytest.Module).obj.__name__
        choice = self.config.getoption("--oracle") if self.live else "recorded"
        with contextlib.nullcontext() if self._is_compiled() else compiling_nothing():
            oracle.check(self.case, module_name, oracle.subject(), choice)

    def _is_compiled(self) -> bool:
        if not self.case.options.compiled:
            return False
        module = self.getparent(pytest.Module).obj
        if self.config.getoption("--compile") != "some":
            return True
        usual = 1 if module.__name__.startswith(_ALL_COMPILED) else 10
        every = getattr(module, "COMPILED_EVERY", usual)
        return zlib.crc32(self.name.encode()) % every == 0

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, oracle.Mismatch):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Any, int, str]:
        return self.path, self.line, self.name


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: object
) -> list[CaseItem] | None:
    if not isinstance(obj, oracle.Family):
        return None
    if obj.__module__ != collector.getparent(pytest.Module).obj.__name__:
        return []  # imported from another test module, which runs it
    return list(_items(collector, obj))


def _items(collector: Any, family: oracle.Family) -> Iterator[CaseItem]:
    line = inspect.unwrap(family.function).__code__.co_firstlineno - 1
    for case in family.cases:
        yield CaseItem.from_parent(collector, name=case.name, case=case, line=line)
