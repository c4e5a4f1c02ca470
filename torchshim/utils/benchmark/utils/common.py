"""What was timed, and how long it took (``torch.utils.benchmark``).

https://docs.pytorch.org/docs/2.13/benchmark_utils.html
"""

from __future__ import annotations

import contextlib
import dataclasses
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from torchshim._settings import get_num_threads, set_num_threads

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit"]
__all__ += ["set_torch_threads", "trim_sigfig", "unit_to_english"]

_MOST_FIGURES = 4
_SMALLEST_INTERVAL = 25e-9
# Interquartile range over median: from where on a measurement warns.
_SUSPICIOUS, _GROSS = 0.1, 0.25
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """What a `Timer` times, and the names that tables give it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Its label, or else its statement."""
        one_line = "\n" not in self.stmt
        if self.label is not None or one_line:
            name = self.stmt if self.label is None else self.label
            return f"{name}: {self.sub_label}" if self.sub_label else name
        sub_label = f" ({self.sub_label})" if self.sub_label else ""
        return f"stmt:{sub_label}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """Its setup as text; empty where there is none."""
        if self.setup in ("", "pass"):
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, as `Measurement` prints them."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{p}\n" if "\n" in p else p for p in parts if p)


_FIELDS = frozenset(field.name for field in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """The times of a statement: seconds for `number_per_run` runs, several times.

    The fields of its `task_spec` are its attributes, too.
    https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Measurement

    >>> found = Measurement(10, [1e-3, 3e-3], TaskSpec("f(x)", "pass"))
    >>> print(str(found).partition(">")[2])
    <BLANKLINE>
    f(x)
      Median: 200.00 us
      2 measurements, 10 runs per measurement, 1 thread
      WARNING: Interquartile range is 50.0% of the median measurement.
               This suggests significant environmental influence.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        return super().__getattribute__(name)

    @property
    def times(self) -> list[float]:
        """Seconds for one run."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, q: float) -> float:
        return float(np.quantile(self.times, q)) if self.raw_times else -1.0

    @property
    def median(self) -> float:
        """The median of the seconds for one run."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of the seconds for one run."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """From the first to the third quartile of the seconds for one run."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something: one to four.

        From a confidence interval of the times between the quartiles, taken as normal.
        """
        n = len(self.raw_times)
        inner = np.sort(self.times)[n // 4 : -(-3 * n // 4)]
        interval = 1.645 * float(inner.std()) / np.sqrt(len(inner))
        interval = max(interval, _SMALLEST_INTERVAL)
        figures = int(np.floor(np.log10(self.median / interval)))
        return min(max(figures, 1), _MOST_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether the times scatter so much that they are suspicious."""
        return bool(self._warnings())

    def _warnings(self) -> list[str]:
        if not self.raw_times or self.meets_confidence():
            return []
        reason = (
            "This could indicate system fluctuation."
            if self.meets_confidence(_GROSS)
            else "This suggests significant environmental influence."
        )
        return [
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% "
            f"of the median measurement.\n           {reason}"
        ]

    def meets_confidence(self, threshold: float = _SUSPICIOUS) -> bool:
        """Whether the interquartile range is less than a part of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """As `TaskSpec.title`."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What the first column of a table says."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n = len(self.raw_times)
        unit, scale = select_unit(self.median)
        several = n > 1
        head = object.__repr__(self).replace("<torchshim.", "<torch.", 1)
        lines = [head, self.task_spec.summarize()]
        lines.append(
            f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}"
        )
        if n >= 4:
            low, high = (self._quantile(q) / scale for q in (0.25, 0.75))
            spread = f"{self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})"
            lines.append(f"  IQR:    {spread}")
        runs = f"{self.number_per_run} runs {'per measurement,' if several else ','}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {n} measurement{'s' if several else ''}, {runs} {threads}")
        return "\n".join(lines + self._warnings())

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of all of its measurements."""
        found: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in found.items()]


def _log10(x: float) -> float:
    """Rounded to float32, so that powers of ten have whole ones."""
    return float(np.float32(np.log10(np.float64(np.float32(x)))))


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which to print a time, and its seconds.

    >>> select_unit(3e-5)
    ('us', 1e-06)
    """
    thousands = int(_log10(t) // 3)
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(thousands, "s")
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """The name of a unit.

    >>> unit_to_english("us")
    'microsecond'
    """
    names = ("nanosecond", "microsecond", "millisecond", "second")
    return dict(zip(_UNITS, names, strict=True))[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to its first `n` figures, in float32.

    >>> trim_sigfig(123456, 3)
    123000.0
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (int(np.ceil(_log10(abs(x)))) - n)
    return float(np.round(np.float32(x / scale)) * np.float32(scale))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order in which they first come."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Within it `get_num_threads` says `n`."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)
