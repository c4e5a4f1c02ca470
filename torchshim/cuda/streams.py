"""Streams and events of GPUs: JAX runs what it is given in order, in one queue.

https://docs.pytorch.org/docs/2.13/cuda.html#streams-and-events
"""

from __future__ import annotations

from typing import Any

from torchshim import _streams
from torchshim._core import device as devices
from torchshim.cuda._devices import index_of, is_available, need

__all__ = ["Event", "ExternalStream", "Stream", "StreamContext"]


class Stream(_streams.Stream):
    """A stream of a GPU: its one queue. RuntimeError without a GPU."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        if not is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support")
        super().__init__(devices.device("cuda", index_of(device)))
        self.priority = priority

    @property
    def cuda_stream(self) -> int:
        return self.stream_id

    def _event_type(self) -> type[Any]:
        return Event

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(0, 0): there is one queue."""
        return 0, 0

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"
        )


class ExternalStream(Stream):
    """Refused: JAX does not run on a stream of another library."""

    def __init__(self, stream_ptr: int, device: Any = None, **kwargs: Any) -> None:
        need()
        raise NotImplementedError(
            "ExternalStream: JAX does not run on a stream of another library"
        )


class Event(_streams.Event):
    """A point in the work of a GPU. RuntimeError without a GPU."""

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if not is_available():
            raise RuntimeError("Tried to instantiate dummy base class Event")
        super().__init__("cuda", enable_timing=enable_timing, blocking=blocking)

    @property
    def cuda_event(self) -> int:
        return self.event_id

    def __repr__(self) -> str:
        if self.event_id:
            return f"<torch.cuda.Event {self.event_id:#x}>"
        return "<torch.cuda.Event uninitialized>"


class StreamContext:
    """A block in which a stream is the current one of its GPU; None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None and is_available():
            self.stream.__enter__()

    def __exit__(self, *exc_info: object) -> None:
        if self.stream is not None and is_available():
            self.stream.__exit__(*exc_info)


def stream(stream: Any) -> StreamContext:
    """A block in which a stream is the current one of its GPU."""
    return StreamContext(stream)


def set_stream(stream: Any) -> None:
    """Makes a stream the current one of its GPU; None changes nothing."""
    if stream is not None:
        need()
        _streams.set_stream(stream)


def current_stream(device: Any = None) -> Any:
    """The current stream of a GPU. AssertionError without one."""
    need()
    index = index_of(device)
    found = _streams.current_stream(devices.device("cuda", index))
    return Stream(index) if found is None else found


def default_stream(device: Any = None) -> Any:
    """The stream of a GPU that is current where no other is named."""
    need()
    return Stream(index_of(device))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Any:
    """Refused: JAX does not run on a stream of another library."""
    return ExternalStream(data_ptr, device)
