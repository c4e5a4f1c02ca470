"""What programs put on a tensor: its `__dict__`, without the recorder's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torchshim._core.storage import TensorBase

_descriptor: Any = TensorBase.__dict__["__dict__"]
_ABSENT = object()


def fields(tensor: TensorBase) -> dict[str, Any]:
    """Everything that a tensor's attributes are kept in."""
    return _descriptor.__get__(tensor)


def set_fields(tensor: TensorBase, value: dict[str, Any]) -> None:
    """Replaces it."""
    _descriptor.__set__(tensor, value)


class Attributes(dict[str, Any]):
    """A dictionary whose changes are changes of a tensor's attributes."""

    def __init__(self, tensor: TensorBase) -> None:
        self._fields = fields(tensor)
        super().__init__(
            (k, v) for k, v in self._fields.items() if not hasattr(TensorBase, k)
        )

    def __setitem__(self, name: str, value: Any) -> None:
        if hasattr(TensorBase, name):
            raise RuntimeError(f"a tensor's attribute {name!r} cannot be replaced")
        self._fields[name] = value
        super().__setitem__(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._fields[name]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for name, value in dict(*args, **kwargs).items():
            self[name] = value

    def __ior__(self, other: Any) -> Attributes:
        self.update(other)
        return self

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def pop(self, name: str, default: Any = _ABSENT) -> Any:
        if name not in self and default is not _ABSENT:
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name = next(reversed(self), None)
        if name is None:
            raise KeyError("popitem(): dictionary is empty")
        return name, self.pop(name)

    def clear(self) -> None:
        super().clear()
        for name in [n for n in self._fields if not hasattr(TensorBase, n)]:
            del self._fields[name]

    def copy(self) -> dict[str, Any]:
        return dict(self)

    __copy__ = copy

    def __reduce__(self) -> Any:  # as a dictionary of its own
        return dict, (dict(self),)

    @classmethod
    def fromkeys(cls, names: Iterable[str], value: Any = None) -> dict[str, Any]:
        return dict.fromkeys(names, value)


def _set(tensor: TensorBase, value: Any) -> None:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise TypeError(f"__dict__ must be set to a dictionary, not a '{kind}'")
    given, own = dict(value), Attributes(tensor)
    own.clear()
    own.update(given)


def _delete(tensor: TensorBase) -> None:
    Attributes(tensor).clear()


attributes = property(Attributes, _set, _delete)


class Fact(property):
    """A property of tensors that cannot be set, with PyTorch's error for trying."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, instance: Any, value: Any) -> None:
        if self.fset is None:
            raise self._fixed()
        super().__set__(instance, value)

    def __delete__(self, instance: Any) -> None:
        if self.fset is None:
            raise self._fixed()
        super().__delete__(instance)

    def _fixed(self) -> AttributeError:
        name = getattr(self, "_name", "") or getattr(self.fget, "__name__", "")
        return AttributeError(
            f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable"
        )


def fact(name: str, getter: Callable[[Any], Any]) -> Any:
    """A `Fact` for a class that exists already."""
    made = Fact(getter)
    made.__set_name__(object, name)
    return made
