"""The CPU as a device among others.

https://docs.pytorch.org/docs/2.13/cpu.html
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any

from torchshim._streams import wait_for_all
from torchshim.cpu import _features, amp

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "get_capabilities",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]

# PyTorch's names of processor features, and those of Linux where they differ.
_RENAMED = {
    "avx512_bw": "avx512bw",
    "avx512_cd": "avx512cd",
    "avx512_dq": "avx512dq",
    "avx512_f": "avx512f",
    "avx512_ifma": "avx512ifma",
    "avx512_vbmi": "avx512vbmi",
    "avx512_vl": "avx512vl",
    "bmi": "bmi1",
    "fma3": "fma",
    "lzcnt": "abm",
    "sha": "sha_ni",
    "sse3": "pni",
}
_SAME = """
    aes amx_bf16 amx_fp16 amx_int8 amx_tile avx avx10_1 avx10_2 avx2 avx512_4fmaps
    avx512_4vnniw avx512_bf16 avx512_bitalg avx512_fp16 avx512_vbmi2 avx512_vnni
    avx512_vp2intersect avx512_vpopcntdq avx_ne_convert avx_vnni avx_vnni_int16
    avx_vnni_int8 bmi2 clflush clflushopt clwb f16c fma4 popcnt sse sse2 sse4_1 sse4_2
    sse4a ssse3
"""


@functools.lru_cache(None)
def get_capabilities() -> Mapping[str, Any]:
    """What the processor can do: PyTorch's names of features, and a few numbers."""
    found = _features.features()
    named = {**{name: name for name in _SAME.split()}, **_RENAMED}
    known: dict[str, Any] = {name: flag in found for name, flag in named.items()}
    known["architecture"] = platform.machine()
    known["cpu_name"] = _features.model()
    known["num_logical_cores"] = os.cpu_count() or 1
    return MappingProxyType(known)


def is_available() -> bool:
    """Whether there is a CPU: always."""
    return True


def is_initialized() -> bool:
    """Whether the CPU is ready: always."""
    return True


def synchronize(device: Any = None) -> None:
    """Runs what was recorded, and waits for everything that was dispatched."""
    wait_for_all()


class Stream:
    """There is nothing to queue on a CPU: the methods do nothing."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Does nothing."""

    def record_event(self) -> None:
        """Does nothing."""

    def wait_event(self, event: Any) -> None:
        """Does nothing."""


class Event:
    """There is nothing to wait for on a CPU: the methods do nothing."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Does nothing."""

    def synchronize(self) -> None:
        """Does nothing."""

    def wait(self, stream: Any = None) -> None:
        """Does nothing."""


_default_stream = Stream()
_current_stream = _default_stream


def current_stream(device: Any = None) -> Stream:
    """The stream that the innermost `stream(...)` names."""
    return _current_stream


class StreamContext(AbstractContextManager):
    """A block in which a stream is the current one."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.prev_stream = _default_stream

    def __enter__(self) -> None:
        global _current_stream
        if self.stream is not None:
            self.prev_stream = _current_stream
            _current_stream = self.stream

    def __exit__(self, *exc_info: object) -> None:
        global _current_stream
        if self.stream is not None:
            _current_stream = self.prev_stream


def stream(stream: Stream) -> AbstractContextManager[Any]:
    """A block in which a stream is the current one."""
    return StreamContext(stream)


def device_count() -> int:
    """1: all cores together are one device."""
    return 1


def set_device(device: Any) -> None:
    """Does nothing: there is one CPU."""


def current_device() -> str:
    """The word "cpu"."""
    return "cpu"


def _is_avx2_supported() -> bool:
    return "avx2" in _features.features()


def _is_avx512_supported() -> bool:
    return "avx512f" in _features.features()


def _is_vnni_supported() -> bool:
    return "avx512_vnni" in _features.features()
