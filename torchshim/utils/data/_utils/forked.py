"""Before and after the fork of a worker: none of it uses JAX's runtime afterwards.

Data sets and functions of scripts that have no ``if __name__ == "__main__"`` reach a
worker by fork alone, so that is how workers start where PyTorch starts them so.
"""

from __future__ import annotations

import gc
import re
import sys
import warnings
from typing import Any

import jax

from torchshim._core import flush, program, shared, stepwise, storage
from torchshim._core.record import local
from torchshim._core.trie import recorders
from torchshim.utils.data._utils.companion import RemoteProgram

# What a worker inherits from JAX and must not destroy.
_inherited: list[Any] = []


def prepare() -> None:
    """In the parent, before the fork: all is computed, and JAX need not warn."""
    local.rec.flush()
    for array in jax.live_arrays():
        array.block_until_ready()
    _ignore(r"os\.fork\(\) was called", RuntimeWarning)
    _ignore(".* is multi-threaded, use of fork", DeprecationWarning)


def _ignore(message: str, category: type[Warning]) -> None:
    # Not by `filterwarnings`, which makes Python repeat what it has shown already.
    entry = ("ignore", re.compile(message, re.I), category, None, 0)
    filters: Any = warnings.filters
    if entry not in filters:
        filters.insert(0, entry)


def leave_runtime() -> None:
    """In the worker: from here on tensors are NumPy arrays, which NumPy computes."""
    # Locks that other threads of the parent may have held.
    for lock in (storage.accumulate_lock, storage.value_lock, stepwise.lock):
        _renew(lock)
    for recorder in recorders:
        _renew(recorder.lock)
    _inherited.extend((jax.live_arrays(), program.CACHE))
    gc.freeze()
    shared.SMALL = shared.SMALL_ONCE = sys.maxsize
    flush.CACHE = program.CACHE = program.ProgramCache()
    flush.make_program = RemoteProgram
    flush._donations = lambda inputs, held: ()


def _renew(lock: Any) -> None:
    lock._at_fork_reinit()
