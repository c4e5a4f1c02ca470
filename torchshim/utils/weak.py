"""Mappings whose keys are tensors, or other objects that compare by element.

https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/weak.py
"""

from __future__ import annotations

import copy
import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from torchshim._tensor import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref):
    """A weak reference that hashes and compares by the identity of its object."""

    __slots__ = ["_id"]

    _hash = staticmethod(id)
    _same = staticmethod(operator.is_)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = self._hash(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        theirs = other() if isinstance(other, weakref.ref) else None
        if mine is not None and theirs is not None:
            return bool(self._same(mine, theirs))
        return self is other


class _WeakHashRef(WeakIdRef):
    """A weak reference that hashes and compares as its object does."""

    __slots__ = ()

    _hash = staticmethod(hash)
    _same = staticmethod(operator.eq)


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that does not keep its keys alive, and finds them by identity.

    >>> import torchshim as torch
    >>> key = torch.ones(2)
    >>> found = WeakIdKeyDictionary({key: "ones"})
    >>> found[key], len(found)
    ('ones', 1)
    """

    def __init__(
        self, dict: Mapping[Any, Any] | None = None, ref_type: Any = WeakIdRef
    ) -> None:
        self.data: dict_[Any, Any] = {}
        self.ref_type = ref_type
        self._remove = _remover(weakref.ref(self))
        if dict is not None:
            self.update(dict)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def keyrefs(self) -> list[Any]:
        """The weak references to the keys."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Takes out one item; KeyError where there is none."""
        while True:
            ref, value = self.data.popitem()
            key = ref()
            if key is not None:
                return key, value

    def pop(self, key: Any, *args: Any) -> Any:
        """Takes out the value of a key."""
        return self.data.pop(self.ref_type(key), *args)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """The value of a key, which is put there first if it is missing."""
        return self.data.setdefault(self.ref_type(key, self._remove), default)

    def update(self, dict: Any = None, **kwargs: Any) -> None:
        """Takes over the items of a mapping, or of pairs of keys and values."""
        if dict is not None and not hasattr(dict, "items"):
            dict = dict_(dict)  # all of it, or nothing is taken over
        for key, value in () if dict is None else dict.items():
            self[key] = value
        for key, value in kwargs.items():
            self[key] = value

    def copy(self) -> WeakIdKeyDictionary:
        """Another dictionary of the same items."""
        return type(self)(dict(self.items()), *self._like())

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> WeakIdKeyDictionary:
        values = {key: copy.deepcopy(value, memo) for key, value in self.items()}
        return type(self)(values, *self._like())

    def _like(self) -> tuple[Any, ...]:
        return (self.ref_type,)

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(None, *self._like())
        made.update(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        mine = {id(key): value for key, value in self.items()}
        return mine == {id(key): value for key, value in other.items()}

    __hash__ = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


dict_ = dict


def _remover(owner: weakref.ref[WeakIdKeyDictionary]) -> Callable[[Any], None]:
    """What takes a key out of its dictionary when it is gone."""

    def remove(ref: Any) -> None:
        found = owner()
        if found is not None:
            found.data.pop(ref, None)

    return remove


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor."""

    ref: WeakIdRef

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()
