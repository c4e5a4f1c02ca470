"""The state of the random generators (`torch.random`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torchshim
from torchshim._core.random import default_generator, restore, snapshot
from torchshim._functions.random import (
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def thread_safe_generator() -> None:
    """The generator of a data loader's thread; None outside of one, and in processes.

    The workers of data loaders are processes, whose default generators are their own.
    Follows ``torch.random.thread_safe_generator``.

    >>> import torchshim as torch
    >>> torch.rand(2, generator=torch.random.thread_safe_generator()).shape
    torch.Size([2])
    """
    return None


@contextmanager
def fork_rng(
    devices: Any = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cuda",
) -> Iterator[None]:
    """Puts the generators back, at the end of a block, to where they were before it.

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(1)
    >>> with torch.random.fork_rng():
    ...     a = torch.rand(1)
    >>> bool(a == torch.rand(1))
    True
    """
    kind = torchshim.device(device_type).type
    if not enabled or kind == "meta":
        yield
        return
    if devices is not None:
        module = getattr(torchshim, kind)
        for each in list(devices):
            module.get_rng_state(each)  # AssertionError where there is none
    before = snapshot()
    try:
        yield
    finally:
        restore(before)
