"""What a profiler found: events, their averages, tables and traces.

https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.profiler.profile
"""

from __future__ import annotations

import enum
import gzip
import json
import math
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval"]


class _Numbered(enum.Enum):
    """Names that have numbers."""

    def __int__(self) -> int:
        return self.value


# Kinds of devices, by PyTorch's numbers.
DeviceType: Any = _Numbered(
    "DeviceType",
    "CPU CUDA MKLDNN OPENGL OPENCL IDEEP HIP FPGA MAIA XLA Vulkan Metal XPU MPS Meta "
    "HPU VE Lazy IPU MTIA PrivateUse1",
    start=0,
    module="torch._C._autograd",
)


class Interval:
    """From when to when something ran, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long that was."""
        return self.end - self.start


def format_time(time_us: float, unit: str | None = None) -> str:
    """A time in the largest unit of which it is one, or in the unit given."""
    if unit == "s" or (unit is None and time_us >= 1e6):
        return f"{time_us / 1e6:.3f}s"
    if unit == "ms" or (unit is None and time_us >= 1e3):
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


_format_time = format_time


def format_memory(nbytes: float) -> str:
    """Bytes in the largest unit of which it is one.

    >>> format_memory(1536)
    '1.50 KB'
    """
    for unit, size in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


_format_memory = format_memory
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def format_share(part: float, whole: float) -> str:
    """A share in per cent."""
    if whole == 0:
        if part != 0:
            raise AssertionError(f"Expected time_us == 0 but got {part}")
        return "NaN"
    return f"{part * 100 / whole:.2f}%"


_format_time_share = format_share


class _Times:
    """Times in all the names and forms that PyTorch gives them."""

    count = 1
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    flops = 0
    # Programs are waited for by the CPU, wherever they run.
    device_type = DeviceType.CPU
    use_device: str | None = None

    @property
    def cpu_time(self) -> float:
        return 0.0 if self.count == 0 else self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        return 0.0 if self.count == 0 else self.device_time_total / self.count

    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_time = device_time

    cpu_time_str = property(lambda self: format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(
        lambda self: format_time(self.self_cpu_time_total)
    )
    device_time_str = property(lambda self: format_time(self.device_time))
    device_time_total_str = property(lambda self: format_time(self.device_time_total))


class FunctionEvent(_Times):
    """One call of an operator, a block with a name, or a run of a program."""

    is_async = is_remote = is_legacy = False
    node_id = -1

    def __init__(
        self,
        id: int,
        name: str,
        start_ns: int,
        parent: FunctionEvent | None,
        input_shapes: list[Any] | None = None,
        stack: list[str] | None = None,
        category: str = "cpu_op",
    ) -> None:
        self.id = id
        self.trace_name = name
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.key = self.name
        self.start_ns = start_ns
        self.end_ns = start_ns
        self.cpu_parent = parent
        self.cpu_children: list[FunctionEvent] = []
        self.input_shapes = input_shapes or []
        self.stack = stack or []
        self.category = category
        self.self_cpu_memory_usage = 0
        self.thread = threading.get_ident()
        if parent is not None:
            parent.cpu_children.append(self)

    @property
    def is_user_annotation(self) -> bool:
        """Whether `record_function` made it."""
        return self.category == "user_annotation"

    @property
    def time_range(self) -> Interval:
        """When it began and ended."""
        return Interval(self.start_ns / 1e3, self.end_ns / 1e3)

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from beginning to end."""
        return (self.end_ns - self.start_ns) / 1e3

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes of the results of the operators in it."""
        inner = sum(child.cpu_memory_usage for child in self.cpu_children)
        return self.self_cpu_memory_usage + inner

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without those of the events within it."""
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} "
            f"cpu_time={self.cpu_time_str} "
            f"cpu_children={[c.id for c in self.cpu_children]} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """The sum of the events of one name."""

    is_async = is_remote = is_legacy = False
    node_id = -1

    def __init__(self) -> None:
        self.key = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.input_shapes: Any = []  # "" where shapes are not told apart
        self.stack: list[str] = []
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.is_user_annotation = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Takes another event into the sum."""
        if not self.count:
            self.key = other.key
            self.input_shapes, self.stack = other.input_shapes, other.stack
            self.cpu_parent = other.cpu_parent
            self.is_user_annotation = other.is_user_annotation
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops
        self.cpu_children.extend(other.cpu_children)
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str}"
            f" input_shapes={self.input_shapes or ''}>"
        )


class _Column(NamedTuple):
    """Of a table: what it shows of an event, and on which side it is aligned."""

    title: str
    text: Callable[[Any], Any]
    width: int = 12
    side: str = ">"


def _name_column(events: Sequence[Any], bound: int | None) -> _Column:
    def name(event: Any) -> str:
        if bound is None or len(event.key) < bound - 3:
            return event.key
        return event.key[: bound - 3] + "..."

    return _Column("Name", name, _widest((e.key for e in events), bound))


def _time_columns(whole: float, unit: str | None) -> list[_Column]:
    """`whole`: the time of all events, in microseconds."""
    return [
        _Column("Self CPU %", lambda e: format_share(e.self_cpu_time_total, whole)),
        _Column("Self CPU", lambda e: format_time(e.self_cpu_time_total, unit)),
        _Column("CPU total %", lambda e: format_share(e.cpu_time_total, whole)),
        _Column("CPU total", lambda e: format_time(e.cpu_time_total, unit)),
        _Column("CPU time avg", lambda e: format_time(e.cpu_time, unit)),
    ]


