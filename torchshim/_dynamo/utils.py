"""Helpers of PyTorch's tracer, as far as scripts name them."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import torchshim
from torchshim._dynamo import config

__all__ = ["counters", "disable_cache_limit", "is_compile_supported"]

#: What the tracer counted; nothing is traced here.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: Any) -> bool:
    """Whether functions on a kind of device can be compiled."""
    kind = torchshim.device(device_type).type
    return kind == "cpu" or kind == getattr(
        torchshim.accelerator.current_accelerator(), "type", None
    )


@contextlib.contextmanager
def disable_cache_limit() -> Iterator[None]:
    """Within the block the settings allow any number of programs, as is so anyway."""
    settings: Any = config
    names = "recompile_limit", "accumulated_recompile_limit"
    before = [getattr(settings, name) for name in names]
    try:
        for name in names:
            setattr(settings, name, sys.maxsize)
        yield
    finally:
        for name, value in zip(names, before, strict=True):
            setattr(settings, name, value)
