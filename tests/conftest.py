"""Makes each case of `tests.oracle` a test."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests import oracle


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--oracle",
        choices=("auto", "recorded", "live"),
        default="auto",
        help="what cases are compared with: PyTorch's recorded results, PyTorch live, "
        "or (auto) the recorded ones and, where torch is installed, live ones too",
    )


def pytest_report_header(config: pytest.Config) -> str:
    choice = config.getoption("--oracle")
    live = choice != "recorded" and oracle.find_torch() is not None
    recorded = "recorded results" if choice != "live" else ""
    return "oracle: " + " and ".join(
        filter(None, [recorded, f"torch {oracle.TORCH_VERSION} live" if live else ""])
    )


class CaseItem(pytest.Item):
    """A case as pytest sees it."""

    def __init__(self, *, case: oracle.Case, line: int, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self.line = line
        if case.options.xfail:
            self.add_marker(pytest.mark.xfail(reason=case.options.xfail, strict=True))

    def runtest(self) -> None:
        module_name = self.getparent(pytest.Module).obj.__name__
        choice = self.config.getoption("--oracle")
        oracle.check(self.case, module_name, oracle.subject(), choice)

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
