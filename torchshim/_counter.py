"""0-dim tensors that count: steps of an optimizer, batches a layer has seen.

Nothing that is recorded depends on them, so the host reads their array and puts a new
one in: counting adds neither inputs nor results to a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core.no_data import NoData
from torchshim._core.record import local
from torchshim._tensor import Tensor


def count_of(counter: Tensor) -> float:
    """The number a counter shows."""
    if not isinstance(counter, Tensor):
        raise no_counter()
    array = counter._array
    if array is None or counter._storage is not None:
        return float(counter.item())
    try:
        return float(array)
    except TypeError:  # of one dimension or more: one element, or PyTorch's error
        return float(counter.item())


def counts_of(counters: Sequence[Tensor]) -> list[float]:
    """The numbers that counters show."""
    found: list[float] = []
    array: Any = None
    number = 0.0
    for counter in counters:
        mine = getattr(counter, "_array", None)
        if mine is None or mine is not array:  # counters that go together share one
            number = count_of(counter)
            array = mine
        found.append(number)
    return found


def advance(counters: Sequence[Tensor]) -> None:
    """Adds one to each counter, in place."""
    rec = local.rec
    made: dict[object, np.ndarray] = {}
    array = new = None
    for counter in counters:
        if not isinstance(counter, Tensor):
            raise no_counter()
        before = counter._array
        shaped = bool(counter._tmeta.shape or rec.levels)
        if before is None or shaped or isinstance(before, NoData):
            counter.add_(1)
            continue
        if before is not array:  # counters that go together share one
            array, dtype = before, counter._tmeta.dtype
            key = float(array), dtype
            new = made.get(key)
            if new is None:
                new = made[key] = _frozen(key[0] + 1, dtype)
        rec.recording.counted.append((counter, before))
        counter._array = new
        counter._slot = -1
        counter._versions += 1


def assign(tensor: Tensor, value: float) -> None:
    """Gives a 0-dim tensor another value, in place."""
    if tensor._array is None or tensor._storage is not None:
        tensor.fill_(value)
    else:
        _put(tensor, _frozen(value, tensor._tmeta.dtype))


def _frozen(value: float, dtype: Any) -> np.ndarray:
    array = np.asarray(value, dtype.np)
    array.setflags(write=False)  # tensors share it
    return array


def _put(tensor: Tensor, array: np.ndarray) -> None:
    local.rec.recording.counted.append((tensor, tensor._array))
    tensor._array = array
    tensor._slot = -1
    tensor._versions += 1


def no_counter() -> RuntimeError:
    """What is said of a counter that is no tensor."""
    return RuntimeError(
        "API has changed, `state_steps` argument must contain a list of singleton "
        "tensors"
    )
