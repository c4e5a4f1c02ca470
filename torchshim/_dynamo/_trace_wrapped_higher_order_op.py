"""The mode in which programs index by tensors that `vmap` maps over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim import _pytree, ops
from torchshim._tensor import Tensor
from torchshim.overrides import TorchFunctionMode

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """Within it, `x[i]` and `x[i, j]` copy elements, whatever `i` and `j` are.

    Tensors without dimensions are read as numbers elsewhere, and give views.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Any = None,
    ) -> Any:
        if func is Tensor.__getitem__:
            indexed, index = args
            items = _pytree.tree_leaves(index)
            if all(isinstance(item, (Tensor, int)) for item in items):
                found = [
                    item
                    if isinstance(item, Tensor)
                    else indexed.new_tensor(item).long()
                    for item in items
                ]
                return ops.aten.index(indexed, found)
        return func(*args, **(kwargs or {}))
