"""What tensors under a transform look like: their text, and what they stand for."""

from __future__ import annotations

import textwrap
from typing import Any

from torchshim import _tensor
from torchshim._core.levels import GRAD, VMAP, Level
from torchshim._core.record import local
from torchshim._derived import public
from torchshim._functions.func_forward import current_dual_level, parted
from torchshim._functions.vmap import argument_behind
from torchshim._tensor import Tensor


def level_of(tensor: Tensor) -> Level | None:
    """The innermost level in progress that a tensor belongs to."""
    rec = local.rec
    mapped = {number for number, _ in tensor._tmeta.batch}
    for level in reversed(rec.levels):
        number = level.number
        if level.kind == VMAP:
            inside = number in mapped
        elif level.kind == GRAD:
            inside = bool(tensor._tmeta.levels >> number & 1)
        else:
            inside = rec.tangent_of(tensor, number) is not None
            inside = inside and level is not current_dual_level()
        if inside:
            return level
    return None


def outside(tensor: Tensor, level: Level) -> Tensor:
    """What a tensor of a level stands for outside of it."""
    if level.kind == VMAP:
        return argument_behind(tensor, level)[0]
    if level.kind == GRAD:
        return local.rec.without_level(tensor, level.number)
    return parted(tensor, level)[0]


@public(namespaces=("func",))
def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor under a transform stands for outside: all examples, no history.

    With `recurse` outside of all transforms, else of the innermost. For looking at
    values only.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.debug_unwrap.html

    >>> import torchshim as torch
    >>> def double(x):
    ...     print(torch.func.debug_unwrap(x))
    ...     return x * 2
    >>> torch.vmap(double)(torch.arange(3))
    tensor([0, 1, 2])
    tensor([0, 2, 4])
    """
    level = level_of(tensor)
    if level is None:
        return tensor
    found = outside(tensor, level)
    return debug_unwrap(found) if recurse else found


def text(tensor: Tensor) -> str | None:
    """The text of a tensor under a transform; None for one that belongs to none."""
    level = level_of(tensor)
    if level is None:
        return None
    if level.kind == VMAP:
        whole, dim = argument_behind(tensor, level)
        start = f"BatchedTensor(lvl={level.depth}, bdim={dim}"
    else:
        whole = outside(tensor, level)
        start = f"GradTrackingTensor(lvl={level.depth}"
    inner = textwrap.indent(repr(whole), "    ")
    return f"{start}, value=\n{inner}\n)"


def tangent_text(tensor: Tensor) -> str | None:
    """The text of the tangent of a dual tensor."""
    level = current_dual_level() if local.rec.forward else None
    found: Any = None if level is None else local.rec.tangent_of(tensor, level.number)
    return None if found is None else f"{found}"


_tensor.transformed_text.append(text)
_tensor.tangent_text.append(tangent_text)
