"""Walking a tree of modules: its parameters, buffers and submodules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn.modules._base import ModuleBase
from torchshim.nn.parameter import Parameter


class Traversal(ModuleBase):
    """`Module`'s iterators over its tree, and look-up by dotted name."""

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        owners: Iterable[tuple[str, Any]] = [(prefix, self)]
        if recurse:
            owners = self.named_modules(
                prefix=prefix, remove_duplicate=remove_duplicate
            )
        for path, owner in owners:
            for name, member in get_members_fn(owner):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Each parameter with its dotted name, the module's own ones first.

        A parameter that is there twice comes once unless `remove_duplicate` is
        false. Follows ``torch.nn.Module.named_parameters``.

        >>> from torchshim import nn
        >>> [name for name, _ in nn.Sequential(nn.Linear(2, 1)).named_parameters()]
        ['0.weight', '0.bias']
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Each parameter once, as optimizers take them.

        >>> from torchshim import nn
        >>> [tuple(p.shape) for p in nn.Linear(2, 1).parameters()]
        [(1, 2), (1,)]
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Each buffer, persistent or not, with its dotted name.

        >>> from torchshim import nn
        >>> [name for name, _ in nn.BatchNorm1d(2).named_buffers()]
        ['running_mean', 'running_var', 'num_batches_tracked']
        """
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Each buffer once.

        >>> from torchshim import nn
        >>> len(list(nn.BatchNorm1d(2).buffers()))
        3
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, torchshim.nn.Module]]:
        """Each direct submodule with its name, every module once.

        >>> from torchshim import nn
        >>> [name for name, _ in nn.Sequential(nn.ReLU(), nn.Tanh()).named_children()]
        ['0', '1']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[torchshim.nn.Module]:
        """Each direct submodule once.

        >>> from torchshim import nn
        >>> list(nn.Sequential(nn.ReLU(), nn.Tanh()).children())
        [ReLU(), Tanh()]
        """
        for _, module in self.named_children():
            yield module

    def named_modules(
        self,
        memo: set[Any] | None = None,
        prefix: str = "",
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """The module itself and each module below it, with dotted names.

        >>> from torchshim import nn
        >>> dict(nn.Sequential(nn.Sequential(nn.ReLU())).named_modules()).keys()
        dict_keys(['', '0', '0.0'])
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[torchshim.nn.Module]:
        """The module itself and each module below it.

        >>> from torchshim import nn
        >>> [type(m).__name__ for m in nn.Sequential(nn.ReLU()).modules()]
        ['Sequential', 'ReLU']
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def get_submodule(self, target: str) -> torchshim.nn.Module:
        """The submodule with the dotted name `target`; the module itself for "".

        AttributeError where the path leads to nothing or to no module. Follows
        ``torch.nn.Module.get_submodule``.

        >>> from torchshim import nn
        >>> nn.Sequential(nn.Sequential(nn.ReLU())).get_submodule("0.0")
        ReLU()
        """
        found: Any = self
        for name in target.split(".") if target else ():
            found = _attribute(found, name)
            if not _is_module(found):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return found

    def set_submodule(
        self, target: str, module: torchshim.nn.Module, strict: bool = False
    ) -> None:
        """Put `module` at the dotted name `target`.

        With `strict` a module must be there already. Follows
        ``torch.nn.Module.set_submodule``.

        >>> from torchshim import nn
        >>> m = nn.Sequential(nn.ReLU())
        >>> m.set_submodule("0", nn.Tanh())
        >>> m[0]
        Tanh()
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not _is_module(module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent: Any = self.get_submodule(path)
        if strict:
            _attribute(parent, name)
        if hasattr(parent, name) and not _is_module(getattr(parent, name)):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter with the dotted name `target`, else AttributeError.

        >>> from torchshim import nn
        >>> nn.Sequential(nn.Linear(2, 1)).get_parameter("0.bias").shape
        torch.Size([1])
        """
        path, _, name = target.rpartition(".")
        param = _attribute(self.get_submodule(path), name)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer with the dotted name `target`, else AttributeError.

        >>> from torchshim import nn
        >>> nn.BatchNorm1d(2).get_buffer("running_mean")
        tensor([0., 0.])
        """
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        buffer = _attribute(owner, name)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer


def _is_module(obj: Any) -> bool:
    return isinstance(obj, Traversal)


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    return getattr(module, name)
