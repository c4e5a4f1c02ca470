"""Which leaves of several recordings are the same tensors.

Within one recording that is told by its path. A tensor that is a leaf of two recordings
has a slot in each, and neither path tells that they are one tensor's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchshim._core.state import Recording


@dataclass(slots=True, eq=False)
class Identities:
    """What a walk knew of its leaves. Recordings are numbered, 0 is the first."""

    # How each recording but the first is reached: (number of one before, slot there).
    ways: list[tuple[int, int]]
    # (number, slot) of the leaves, and (number, slot, number, slot) of the same ones.
    leaves: list[tuple[int, int]]
    same: list[tuple[int, int, int, int]]

    def hold(self, first: Recording) -> bool:
        """Whether the same leaves are the same again, and no others."""
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


def identities(
    ways: Sequence[tuple[int, int]],
    leaves: Iterable[tuple[Recording, int]],
    numbers: dict[int, int],
) -> Identities | None:
    """What there is to know of the leaves of a walk; None if one path tells it all.

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
    return Identities(list(ways), places, same)
