"""Streams and events: JAX runs what it is given in order, in one stream a device.

https://docs.pytorch.org/docs/2.13/generated/torch.Stream.html and `torch.Event`.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import jax

from torchshim._core.device import as_device, current_accelerator, linked
from torchshim._core.device import device as Device
from torchshim._core.record import local
from torchshim._functions._arguments import wrong

__all__ = ["Event", "Stream", "wait_for_all"]


def wait_for_all() -> None:
    """Runs what was recorded, and waits for everything that was dispatched."""
    local.rec.flush()
    jax.effects_barrier()
    for array in jax.live_arrays():
        array.block_until_ready()


def device_of(what: str, given: Any) -> Device:
    """The device of a stream or event, with an index on accelerators."""
    if given is None:
        given = current_accelerator() or Device("cpu")
    found = as_device(given)
    if found is None:
        raise TypeError(wrong(what, "device", 1, "torch.device", given))
    if found.type in ("cpu", "meta"):
        return Device(found.type)
    return linked(found)


class _Current(threading.local):
    stack: tuple[Any, ...] = ()


_current = _Current()


def current_stream(device: Device) -> Any:
    """The innermost stream of a device that the thread entered, or None."""
    for stream in reversed(_current.stack):
        if stream.device == device:
            return stream
    return None


def set_stream(stream: Any) -> None:
    """Makes a stream the current one of its device, in this thread."""
    kept = tuple(s for s in _current.stack if s.device != stream.device)
    _current.stack = (*kept, stream)


class Stream:
    """A queue of work of a device.

    All streams of a device are the same queue here, so that waiting for another stream
    is never needed, and harmless.
    """

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        self.device = device_of("Stream", device)
        self.device_index = -1 if self.device.index is None else self.device.index
        self.device_type = {"cpu": 0, "cuda": 1, "xla": 9}.get(self.device.type, 14)
        self.stream_id = 0
        self._before: list[tuple[Any, ...]] = []

    def query(self) -> bool:
        """Whether all work is done; this waits for it."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Waits for all work."""
        wait_for_all()

    def record_event(self, event: Any = None) -> Any:
        """Notes the work so far in an event."""
        event = self._event_type()(self.device) if event is None else event
        event.record(self)
        return event

    def _event_type(self) -> type[Event]:
        return Event

    def wait_event(self, event: Any) -> None:
        """Lets later work wait for an event; it comes later anyway."""

    def wait_stream(self, stream: Any) -> None:
        """Lets later work wait for another stream; it comes later anyway."""
        if self.device.type == "cpu":
            raise RuntimeError("cpu backend doesn't support events.")

    def __enter__(self) -> Any:
        self._before.append(_current.stack)
        set_stream(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _current.stack = self._before.pop()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.device == other.device and self.stream_id == other.stream_id

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, "
            f"device_index={self.device_index}, stream_id={self.stream_id}"
        )


class Event:
    """A point in the work of a device.

    With `enable_timing` recording it waits for the work so far, so that the times
    between events are those that the work took.
    """

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self.device = device_of("Event", device)
        self.enable_timing = enable_timing
        self.event_id = 0
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Notes the work so far."""
        if self.device.type == "cpu":
            raise RuntimeError("cpu backend doesn't support events.")
        if self.enable_timing:
            wait_for_all()
        else:
            local.rec.flush()
        self.event_id = id(self)
        self._time = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Lets later work of a stream wait; it comes later anyway."""

    def query(self) -> bool:
        """Whether the noted work is done; this waits for it."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Waits for the noted work."""
        if self._time is not None:
            wait_for_all()

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to another one."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError(
                "Both events must be created with argument 'enable_timing=True'."
            )
        if self._time is None or end_event._time is None:
            raise ValueError(
                "Both events must be recorded before calculating elapsed time."
            )
        return (end_event._time - self._time) * 1e3

    def ipc_handle(self) -> Any:
        """Refused: events are not shared between processes."""
        raise NotImplementedError(
            "torch.Event ipc is not supported yet, please open an issue if you need "
            "this!"
        )

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index}, "
            f"event_flag={int(self.enable_timing)}, event_id={self.event_id}"
        )
