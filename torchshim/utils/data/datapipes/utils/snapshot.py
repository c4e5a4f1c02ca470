"""Bringing a pipe back to where it was, by running it from the beginning."""

from __future__ import annotations

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
    drawn = iter(datapipe)
    for _ in range(n_iterations):
        try:
            next(drawn)
        except StopIteration as end:
            raise RuntimeError(
                f"Fast-forward {datapipe} by {n_iterations} iterations exceeds the "
                "number of samples available."
            ) from end
    datapipe._fast_forward_iterator = drawn
    datapipe._snapshot_state = _SnapshotState.Restored
