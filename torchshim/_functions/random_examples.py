"""Random numbers under `vmap`: none, the same for all examples, or others for each."""

from __future__ import annotations

from typing import Any

from torchshim._core.levels import VMAP
from torchshim._core.record import local
from torchshim._functions.vmap import left
from torchshim._tensor import Tensor

Batch = tuple[tuple[int, int], ...]

_REFUSED = (
    "vmap: called random operation while in randomness error mode. Please either use "
    "the 'same' or 'different' randomness flags on vmap or perform the randomness "
    "operation out of vmap"
)
_SAME = (
    "Vmap does not currently support same randomness with a batched tensor input. "
    "Please file an issue with functorch"
)
_IN_PLACE = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This "
    "will appear like same randomness. If this is necessary for your usage, please "
    "file an issue with functorch."
)


def mapping() -> bool:
    """Whether a `vmap` is in progress."""
    return any(level.kind == VMAP for level in local.rec.levels)


def check_no_out() -> None:
    """Raises under `vmap`, for numbers that are to be drawn into a tensor."""
    if mapping():
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside "
            "of vmap. Please use non-out variants as a workaround"
        )


def examples() -> Batch:
    """(level, size) of each `vmap` whose examples are to get numbers of their own."""
    if not local.rec.levels:
        return ()
    levels = [level for level in local.rec.levels if level.kind == VMAP]
    if any(level.randomness == "error" for level in levels):
        raise RuntimeError(_REFUSED)
    return tuple(
        (level.number, level.size) for level in levels if level.randomness != "same"
    )


def check_target(target: Tensor, batch: Batch) -> None:
    """Raises where numbers for each example don't fit into a tensor."""
    if set(batch) - set(target._tmeta.batch):
        raise RuntimeError(_IN_PLACE)


def check_parameters(*tensors: Tensor) -> None:
    """Raises where the same numbers are wanted for parameters of each example."""
    batch = set(examples())
    if any(set(tensor._tmeta.batch) - batch for tensor in tensors):
        raise RuntimeError(_SAME)


def whole(tensor: Tensor, batch: Batch) -> Tensor:
    """A parameter with a dimension for each level of the batch before its own."""
    levels = {level.number: level for level in local.rec.levels}
    found: Any = tensor
    for number, _ in reversed(batch):
        found = left(found, 0, levels[number])
    return found
