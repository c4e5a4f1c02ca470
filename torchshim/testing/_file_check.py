"""`FileCheck`: whether a text has these parts, in this order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = ["FileCheck"]


@dataclass(frozen=True)
class _Check:
    kind: str
    text: str
    count: int = 0
    exactly: bool = False


class FileCheck:
    """Checks that are made one after the other, each from where the last one ended.

    >>> FileCheck().check("a").check_not("b").check("c").run("a c b")
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def _add(self, kind: str, text: str, **how: Any) -> FileCheck:
        self._checks.append(_Check(kind, text, **how))
        return self

    def check(self, text: str) -> FileCheck:
        """This comes somewhere after the last."""
        return self._add("", text)

    def check_not(self, text: str) -> FileCheck:
        """This does not come between the last and the next."""
        return self._add("-NOT", text)

    def check_same(self, text: str) -> FileCheck:
        """This comes after the last, in the same line."""
        return self._add("-SAME", text)

    def check_next(self, text: str) -> FileCheck:
        """This comes in the next line."""
        return self._add("-NEXT", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """This comes so often after the last, `exactly`: and no more."""
        return self._add("-COUNT", text, count=count, exactly=exactly)

    def check_dag(self, text: str) -> FileCheck:
        """This comes after the last; neighbours of this kind come in any order."""
        return self._add("-DAG", text)

    def check_regex(self, text: str) -> FileCheck:
        """This pattern matches somewhere after the last."""
        return self._add("-REGEX", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """This comes after the last, underlined in the next line."""
        return self._add("-SOURCE-HIGHLIGHTED", text)

    def run(self, *texts: Any) -> None:
        """RuntimeError where a check of the last text fails.

        A text before it has further checks in its comments.

        >>> FileCheck().run("# CHECK: a\\n# CHECK-NOT: b", "a c")
        """
        if len(texts) not in (1, 2) or not all(isinstance(t, str) for t in texts):
            raise TypeError("run(): incompatible function arguments.")
        *told, whole = texts
        for text in told:
            self._checks += map(_read, _COMMENT.finditer(text))
        if not self._checks:
            raise RuntimeError(
                "No checks have been added to this instance ofFilecheck! "
                "Check for bad input."
            )
        end = 0
        absent: list[_Check] = []
        checks = list(self._checks)
        while checks:
            first = checks.pop(0)
            if first.kind == "-NOT":
                absent.append(first)
                continue
            group = [first]
            while first.kind == "-DAG" and checks and checks[0].kind == "-DAG":
                group.append(checks.pop(0))
            found = [_find(check, whole, end) for check in group]
            _refuse(absent, whole, end, min(start for start, _ in found))
            absent, end = [], max(stop for _, stop in found)
            if first.exactly:
                absent = [_Check("-NOT", first.text)]
                _refuse(absent, whole, end, len(whole))
                absent = []
        _refuse(absent, whole, end, len(whole))


_COMMENT = re.compile(r"#[ ]?(CHECK.*)")
_KINDS = "NOT|SAME|NEXT|DAG|REGEX|SOURCE-HIGHLIGHTED"
_WRITTEN = re.compile(
    rf"CHECK(?P<kind>(?:-(?:{_KINDS}))?|-COUNT-(?P<exactly>EXACTLY-)?(?P<count>\d+))"
    r": (?P<text>.*)"
)


def _read(comment: re.Match[str]) -> _Check:
    """The check that a comment tells."""
    found = _WRITTEN.fullmatch(comment[1])
    if found is None:
        raise RuntimeError(
            f"Could not parse check at:\n{comment[0]}\nCheck for bad input."
        )
    if found["count"]:
        exactly = bool(found["exactly"])
        return _Check("-COUNT", found["text"], int(found["count"]), exactly)
    return _Check(found["kind"], found["text"])


def _find(check: _Check, whole: str, end: int) -> tuple[int, int]:
    """Where a check matches, after `end`."""
    if check.kind == "-REGEX":
        match = re.compile(check.text).search(whole, end)
        if match is None:
            _fail(check, whole, f'Expected to find "{check.text}" but did not find it')
        return match.span()
    low, high = end, len(whole)
    if check.kind in ("-SAME", "-NEXT"):
        stop = whole.find("\n", end)
        line = (len(whole) if stop < 0 else stop) + 1
        if check.kind == "-SAME":
            high = line - 1
        else:
            low, high = line, whole.find("\n", line)
            high = len(whole) if high < 0 else high
    first, last = -1, low
    for _ in range(max(check.count, 1)):
        at = whole.find(check.text, last, high)
        if at < 0:
            _fail(check, whole, f'Expected to find "{check.text}" but did not find it')
        first, last = (at if first < 0 else first), at + len(check.text)
    if check.kind == "-SOURCE-HIGHLIGHTED":
        column = first - (whole.rfind("\n", 0, first) + 1)
        below = whole[whole.find("\n", first) + 1 :].partition("\n")[0]
        if set(below[column : column + len(check.text)]) != {"~"}:
            _fail(check, whole, f'Expected to find "{check.text}" highlighted')
    return first, last


def _refuse(absent: list[_Check], whole: str, start: int, stop: int) -> None:
    """Fails where one of these comes between two places."""
    for check in absent:
        at = whole.find(check.text, start, stop)
        if at < 0:
            continue
        line = whole.rfind("\n", 0, at) + 1
        rest = whole.find("\n", at)
        rest = len(whole) if rest < 0 else rest
        mark = " " * (at - line) + "~" * len(check.text) + " <--- HERE"
        shown = f"{whole[:rest]}\n{mark}{whole[rest:]}"
        _fail(check, shown, f'Expected to not find "{check.text}" but found it', shown)


def _fail(check: _Check, whole: str, text: str, shown: str | None = None) -> NoReturn:
    head = f"{text}\n" if shown is not None else f"{text}\nSearched string:\n"
    raise RuntimeError(f"{head}{whole}\nFrom CHECK{check.kind}: {check.text}\n")
