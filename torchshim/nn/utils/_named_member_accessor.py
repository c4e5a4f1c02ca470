"""Submodules and tensors of a module by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from torchshim._tensor import Tensor
from torchshim.nn.modules.module import Module

_MISSING: Any = object()


def _check(module: Any, name: str, kind: str, value: Any) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if kind == "tensor":
        _check_tensor(value)
    elif not isinstance(value, Module):
        raise TypeError(f"{value} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _check_tensor(tensor: Any) -> None:
    if not (tensor is _MISSING or tensor is None or isinstance(tensor, Tensor)):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")


def _table(module: Module, name: str) -> Any:
    """Where a module keeps a parameter or a buffer; None for other attributes."""
    tables: list[Any] = [module._parameters, module._buffers]
    return next((table for table in tables if name in table), None)


def set_tensor(module: Module, name: str, tensor: Any) -> None:
    """Puts a tensor, or None, in the place of an attribute."""
    _check(module, name, "tensor", tensor)
    table = _table(module, name)
    if table is None:
        setattr(module, name, tensor)
    else:
        table[name] = tensor


def swap_tensor(
    module: Module, name: str, tensor: Any, allow_missing: bool = False
) -> Any:
    """Puts a tensor in the place of an attribute; gives what was there.

    Nothing there is `_MISSING`, and what `_MISSING` replaces is deleted.
    """
    _check(module, name, "tensor", tensor)
    table = _table(module, name)
    if table is not None:
        before = table[name]
        if tensor is _MISSING:
            del table[name]
        else:
            table[name] = tensor
        return before
    before = getattr(module, name, _MISSING)
    if before is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if not (before is _MISSING or before is None or isinstance(before, Tensor)):
        raise TypeError(
            f"attribute `{name}`: {before} is not an instance of torch.Tensor"
        )
    if tensor is not _MISSING:
        setattr(module, name, tensor)
    elif before is not _MISSING:
        delattr(module, name)
    return before


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Puts a module in the place of a submodule, which it gives."""
    _check(module, name, "submodule", submodule)
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before = module._modules[name]
    if not isinstance(before, Module):
        raise TypeError(f"{name} attribute is not an instance of torch.nn.Module")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """What a module holds, by paths as in its state dict.

    >>> import torchshim as torch
    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 1))
    >>> accessor = NamedMemberAccessor(net)
    >>> before = accessor.swap_tensor("0.weight", torch.zeros(1, 2))
    >>> net[0].weight
    tensor([[0., 0.]])
    >>> accessor.check_keys(["0.weight", "1.weight"])
    (['0.bias'], ['1.weight'])
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {}

    def _owner(self, path: str) -> tuple[Module, str]:
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_submodule(self, name: str) -> Module:
        """The submodule at a path."""
        if not name:
            return self.module
        found = self.memo.get(name)
        if found is None:
            owner, attr = self._owner(name)
            try:
                found = getattr(owner, attr)
            except AttributeError as error:
                raise AttributeError(
                    f"{owner._get_name()} has no attribute `{attr}`"
                ) from error
            if not isinstance(found, Module):
                raise TypeError(
                    f"submodule `{name}`: {found} is not an instance of torch.nn.Module"
                )
            self.memo[name] = found
        return found

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Puts a module in the place of the one at a path, which it gives."""
        return swap_submodule(*self._owner(path), value)

    def get_tensor(self, name: str) -> Any:
        """The tensor at a path."""
        owner, attr = self._owner(name)
        try:
            tensor = getattr(owner, attr)
        except AttributeError as error:
            raise AttributeError(
                f"{owner._get_name()} has no attribute `{name}`"
            ) from error
        _check_tensor(tensor)
        return tensor

    def set_tensor(self, name: str, value: Any) -> None:
        """Puts a tensor at a path."""
        set_tensor(*self._owner(name), value)

    def del_tensor(self, name: str) -> None:
        """Deletes the tensor at a path."""
        owner, attr = self._owner(name)
        try:
            delattr(owner, attr)
        except AttributeError as error:
            raise AttributeError(
                f"{owner._get_name()} has no attribute `{name}`"
            ) from error

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Puts a tensor at a path; gives what was there."""
        return swap_tensor(*self._owner(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """The tensors at several paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Any]) -> None:
        """Puts tensors at several paths."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: Mapping[str, Any]) -> None:
        """Puts tensors at the paths that are their keys."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Deletes the tensors at several paths."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Any], allow_missing: bool = False
    ) -> list[Any]:
        """Puts tensors at several paths; gives what was there."""
        pairs = _pairs(names, values)
        return [self.swap_tensor(name, value, allow_missing) for name, value in pairs]

    def swap_tensors_dict(
        self, named_tensors: Mapping[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Puts tensors at paths: what was there, and the paths where nothing was.

        After an error everything is as it was; RuntimeError for paths where nothing
        was, unless they are allowed.
        """
        before: dict[str, Any] = {}
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, True)
            missing = [name for name, value in before.items() if value is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """The paths of tensors that are not among these, and these that are none."""
        given, known = set(keys), {name for name, _ in self.named_tensors(False)}
        return sorted(known - given), sorted(given - known)

    def named_parameters(
        self, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """The parameters, with their paths."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """The buffers, with their paths."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Any]]:
        """Parameters and buffers, with their paths."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(
        self, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module and its submodules, with their paths."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> list[tuple[str, Any]]:
    keys, tensors = list(names), list(values)
    if len(keys) != len(tensors):
        raise AssertionError(
            "names and values must have the same length, "
            f"got {len(keys)} names and {len(tensors)} values"
        )
    return list(zip(keys, tensors, strict=True))
