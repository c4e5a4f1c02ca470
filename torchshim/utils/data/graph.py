"""Which pipes a pipe reads.

Follows ``torch.utils.data.graph``.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Collection
from typing import Any

from torchshim import _warnings as warnings
from torchshim.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = IterDataPipe | MapDataPipe
DataPipeGraph = dict[int, tuple[DataPipe, "DataPipeGraph"]]


class _Finder(pickle.Pickler):
    """Goes through what a pipe holds as pickling would, and notes the pipes in it."""

    def __init__(self, root: Any, only_pipes: bool, seen: set[int]) -> None:
        super().__init__(io.BytesIO())
        self.root, self.only_pipes, self.seen = root, only_pipes, seen
        self.found: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        if obj is self.root or obj is _nothing:
            return NotImplemented
        if isinstance(obj, (IterDataPipe, MapDataPipe)):
            if id(obj) not in self.seen:
                self.seen.add(id(obj))
                self.found.append(obj)
        elif not self.only_pipes or isinstance(obj, Collection):
            return NotImplemented
        return _nothing, ()


def _nothing() -> None:
    """What is put in the place of what is not gone into."""


def traverse_dps(datapipe: DataPipe) -> DataPipeGraph:
    """{id: (pipe, graph of what it reads)} of a pipe.

    Pipes are looked for in attributes and containers. RuntimeError for what is no pipe.
    """
    return _traversed(datapipe, True, set())


def traverse(datapipe: DataPipe, only_datapipe: bool | None = None) -> DataPipeGraph:
    """As `traverse_dps`, by default within other objects as well; deprecated."""
    text = (
        "`traverse` function is deprecated and will be removed after 1.13. Please use "
        "`traverse_dps` instead."
    )
    if not only_datapipe:
        text += (
            " And, the behavior will be changed to the equivalent of "
            "`only_datapipe=True`."
        )
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _traversed(datapipe, bool(only_datapipe), set())


def _traversed(pipe: Any, only_pipes: bool, seen: set[int]) -> DataPipeGraph:
    if not isinstance(pipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(
            f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found"
        )
    if id(pipe) in seen:
        return {}
    seen.add(id(pipe))
    finder = _Finder(pipe, only_pipes, set(seen))
    finder.dump(pipe)
    inner: DataPipeGraph = {}
    for found in finder.found:
        # A copy for each path: a pipe may be in several of them.
        inner.update(_traversed(found, only_pipes, set(seen)))
    return {id(pipe): (pipe, inner)}
