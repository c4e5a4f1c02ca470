"""Rebuilding containers with other elements, as collating and pinning need it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, MutableMapping, MutableSequence
from typing import Any


def like_mapping(mapping: Any, items: dict[Any, Any]) -> Any:
    """`items` in a mapping of the same type, or a dict where that cannot be made."""
    try:
        if isinstance(mapping, MutableMapping):
            # A copy keeps what the type holds beside its items.
            clone = copy.copy(mapping)
            clone.update(items)
            return clone
        return type(mapping)(items)
    except TypeError:
        return items


def like_sequence(sequence: Any, elements: Iterable[Any]) -> Any:
    """`elements` in a sequence of the same type, or a list where it cannot be made."""
    made = list(elements)
    try:
        if isinstance(sequence, MutableSequence):
            clone = copy.copy(sequence)
            for i, element in enumerate(made):
                clone[i] = element
            return clone
        return type(sequence)(made)
    except TypeError:
        return made