_MEMORY = (
    _Column("CPU Mem", lambda e: format_memory(e.cpu_memory_usage)),
    _Column("Self CPU Mem", lambda e: format_memory(e.self_cpu_memory_usage)),
)


def _shapes_column(events: Sequence[Any], bound: int | None) -> _Column:
    width = _widest((str(e.input_shapes) for e in events), bound)
    return _Column("Input Shapes", lambda e: str(e.input_shapes)[:width], width)


def _flops_column(events: Sequence[Any]) -> _Column:
    """In the unit of which the least is one."""
    least = min(e.flops for e in events if e.flops > 0)
    thousands = min(int(math.log10(least) / 3), 5)

    def scaled(event: Any) -> str:
        return f"{event.flops / 1000**thousands:8.3f}" if event.flops > 0 else "--"

    return _Column(f"Total {_FLOPS[thousands]}", scaled)


class EventList(list[Any]):
    """Events, or averages of them; tables show what was asked to be counted."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of the events of one name, and if asked for, of one kind of inputs
        or of the same innermost lines."""
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key: list[Any] = [event.key]
            if group_by_input_shapes:
                key.append(str(event.input_shapes))
            if group_by_stack_n:
                key.extend(event.stack[:group_by_stack_n])
            average = found.setdefault(tuple(key), FunctionEventAvg()).add(event)
            if not group_by_input_shapes:
                average.input_shapes = ""
            average.stack = event.stack[:group_by_stack_n]
        return EventList(found.values(), self._profile_memory, self._with_flops)

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all of them."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, one a line, those with the most of `sort_by` first."""
        if not self:
            return ""
        events = list(self)
        if sort_by is not None:
            field = sort_by.replace("cuda", "device").replace("xpu", "device")
            events.sort(key=lambda event: getattr(event, field), reverse=True)
        whole = sum(e.self_cpu_time_total for e in events)
        columns = [_name_column(events, max_name_column_width)]
        columns += _time_columns(whole, time_unit)
        if self._profile_memory:
            columns += _MEMORY
        columns.append(_Column("# of Calls", lambda e: e.count))
        if any(e.input_shapes for e in events):
            columns.append(_shapes_column(events, max_shapes_column_width))
        if self._with_flops and any(e.flops > 0 for e in events):
            columns.append(_flops_column(events))
        lines = 0
        if any(e.stack for e in events):
            every = (entry for e in events for entry in e.stack)
            lines = _widest(every, max_src_column_width)
            first = lambda e: _trimmed(e.stack[0], lines) if e.stack else ""  # noqa: E731
            columns.append(_Column("Source Location", first, lines, "<"))

        def row(values: Iterable[Any]) -> str:
            pairs = zip(values, columns, strict=True)
            return "".join(f"{value!s:{c.side}{c.width}}  " for value, c in pairs)

        rule = "".join("-" * column.width + "  " for column in columns)
        length = len(rule) - 2
        text: list[str] = []
        if header is not None:
            text += ["=" * length, header]
        if top_level_events_only:
            text += ["=" * length, "This report only display top-level ops statistics"]
            events = [event for event in events if event.cpu_parent is None]
        text += [rule, row(column.title for column in columns), rule]
        for event in events if row_limit < 0 else events[:row_limit]:
            text.append(row(column.text(event) for column in columns))
            for entry in event.stack[1:] if lines else ():
                blank = [""] * (len(columns) - 1)
                text.append(row([*blank, _trimmed(entry, lines)]))
        text.append(rule)
        text.append(f"Self CPU time total: {format_time(whole, time_unit)}")
        return "\n".join(text) + "\n"

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing or Perfetto; gzipped for `.gz`."""
        write_trace(self, path, {})

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes lines for flame graphs: where each event was called, and its time."""
        allowed = ["self_cpu_time_total", "self_device_time_total"]
        if metric not in [*allowed, "self_cuda_time_total"]:
            raise ValueError("metric should be one of: " + str(allowed))
        with open(path, "w") as file:
            for event in self:
                time = int(getattr(event, metric.replace("cuda", "device")))
                if event.stack and time > 0:
                    stack = ";".join(reversed(event.stack))
                    file.write(f"{stack.replace(' ', '_')} {time}\n")


def _widest(texts: Iterable[str], bound: int | None) -> int:
    width = max(len(text) for text in texts) + 4
    return width if bound is None else min(width, bound)


def _trimmed(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]


def write_trace(events: Iterable[Any], path: str, metadata: dict[str, Any]) -> None:
    """Writes events in Chrome's trace format."""
    process = os.getpid()
    found = [
        {
            "ph": "X",
            "cat": event.category,
            "name": event.trace_name,
            "pid": process,
            "tid": event.thread,
            "ts": event.start_ns / 1e3,
            "dur": event.cpu_time_total,
            "args": {"Ev Idx": event.id, "Input Dims": event.input_shapes},
        }
        for event in events
    ]
    content = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "traceEvents": found,
        "traceName": path,
        **metadata,
    }
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as file:
        json.dump(content, file)
