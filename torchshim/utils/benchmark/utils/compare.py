"""Tables of measurements (``torch.utils.benchmark.Compare``).

https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Compare
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence

from torchshim.utils.benchmark.utils.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_END = "\033[0m"
_BOLD = "\033[1m"
_BEST = "\033[92m" + _BOLD
_GOOD = "\033[34m" + _BOLD
_BAD = "\033[2m\033[91m"
_VERY_BAD = "\033[31m" + _BOLD


class Colorize(enum.Enum):
    """What a time is compared with to colour it."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _coloured(text: str, time: float, best: float) -> str:
    if time <= best * 1.01 or time <= best + 100e-9:
        return _BEST + text + _END * 2
    if time <= best * 1.1:
        return _GOOD + text + _END * 2
    if time >= best * 5:
        return _VERY_BAD + text + _END * 2
    if time >= best * 2:
        return _BAD + text + _END * 2
    return text


class _Column:
    """The times of one description; None where a row has none."""

    def __init__(
        self, times: Sequence[Measurement | None], scale: float, trim: bool, warn: bool
    ) -> None:
        found = [m for m in times if m is not None]
        self.times = times
        self.scale, self.trim = scale, trim
        self.warn = warn and any(m.has_warnings for m in found)
        before = [math.ceil(math.log10(m.median / scale)) for m in found]
        self.after = 1
        if trim:
            pairs = zip(found, before, strict=True)
            self.after = min(max(m.significant_figures - n, 0) for m, n in pairs)
        self.width = max(before) + self.after + (1 if self.after else 0)

    def text(self, measured: Measurement | None) -> str:
        """A cell, without the space around it."""
        if measured is None:
            return " " * len(self._cell(1.0, ""))
        time = measured.median / self.scale
        if self.trim:
            time = trim_sigfig(time, measured.significant_figures)
        spread = measured.iqr / measured.median * 100
        warning = f" (! {spread:.0f}%)" if self.warn and measured.has_warnings else ""
        return self._cell(time, warning)

    def _cell(self, time: float, warning: str) -> str:
        return f"{time:>{self.width}.{self.after}f}{warning:>{7 if self.warn else 0}}"


class _Table:
    """The measurements of one label: a row for each statement or `sub_label`."""

    def __init__(
        self, results: list[Measurement], colorize: Colorize, trim: bool, warn: bool
    ) -> None:
        self.label = results[0].label
        self.colorize, self.warn = colorize, warn
        self.has_warnings = warn and any(m.has_warnings for m in results)
        self.unit, scale = select_unit(min(m.median for m in results))
        cells = {(self._row(m), m.description): m for m in results}
        # By threads and environment; else in the order in which they came.
        keys = ordered_unique(self._row(m) for m in results)
        self.keys = sorted(keys, key=lambda key: key[:2])
        self.titles = ordered_unique(m.description for m in results)
        self.rows = [[cells.get((k, d)) for d in self.titles] for k in self.keys]
        self.columns = [
            _Column(times, scale, trim, warn) for times in zip(*self.rows, strict=True)
        ]
        environments = {m.env for m in results}
        self.env_width = (
            max(len(env) for env in environments) if len(environments) > 1 else None
        )

    @staticmethod
    def _row(measured: Measurement) -> tuple[int, str | None, str]:
        return measured.num_threads, measured.env, measured.as_row_name

    def _names(self) -> list[str]:
        """The first column."""
        found = []
        before = None
        for threads, env, name in self.keys:
            shown = ""
            if self.env_width is not None and (threads, env) != before:
                shown = f"({env})"
            before = threads, env
            found.append("  " + shown.ljust((self.env_width or 0) + 4) + name)
        return found

    def _best(self, row: int, column: int) -> float:
        """The time to compare a cell with."""
        if self.colorize is Colorize.ROWWISE:
            among = self.rows[row]
        else:
            threads = self.keys[row][0]
            pairs = zip(self.keys, self.columns[column].times, strict=True)
            among = [m for key, m in pairs if key[0] == threads]
        return min(m.median for m in among if m is not None)

    def render(self) -> str:
        """The table as text."""
        names = self._names()
        texts = [
            [c.text(m) for c, m in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]
        grid = [["", *self.titles]]
        grid += [[name, *row] for name, row in zip(names, texts, strict=True)]
        widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
        head = "  |  ".join(t.center(w) for t, w in zip(grid[0], widths, strict=True))
        lines = [head]
        threads = None
        for i, key in enumerate(self.keys):
            if key[0] != threads:
                threads = key[0]
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            cells = [names[i].ljust(widths[0])]
            for j, text in enumerate(texts[i]):
                cell = text.center(widths[j + 1])
                measured = self.rows[i][j]
                if self.colorize is not Colorize.NONE and measured is not None:
                    cell = _coloured(cell, measured.median, self._best(i, j))
                cells.append(cell)
            lines.append("  |  ".join(cells))
        title = f" {self.label or ''} ".center(len(head) - 2, "-")
        end = f"Times are in {unit_to_english(self.unit)}s ({self.unit}).\n"
        if self.has_warnings:
            end += (
                "(! XX%) Measurement has high variance, where XX is the IQR / median"
                " * 100.\n"
            )
        return "\n".join([f"[{title}]", *lines, "", end])


class Compare:
    """A table of measurements for each label: rows are `sub_label`s or statements,
    columns descriptions, groups of rows threads.

    Raises ValueError for what is no `Measurement`.
    https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Compare

    >>> from torchshim.utils.benchmark import TaskSpec
    >>> task = TaskSpec("f(x)", "pass", label="mine", description="n = 2")
    >>> table = str(Compare([Measurement(1, [2e-6] * 4, task)]))
    >>> table.splitlines()[0]
    '[------ mine ------]'
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        results = list(results)
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(each)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """From now on times are rounded to the figures that mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """From now on times are coloured by their distance from their column's best."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """From now on times that scatter are marked."""
        self._highlight_warnings = True

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            groups.setdefault(each.label, []).append(each)
        options = self._trim_significant_figures, self._highlight_warnings
        return "\n".join(
            _Table(group, self._colorize, *options).render()
            for group in groups.values()
        )

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))
