"""Events of a program, and statistics that become events: `torch.monitor`.

https://docs.pytorch.org/docs/2.13/monitor.html
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

__all__ = [
    "STAT_EVENT",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

#: The name of the events that statistics are logged as.
STAT_EVENT = "torch.monitor.Stat"
_lock = threading.RLock()


class data_value_t:
    """What the values of an event's data may be: text, numbers and booleans."""


class Event:
    """Something that happened, with data: text and numbers by name.

    >>> from datetime import datetime
    >>> Event("epoch", datetime(2026, 1, 1), {"loss": 0.5, "step": 3}).data
    {'loss': 0.5, 'step': 3}
    """

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, Any]) -> None:
        if not isinstance(name, str) or not isinstance(timestamp, datetime):
            raise TypeError("__init__(): incompatible constructor arguments.")
        self.name, self.timestamp, self.data = name, timestamp, data

    @property
    def data(self) -> dict[str, Any]:
        """The event's data."""
        return dict(self._data)

    @data.setter
    def data(self, given: Mapping[str, Any]) -> None:
        wrong = [v for v in given.values() if not isinstance(v, (str, int, float))]
        if wrong or not all(isinstance(key, str) for key in given):
            raise TypeError("incompatible arguments: data are text and numbers by name")
        self._data = {
            key: float(v) if isinstance(v, bool) else v for key, v in given.items()
        }


class EventHandlerHandle:
    """What `register_event_handler` gives, to take the handler back with."""

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


_handlers: list[EventHandlerHandle] = []


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Has a function called with each event that is logged from now on."""
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Takes a handler back; nothing for one that was taken back."""
    with _lock:
        _handlers[:] = [each for each in _handlers if each is not handler]


def log_event(event: Event) -> None:
    """Calls all handlers with an event."""
    if not isinstance(event, Event):
        raise TypeError(
            "log_event(): incompatible function arguments. The following argument "
            "types are supported:\n    1. (event: torch._C._monitor.Event) -> None"
        )
    for handle in list(_handlers):
        handle._callback(event)


class Aggregation(enum.Enum):
    """What a `Stat` tells of the values that it was given."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __int__(self) -> int:
        return self.value


class Stat:
    """Statistics of values over windows of time, logged as events.

    A window is logged by the first value after its end, with its `max_samples`-th value
    (others are dropped until its end), or when the object is freed. `get` tells of the
    window that was logged last. PyTorch computes no `VALUE`.

    >>> from datetime import timedelta
    >>> stat = Stat("loss", (Aggregation.MEAN,), timedelta(hours=1), 2)
    >>> stat.add(1), stat.add(2)
    (None, None)
    >>> stat.get()
    {<Aggregation.MEAN: 2>: 1.5}
    """

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: timedelta,
        max_samples: int = 2**63 - 1,
    ) -> None:
        if not isinstance(name, str) or not isinstance(window_size, timedelta):
            raise TypeError("__init__(): incompatible constructor arguments.")
        if not all(isinstance(each, Aggregation) for each in aggregations):
            raise TypeError("__init__(): incompatible constructor arguments.")
        self._name, self._max = name, max_samples
        self._kinds = [a for a in aggregations if a is not Aggregation.VALUE]
        self._length = max(window_size.total_seconds(), 1e-9)
        self._lock = threading.Lock()
        self._values: list[float] = []
        self._last = dict.fromkeys(self._kinds, 0.0)
        self._window = self._current()
        self._full = False

    def _current(self) -> int:
        return int(time.monotonic() / self._length)

    @property
    def name(self) -> str:
        """The name of what is measured."""
        return self._name

    @property
    def count(self) -> int:
        """How many values the current window has."""
        return len(self._values)

    def add(self, v: float) -> None:
        """One more value."""
        with self._lock:
            event = None
            if self._current() != self._window:
                event = self._close()
                self._window, self._full = self._current(), False
            if not self._full:
                self._values.append(float(v))
                if len(self._values) >= self._max:
                    event, self._full = self._close(), True
        if event is not None:
            log_event(event)

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the last window that was logged."""
        return dict(self._last)

    def _close(self) -> Event | None:
        values, self._values = self._values, []
        if not values:
            return None
        found = {
            Aggregation.MEAN: sum(values) / len(values),
            Aggregation.COUNT: float(len(values)),
            Aggregation.SUM: sum(values),
            Aggregation.MAX: max(values),
            Aggregation.MIN: min(values),
        }
        self._last = {kind: found[kind] for kind in self._kinds}
        data = {f"{self._name}.{k.name.lower()}": v for k, v in self._last.items()}
        return Event(STAT_EVENT, datetime.now(), data)

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            event = self._close()
            if event is not None:
                log_event(event)


class TensorboardEventHandler:
    """A handler that writes statistics to a `SummaryWriter`, as scalars."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(
                    name, value, walltime=event.timestamp.timestamp()
                )


class _WaitCounterTracker:
    def __enter__(self) -> None:
        self._start = time.monotonic()

    def __exit__(self, *error: Any) -> None:
        self.seconds = time.monotonic() - self._start


class _WaitCounter:
    """A duration with a name; nothing reports it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def guard(self) -> _WaitCounterTracker:
        """A block whose duration is measured."""
        return _WaitCounterTracker()
