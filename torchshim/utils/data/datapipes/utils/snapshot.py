"""Bringing a pipe back to where it was, by running it from the beginning."""

from __future__ import annotations

import contextlib
from typing import Any

from torchshim.utils.data import graph_settings
from torchshim.utils.data.datapipes._hook_iterator import _SnapshotState
from torchshim.utils.data.datapipes.datapipe import IterDataPipe


def _simple_graph_snapshot_restoration(
    datapipe: IterDataPipe[Any], n_iterations: int, rng: Any = None
) -> None:
    """Draws `n_iterations` samples, so that the next iterator goes on from there.

    `rng`: the generator that all that shuffles is seeded by first.
    """
    if datapipe._snapshot_state == _SnapshotState.Restored:
        raise RuntimeError(
            "Snapshot restoration cannot be applied. You can only restore simple "
            "snapshot to the graph if your graph has not been restored."
        )
    datapipe.reset()
    graph_settings.apply_random_seed(datapipe, rng)
    left = n_iterations
    with contextlib.suppress(StopIteration):
        drawn = iter(datapipe)
        while left > 0:
            next(drawn)
            left -= 1
    datapipe._fast_forward_iterator = drawn
    datapipe._snapshot_state = _SnapshotState.Restored
