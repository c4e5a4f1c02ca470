"""`torch.func.rearrange`: dimensions split, ordered and joined by a pattern."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.func._parsing import (
    ELLIPSIS,
    parse_pattern,
    validate_rearrange_expressions,
)


class DimensionBindError(Exception):
    """A dimension has another size than was said, or none can be found for it."""


def rearrange(
    tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int
) -> Tensor:
    """Dimensions split, ordered and joined as a pattern says: "b (h w) c -> b c h w".

    Several tensors are stacked first. Of the sizes that a dimension is split into all
    but one are given by name. Follows `torch.func.rearrange`.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.rearrange.html

    >>> import torchshim as torch
    >>> torch.func.rearrange(torch.arange(4), "(a b) -> b a", a=2)
    tensor([[0, 2],
            [1, 3]])
    """
    x: Any = tensor if isinstance(tensor, Tensor) else torchshim.stack(tensor)
    found = _plan(len(x.shape), pattern, **axes_lengths)
    if found is None:
        return x
    dims, order, joined = found
    sizes = [
        size
        for length, group in zip(x.shape, dims, strict=True)
        for size in _split(length, group, axes_lengths)
    ]
    made = x.reshape(sizes).permute(order)
    ends = iter(made.shape)
    return made.reshape([math.prod(next(ends) for _ in range(n)) for n in joined])


@functools.lru_cache(256)
def _plan(
    ndim: int, pattern: str, **lengths: int
) -> tuple[list[list[str]], list[int], list[int]] | None:
    """The names within each dimension, the order of all, how many each result joins.

    None: there is nothing to do.
    """
    parsed = parse_pattern(pattern, lengths)
    validate_rearrange_expressions(*parsed, lengths)
    left, right = (side.composition for side in parsed)
    extra = ndim - len(left) + (ELLIPSIS in left)
    if extra < 0 or (extra and ELLIPSIS not in left):
        bound = "less than or equal" if ELLIPSIS in left else "equal"
        of = "dimensions in the tensor"
        raise ValueError(
            f"Number of dimensions in pattern ({len(left) - (ELLIPSIS in left)}) must "
            f"be {bound} to the number of {of} ({ndim})"
        )
    if not ndim and not right:
        return None
    rest = [f"{ELLIPSIS}{i}" for i in range(extra)]
    dims: list[list[str]] = []
    for group in left:
        dims += [[name] for name in rest] if isinstance(group, str) else [group]
    names = [name for group in dims for name in group]
    order: list[int] = []
    joined: list[int] = []
    for group in right:
        if isinstance(group, str):
            order += [names.index(name) for name in rest]
            joined += [1] * extra
            continue
        inner = [n for g in group for n in (rest if g == ELLIPSIS else [g])]
        order += [names.index(name) for name in inner]
        joined.append(len(inner))
    return dims, order, joined


def _split(length: int, group: list[str], lengths: dict[str, Any]) -> list[int]:
    """The sizes that a dimension is split into."""
    open_ends = [name for name in group if name not in lengths]
    known = math.prod(lengths[name] for name in group if name in lengths)
    sizes = [lengths.get(name, -1) for name in group]
    if len(open_ends) > 1:
        raise DimensionBindError(
            f"cannot infer the sizes of two dimensions at once {tuple(group)}"
        )
    if open_ends and (not known or length % known):
        raise DimensionBindError(
            f"inferred dimension does not evenly fit into larger dimension: {length} "
            f"vs {sizes}"
        )
    if not open_ends and known != length:
        raise DimensionBindError(
            f"Dimension sizes to do not match ({length} != {known}) when matching "
            f"dimension pack {tuple(group)}"
        )
    return [length // known if name in open_ends else lengths[name] for name in group]
