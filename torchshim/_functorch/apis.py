"""`vmap`, whole and in chunks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torchshim import _pytree as tree
from torchshim._functions.func_reverse import grad, grad_and_value
from torchshim._functions.vmap import vmap
from torchshim._tensor import Tensor

__all__ = ["chunk_vmap", "grad", "grad_and_value", "vmap"]


def chunk_vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    chunks: int = 2,
) -> Callable[..., Any]:
    """`vmap` over one of `chunks` parts of the examples after the other."""
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves = tree.tree_leaves(args)
        dims = tree.tree_leaves(_dims(in_dims, args))
        count = next(
            leaf.size(dim)
            for leaf, dim in zip(leaves, dims, strict=True)
            if isinstance(leaf, Tensor) and dim is not _NOT_MAPPED
        )
        size = -(-count // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(
            *args, **kwargs
        )

    return wrapped


_NOT_MAPPED = -(1 << 40)


def _dims(in_dims: Any, args: Any) -> Any:
    """`in_dims` for every leaf."""
    if in_dims is None or isinstance(in_dims, int):
        dim = _NOT_MAPPED if in_dims is None else in_dims
        return tree.tree_map(lambda _: dim, args)
    if isinstance(args, dict):
        return {key: _dims(in_dims[key], args[key]) for key in args}
    return [_dims(d, a) for d, a in zip(in_dims, args, strict=True)]
