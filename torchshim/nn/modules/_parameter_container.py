"""Modules that hold parameters, by index or by name."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, KeysView, Mapping
from typing import Any, Self

from torchshim._tensor import Tensor
from torchshim.nn.modules._base import typename
from torchshim.nn.modules.module import Module
from torchshim.nn.parameter import Parameter


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(key: Any, value: Any, describe: Any) -> str:
    """The line of a container's repr that says what it holds at `key`."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.size())
    device = f" ({value.device})" if value.device.type == "cuda" else ""
    return f"  ({key}): {kind} containing: [{describe(value)} of size {size}{device}]"


class ParameterList(Module):
    """A list of parameters, and of anything else; tensors become parameters.

    Follows ``torch.nn.ParameterList``.

    >>> import torchshim as torch
    >>> torch.nn.ParameterList([torch.zeros(2, 3)])
    ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx: Any) -> str:
        idx = operator.index(idx)
        if not -len(self) <= idx < len(self):
            raise IndexError(f"index {idx} is out of range")
        return str(idx % len(self))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            part = type(self)()
            for i in range(len(self))[idx]:
                part.append(self[i])
            return part
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._get_abs_string_index(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Add `value` at the end.

        >>> import torchshim as torch
        >>> len(torch.nn.ParameterList().append(torch.zeros(2)))
        1
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add each of `values` at the end; TypeError for a tensor or a non-iterable.

        >>> import torchshim as torch
        >>> len(torch.nn.ParameterList().extend([torch.zeros(2), torch.ones(1)]))
        2
        """
        # A tensor is iterable, but its rows are hardly meant.
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_line(i, p, lambda p: p.dtype) for i, p in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters, and anything else, by name; tensors become parameters.

    Follows ``torch.nn.ParameterDict``.

    >>> import torchshim as torch
    >>> torch.nn.ParameterDict({"scale": torch.ones(1)})
    ParameterDict(  (scale): Parameter containing: [torch.FloatTensor of size 1])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: str) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a "
                f"string (type is '{type(key).__name__}'). Open an issue on github if "
                "you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        # PyTorch keeps the key even where the value is then refused.
        self._keys[key] = None
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new dictionary with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """What is at `key`, after `default` was put there if nothing was.

        >>> import torchshim as torch
        >>> torch.nn.ParameterDict().setdefault("n", 3)
        3
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Drop every parameter."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take what is at `key` out, and return it.

        >>> import torchshim as torch
        >>> torch.nn.ParameterDict({"n": 3}).pop("n")
        3
        """
        taken = self[key]
        del self[key]
        return taken

    def popitem(self) -> tuple[str, Any]:
        """Take the pair that was added last out, and return it.

        >>> import torchshim as torch
        >>> torch.nn.ParameterDict({"n": 3}).popitem()
        ('n', 3)
        """
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """What is at `key`, or `default` where nothing is."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with `default` at each of `keys`.

        >>> import torchshim as torch
        >>> list(torch.nn.ParameterDict().fromkeys(["a", "b"]))
        ['a', 'b']
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The pairs of name and parameter."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add what a mapping holds, or pairs of name and parameter.

        Plain mappings are added in the order of their sorted keys, as PyTorch
        does; an OrderedDict or ParameterDict in its own.

        >>> import torchshim as torch
        >>> numbers = torch.nn.ParameterDict()
        >>> numbers.update({"b": 1, "a": 2})
        >>> list(numbers)
        ['a', 'b']
        """
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value "
                "pairs, but got " + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            for key, value in parameters.items():
                self[key] = value
            return
        if isinstance(parameters, Mapping):
            for key, value in sorted(parameters.items()):
                self[key] = value
            return
        for j, pair in enumerate(parameters):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{j} should be Iterable; is"
                    + type(pair).__name__
                )
            if len(pair) != 2:  # type: ignore[arg-type]
                raise ValueError(
                    f"ParameterDict update sequence element #{j} has length "
                    f"{len(pair)}; 2 is required"  # type: ignore[arg-type]
                )
            self[pair[0]] = pair[1]  # type: ignore[index]

    def extra_repr(self) -> str:
        return "\n".join(_line(key, p, typename) for key, p in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: Any) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self
