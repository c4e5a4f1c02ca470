"""Processes (``torch.multiprocessing``): Python's `multiprocessing`, and `spawn`.

Tensors that go to another process share their memory with it, see `reductions`; the
sharing strategies are names only. A forked process computes in a process of its own,
see `_fork` and `torchshim.utils.data._utils.companion`; a spawned one as any program.
"""

import multiprocessing as _multiprocessing
from multiprocessing import *  # noqa: F403  # pyright: ignore

from torchshim.multiprocessing import _fork as _fork
from torchshim.multiprocessing.reductions import init_reductions
from torchshim.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START as ENV_VAR_PARALLEL_START,
)
from torchshim.multiprocessing.spawn import (
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

init_reductions()

_all_sharing_strategies = {"file_descriptor", "file_system"}
_sharing_strategy = "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Notes the name of a strategy; AssertionError for names that PyTorch lacks."""
    global _sharing_strategy
    if new_strategy not in _all_sharing_strategies:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of "
            f"{_all_sharing_strategies}"
        )
    _sharing_strategy = new_strategy


def get_sharing_strategy() -> str:
    """The strategy that was set."""
    return _sharing_strategy


def get_all_sharing_strategies() -> set[str]:
    """The names of all strategies."""
    return _all_sharing_strategies
