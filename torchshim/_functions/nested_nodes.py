"""What nested tensors of both layouts share: their role in autograd, nodes' names."""

from __future__ import annotations

from typing import Any, NoReturn

from torchshim._core.record import local
from torchshim._derived import fns
from torchshim._functions.composed import Composed


class Nested(Composed):
    """A nested tensor: part of autograd's graph where its values are.

    (These may have been written to through another view.)
    """

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        return self._v.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return self._v.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._v.grad_fn


def named(values: Any, node: str) -> Any:
    """The values as the result of a node with PyTorch's name, where there is one."""
    if values._tmeta.requires_grad and local.rec.grad:
        return getattr(fns, f"nested_node_{node}")(values)
    return values


def viewed(values: Any, node: str) -> Any:
    """The same memory as a new tensor, which a node with PyTorch's name made."""
    return getattr(fns, f"nested_view_{node}")(values)


def renamed(values: Any, node: str) -> Any:
    """As `viewed`, of what is a view already: only where there is a node."""
    if values._tmeta.requires_grad and local.rec.grad:
        return viewed(values, node)
    return values


def vmap_enter(func: Any, *args: Any) -> NoReturn:
    """Refused: `vmap` maps over dense tensors."""
    raise NotImplementedError("vmap is not supported for nested tensors")
