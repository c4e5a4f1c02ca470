"""What a backward walk depends on in leaves that is not part of the path.

A tensor that is a leaf of two recordings has a slot in each; neither path tells that
the two are the same tensor. Nor does a path tell of the hooks of leaves.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchshim._core.state import Recording


@dataclass(slots=True, eq=False)
class LeafFacts:
    """Which leaves of a walk were the same tensor. Recordings are numbered from 0."""

    # How each recording but the first is reached: (number of one before, slot there).
    ways: list[tuple[int, int]]
    # (number, slot) of the leaves; (number, slot, number, slot) of those that are one.
    leaves: list[tuple[int, int]]
    same: list[tuple[int, int, int, int]]

    def hold(self, first: Recording) -> bool:
        """Whether the same leaves are one again, and no others."""
        reached = [first]
        for number, slot in self.ways:
            hist = reached[number].hists.get(slot)
            if hist is None:
                return False
            reached.append(hist[0])
        entered = [recording.entered for recording in reached]
        distinct = {id(entered[n].get(slot)) for n, slot in self.leaves}
        return len(distinct) == len(self.leaves) - len(self.same) and all(
            entered[a].get(x) is entered[b].get(y) for a, x, b, y in self.same
        )


# The `grad_dtype` of hooks that have none of their own.
OWN_DTYPE: Any = object()


def grad_dtype(leaf: Any) -> Any:
    """What gradients of a leaf are brought to; None: they stay as they are."""
    hooks = leaf._hooks
    if hooks is None or hooks.grad_dtype is OWN_DTYPE:
        return leaf._tmeta.dtype
    return hooks.grad_dtype


# What happens when a gradient reaches a leaf: hooks, hooks after it was added, hooks of
# the leaf's node (which somebody holds), a cast to a `grad_dtype` of its own.
BEFORE, AFTER, OF_NODE, CAST = 1, 2, 4, 8


def hook_kinds(leaf: Any) -> int:
    """Which of these happen, as a sum; 0: the gradient is just added."""
    hooks, node = leaf._hooks, leaf._node
    kinds = 0
    if hooks is not None:
        kinds = BEFORE * bool(hooks.backward) + AFTER * bool(hooks.post)
        if hooks.grad_dtype is not OWN_DTYPE:
            kinds |= CAST
    if node is not None and not isinstance(node, weakref.ref):
        kinds |= OF_NODE
    return kinds


def leaf_facts(
    ways: Sequence[tuple[int, int]],
    leaves: Iterable[tuple[Recording, int]],
    numbers: dict[int, int],
) -> LeafFacts | None:
    """Which of the leaves of a walk are the same tensor; None if its path tells.

    `numbers`: number of a recording -> its number in the walk.
    """
    first: dict[int, tuple[int, int]] = {}
    same: list[tuple[int, int, int, int]] = []
    places: list[tuple[int, int]] = []
    for recording, slot in dict.fromkeys(leaves):
        place = numbers[recording.seq], slot
        other = first.setdefault(id(recording.entered[slot]), place)
        places.append(place)
        if other is not place:
            same.append((*other, *place))
    if len({number for number, _ in places}) < 2:
        return None
    return LeafFacts(list(ways), places, same)
