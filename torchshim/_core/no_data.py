"""What stands for the value of a tensor on the device "meta": it has none.

Such tensors are recorded like all others, so that shapes, dtypes, errors and gradients
are inferred; no program ever computes them (`flush`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.state import State

CANNOT_COPY = "Cannot copy out of meta tensor; no data!"


class NoData:
    """Takes the place of an array of this shape and dtype.

    >>> NoData((2, 3), np.dtype("float32")).nbytes
    24
    """

    __slots__ = ("__weakref__", "dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that the array would take."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(CANNOT_COPY)


def absent_of(event: State) -> dict[int, NoData]:
    """The results of an event that have no data, by slot."""
    return {
        event.slot + k: NoData(meta.array_shape, meta.dtype.np)
        for k, meta in enumerate(event.metas)
        if meta.device.type == "meta"
    }
