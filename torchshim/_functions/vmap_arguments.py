"""Arguments of a mapped function whose shape changes within it: so does what was given.

PyTorch changes the tensor that holds all examples, and with it the dimension mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.levels import VMAP, Level
from torchshim._core.record import local


def note_reshaped(
    tensor: Any, name: str, args: tuple[Any, ...], before: Sequence[int]
) -> None:
    """Notes that a view operator was applied in place to a tensor of this shape."""
    for level in local.rec.levels:
        at = _argument(tensor, level) if level.kind == VMAP else None
        if at is not None:
            dim = at[1]
            step, moved = _of_all(name, args, len(before), dim, before)
            if step is not None:
                known = level.arguments.pop(at)
                level.arguments[id(tensor), moved] = known
                level.reshaped.append((known[0], *step))


def _argument(tensor: Any, level: Level) -> tuple[int, int] | None:
    """The key in `Level.arguments` of an argument."""
    for at, (_, each, _) in level.arguments.items():
        if each is tensor:
            return at
    return None


def _of_all(
    name: str, args: tuple[Any, ...], ndim: int, mapped: int, shape: Sequence[int]
) -> tuple[tuple[str, tuple[Any, ...]] | None, int]:
    """The operator on all examples, and the dimension of these after it."""
    if name in ("t", "transpose", "swapaxes"):
        first, second = args or (0, 1)
        if ndim < 2:
            return None, mapped
        dims = [d % ndim + (d % ndim >= mapped) for d in (first, second)]
        return ("transpose", tuple(dims)), mapped
    if name == "unsqueeze":
        dim = args[0] % (ndim + 1)
        dim += dim >= mapped
        return ("unsqueeze", (dim,)), mapped + (dim <= mapped)
    if name == "squeeze":
        asked = range(ndim) if args[0] is ... else args[0]
        named = (asked,) if isinstance(asked, int) else asked
        ones = sorted({d % ndim for d in named if shape[d] == 1}) if ndim else []
        dims = [d + (d >= mapped) for d in ones]
        moved = mapped - sum(d < mapped for d in dims)
        return ("squeeze", (tuple(dims),)) if dims else None, moved
    return None, mapped
