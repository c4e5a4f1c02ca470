"""Modules that hold modules: in order, by index or by name.

Follows the containers of ``torch.nn``; those that hold parameters are in
`parameter_container`.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from importlib import import_module
from itertools import chain, groupby
from itertools import islice as islice
from typing import Any, Self, TypeVar, overload

from torchshim import _warnings as warnings
from torchshim.nn.modules._parameter_container import ParameterDict, ParameterList
from torchshim.nn.modules.module import Module
from torchshim.nn.modules.module import _addindent as _addindent
from torchshim.nn.parameter import Parameter as Parameter

T = TypeVar("T", bound=Module)

__all__ = [
    "Container",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "Sequential",
]


class Container(Module):
    """Deprecated: a plain `Module` holds submodules just as well."""

    def __init__(self, **kwargs: Any) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented "
            "in `nn.Module`. Subclass that instead.",
            category=FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Listed(Module):
    """What `Sequential` and `ModuleList` share: submodules in an order."""

    _modules: dict[str, Module]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Add `module` at the end.

        >>> from torchshim import nn
        >>> nn.Sequential(nn.ReLU()).append(nn.Tanh())
        Sequential(
          (0): ReLU()
          (1): Tanh()
        )
        """
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take the module at an index (or a slice of modules) out, and return it.

        >>> from torchshim import nn
        >>> nn.ModuleList([nn.ReLU(), nn.Tanh()]).pop(0)
        ReLU()
        """
        taken = self[key]  # type: ignore[index]
        del self[key]  # type: ignore[attr-defined]
        return taken

    def _make_room(self, index: int) -> None:
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]

    def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            delattr(self, name)
        # The ones that are left are numbered anew, whatever their names were.
        self._modules = OrderedDict(
            (str(i), module) for i, module in enumerate(self._modules.values())
        )


class Sequential(_Listed):
    """Modules called one after the other, each with the result of the one before.

    Takes the modules, or one OrderedDict that names them. Follows
    ``torch.nn.Sequential``.

    >>> from torchshim import nn
    >>> nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    Sequential(
      (0): Linear(in_features=4, out_features=2, bias=True)
      (1): ReLU()
    )
    """

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def _name_at(self, idx: Any) -> str:
        idx = operator.index(idx)
        size = len(self)
        if not -size <= idx < size:
            raise IndexError(f"index {idx} is out of range")
        return list(self._modules)[idx]

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> Sequential: ...

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name_at(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name_at(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            self._delete(list(self._modules)[idx])
        else:
            self._delete([self._name_at(idx)])

    def __add__(self, other: Any) -> Sequential:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        _check_sequential(other)
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*(list(self) * other))

    def __rmul__(self, other: int) -> Sequential:
        return self * other

    def __imul__(self, other: int) -> Self:
        self._check_factor(other)
        modules = [self._modules[str(i)] for i in range(len(self) if other > 1 else 0)]
        return self.extend(modules * (other - 1))

    def _check_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(
                f"unsupported operand type(s) for *: {type(self)} and {type(other)}"
            )
        if other <= 0:
            raise ValueError(
                f"Non-positive multiplication factor {other} for {type(self)}"
            )

    def insert(self, index: int, module: Module) -> Self:
        """Put `module` before the one at `index`.

        IndexError where `index` is out of range. Follows ``Sequential.insert``.

        >>> from torchshim import nn
        >>> nn.Sequential(nn.ReLU()).insert(0, nn.Tanh())[0]
        Tanh()
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self._modules)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        if index < 0:
            index += size
        self._make_room(index)
        self._modules[str(index)] = module
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add each of the given modules at the end.

        >>> from torchshim import nn
        >>> len(nn.Sequential().extend([nn.ReLU(), nn.Tanh()]))
        2
        """
        for module in sequential:
            self.append(module)
        return self


def _check_sequential(other: Any) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            "add operator supports only objects of Sequential class, but "
            f"{type(other)} is given."
        )


class ModuleList(_Listed):
    """A list of modules, each of which is registered.

    Follows ``torch.nn.ModuleList``.

    >>> from torchshim import nn
    >>> nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])
    ModuleList(
      (0-1): 2 x ReLU()
      (2): Tanh()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx: Any) -> str:
        return str(_index_within(idx, len(self)))

    @overload
    def __getitem__(self, idx: int) -> Module: ...
    @overload
    def __getitem__(self, idx: slice) -> ModuleList: ...

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            self._delete([str(i) for i in range(len(self))[idx]])
        else:
            self._delete([self._get_abs_string_index(idx)])

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __repr__(self) -> str:
        if len(self) == 0:
            return f"{self._get_name()}()"
        lines = []
        start = 0
        # Neighbours that look the same take one line.
        for text, run in groupby(repr(module) for module in self):
            count = len(list(run))
            if count == 1:
                line = f"({start}): {text}"
            else:
                line = f"({start}-{start + count - 1}): {count} x {text}"
            lines.append(line.replace("\n", "\n  "))
            start += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Module) -> None:
        """Put `module` before the one at `index`.

        >>> from torchshim import nn
        >>> layers = nn.ModuleList([nn.ReLU()])
        >>> layers.insert(0, nn.Tanh())
        >>> layers[0]
        Tanh()
        """
        self._make_room(index)
        self._modules[str(index)] = module

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add each of the given modules at the end; TypeError if not iterable.

        >>> from torchshim import nn
        >>> len(nn.ModuleList().extend([nn.ReLU(), nn.Tanh()]))
        2
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


def _index_within(idx: Any, size: int) -> int:
    idx = operator.index(idx)
    if not -size <= idx < size:
        raise IndexError(f"index {idx} is out of range")
    return idx % size


class ModuleDict(Module):
    """Modules by name, each of which is registered; the order is that of insertion.

    Follows ``torch.nn.ModuleDict``.

    >>> from torchshim import nn
    >>> nn.ModuleDict({"act": nn.ReLU()})["act"]
    ReLU()
    """

    _modules: dict[str, Module]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Drop every module."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take the module with this name out, and return it.

        >>> from torchshim import nn
        >>> nn.ModuleDict({"act": nn.ReLU()}).pop("act")
        ReLU()
        """
        taken = self[key]
        del self[key]
        return taken

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """The pairs of name and module."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping, or of pairs of name and module.

        >>> from torchshim import nn
        >>> modules = nn.ModuleDict()
        >>> modules.update([("act", nn.ReLU())])
        >>> list(modules)
        ['act']
        """
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value "
                "pairs, but got " + type(modules).__name__
            )
        if isinstance(modules, (ModuleDict, Mapping)):
            for key, module in modules.items():
                self[key] = module
            return
        for j, pair in enumerate(modules):
            if not isinstance(pair, Iterable):
                raise TypeError(
                    f"ModuleDict update sequence element #{j} should be Iterable; is"
                    + type(pair).__name__
                )
            if len(pair) != 2:  # type: ignore[arg-type]
                raise ValueError(
                    f"ModuleDict update sequence element #{j} has length "
                    f"{len(pair)}; 2 is required"  # type: ignore[arg-type]
                )
            self[pair[0]] = pair[1]  # type: ignore[index]


def __getattr__(name: str) -> Any:
    # A mark of TorchScript, in a module above this one.
    if name == "_copy_to_script_wrapper":
        return import_module("torchshim._jit_internal")._copy_to_script_wrapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
