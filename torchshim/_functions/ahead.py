"""Values that are on their way to a device before they are asked for there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from torchshim._core.device import device
from torchshim._core.storage import TensorBase
from torchshim._functions.creation import place


class _Sent(NamedTuple):
    source: Any
    where: device
    array: Any


def send_ahead(tensor: TensorBase, where: device) -> None:
    """Begins the copy of a tensor to a device, which JAX makes in the background.

    Not where the value is not known, or where others may write to its memory.
    """
    array = tensor._array
    if array is not None and tensor._storage is None and tensor._sent is None:
        copy = place(np.array(array, order="C"), where)
        tensor._sent = _Sent(array, where, copy)


def sent_ahead(tensor: TensorBase, where: device) -> Any:
    """The copy on a device that was begun before; None if it is not the value now.

    It is given away: memory that one tensor holds alone can be used again for results.
    """
    sent = tensor._sent
    if sent is None:
        return None
    tensor._sent = None
    fits = tensor._storage is None and tensor._array is sent.source
    return sent.array if fits and sent.where == where else None
