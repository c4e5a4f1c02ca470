"""Settings of all pipes that a pipe reads: shuffling, seeds, shares of processes.

Follows ``torch.utils.data.graph_settings``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim.utils.data.datapipes.iter.sharding import (
    SHARDING_PRIORITIES,
    _ShardingIterDataPipe,
)
from torchshim.utils.data.graph import DataPipe, DataPipeGraph, traverse_dps

__all__ = [
    "apply_random_seed",
    "apply_sharding",
    "apply_shuffle_seed",
    "apply_shuffle_settings",
    "get_all_graph_pipes",
]


def get_all_graph_pipes(graph: DataPipeGraph) -> list[DataPipe]:
    """The pipes of a graph, each once, what reads before what is read."""
    found: dict[int, DataPipe] = {}

    def visit(part: DataPipeGraph) -> None:
        for number, (pipe, inner) in part.items():
            if number not in found:
                found[number] = pipe
                visit(inner)

    visit(graph)
    return list(found.values())


def _has(pipe: Any, *names: str) -> bool:
    return all(inspect.ismethod(getattr(pipe, name, None)) for name in names)


def apply_sharding(
    datapipe: DataPipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group: Any = SHARDING_PRIORITIES.DEFAULT,
) -> DataPipe:
    """Tells pipes that shard which of how many processes this one is.

    RuntimeError where two of them follow one another.
    """

    def visit(graph: DataPipeGraph, before: Any) -> None:
        for pipe, inner in graph.values():
            applied = before
            if isinstance(pipe, _ShardingIterDataPipe) or _has(pipe, "apply_sharding"):
                if before is not None:
                    raise RuntimeError(
                        "Sharding twice on a single pipeline is likely unintended and "
                        "will cause data loss. Sharding already applied to "
                        f"{before} while trying to apply to {pipe}"
                    )
                share: Any = pipe.apply_sharding
                how = num_of_instances, instance_id
                if len(inspect.signature(share).parameters) < 3:
                    share(*how)
                else:
                    share(*how, sharding_group=sharding_group)
                applied = pipe
            visit(inner, applied)

    visit(traverse_dps(datapipe), None)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Turns shuffling on or off in pipes that shuffle; adds one if there is none."""
    if shuffle is None:
        return datapipe
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    shufflers: list[Any] = [p for p in pipes if _has(p, "set_shuffle", "set_seed")]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. "
            "Adding one at the end. Be aware that the default buffer size might not be "
            "sufficient for your task.",
            stacklevel=2,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_shuffle_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """As `apply_random_seed`; deprecated."""
    warnings.warn(
        "`apply_shuffle_seed` is deprecated since 1.12 and will be removed in the "
        "future releases. Please use `apply_random_seed` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return apply_random_seed(datapipe, rng)


def apply_random_seed(datapipe: DataPipe, rng: Any) -> DataPipe:
    """Seeds pipes that draw random numbers, with numbers drawn from a generator."""
    for pipe in _seeded(get_all_graph_pipes(traverse_dps(datapipe))):
        drawn = torchshim.empty((), dtype=torchshim.int64).random_(generator=rng)
        pipe.set_seed(int(drawn.item()))
    return datapipe


def _seeded(pipes: list[Any]) -> Iterator[Any]:
    return (pipe for pipe in pipes if _has(pipe, "set_seed"))
