"""What loaders do for data pipes: seeds that all processes share, and their shares."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from torchshim.utils.data.sampler import draw_seed


def shared_seed(loader: Any) -> int | None:
    """The seed of a pass over a pipe; None for other data sets."""
    if not isinstance(loader.dataset, IterDataPipe):
        return None
    return draw_seed(loader.generator)


def seed(dataset: Any, shared: int | None) -> None:
    """Seeds a pipe for a pass, the same in every process."""
    if shared is None:
        return
    from torchshim.utils.data.graph_settings import apply_random_seed

    apply_random_seed(dataset, torchshim.Generator().manual_seed(shared))


def shard(dataset: Any, count: int, number: int) -> None:
    """Tells a pipe which of how many processes reads it."""
    if isinstance(dataset, (IterDataPipe, MapDataPipe)):
        from torchshim.utils.data.graph_settings import apply_sharding

        apply_sharding(dataset, count, number)
