"""Sums and other reductions, and the softmax, of nested tensors of layout jagged."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.dtypes import finfo, iinfo
from torchshim._functions import nested_elements
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.nested_nodes import named
from torchshim._functions.nested_tensor import (
    from_padded,
    handles,
    inner,
    is_jagged,
    lengths_of,
    refuse,
    to_padded,
    wrapped,
)
from torchshim._tensor import Tensor


def extreme_of(dtype: Any, name: str) -> Any:
    """What no element of a dtype is beyond."""
    if dtype.name == "bool":
        return name == "max"
    info = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
    return getattr(info, name)


def _each(made: Any, function: Any) -> Any:
    """A function of a result, or of each of several that have names."""
    if isinstance(made, Tensor):
        return function(made)
    return type(made)([function(part) for part in made])


class _Dims:
    """What the dimensions of a reduction are of a tensor."""

    def __init__(self, tensor: Any, dims: Any) -> None:
        ndim, ragged = len(tensor._size), tensor._ragged_idx
        found = [wrapped(ndim, dim) for dim in dims]
        self.batch = 0 in found
        self.ragged = ragged in found
        self.others = any(dim not in (0, ragged) for dim in found)
        self.inner = list(dict.fromkeys(inner(dim, ragged) for dim in found))


def reduced(
    func: Any,
    name: str,
    tensor: Any,
    dim: Any,
    keepdim: bool,
    padding: Any,
    **more: Any,
) -> Any:
    """A reduction, along some dimensions or of all elements.

    `padding` is the element that changes no result.
    """
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        if not keepdim:
            return func(tensor._v, **more)
        made = func(tensor._v, dim=list(range(tensor._v.ndim)), keepdim=True, **more)
        return _each(made, lambda part: part.unsqueeze(tensor._ragged_idx))
    several = isinstance(dim, (tuple, list))
    dims = _Dims(tensor, dim if several else [dim])
    own: Any = dims.inner if several else dims.inner[0]
    if dims.ragged and tensor._lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for "
            "non-contiguous nested tensors with holes"
        )
    if dims.ragged and dims.batch:
        made = func(tensor._v, dim=own, keepdim=keepdim, **more)
        return _each(made, lambda part: part.unsqueeze(0)) if keepdim else made
    if dims.ragged:
        if dims.others:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not "
                "supported for nested tensors"
            )
        at = tensor._ragged_idx
        padded = to_padded(tensor, padding, _longest(tensor))
        return func(padded, dim=[at] if several else at, keepdim=keepdim, **more)
    if dims.batch:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged "
            "dimension is not supported for nested tensors"
        )
    made, at = func(tensor._v, dim=own, keepdim=keepdim, **more), tensor._ragged_idx
    moved = at if keepdim else at - sum(d < at - 1 for d in dims.inner)
    return _each(made, lambda part: tensor._like(part, ragged_idx=moved))


def _longest(tensor: Any) -> int:
    return max(int(lengths_of(tensor).max(initial=0)), 1)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """The options that are given; none of `out=`."""
    if options.pop("out", None) is not None:
        refuse("a reduction with out=")
    return {name: value for name, value in options.items() if value is not None}


@handles("sum", "prod")
def _sum(
    func: Any, input: Any, dim: Any = None, keepdim: bool = False, **options: Any
) -> Any:
    dim = options.pop("axis", dim)
    name = func.__name__
    made = reduced(
        func, name, input, dim, keepdim, int(name == "prod"), **_plain(options)
    )
    return made if name == "prod" else _named(made, "Sum" if dim is None else "SumDim")


def _named(made: Any, node: str) -> Any:
    if is_jagged(made):
        return made._like(named(made._v, node), ragged_idx=made._ragged_idx)
    return named(made, node)


@handles("any", "all")
def _any(
    func: Any, input: Any, dim: Any = None, keepdim: bool = False, **options: Any
) -> Any:
    name = func.__name__
    return reduced(func, name, input, dim, keepdim, name == "all", **_plain(options))


@handles("amax", "amin", "argmax", "argmin")
def extremes(
    func: Any, input: Any, dim: Any = None, keepdim: bool = False, **options: Any
) -> Any:
    """As `torch.max`, `torch.amax`, `torch.argmax` and their like."""
    name = func.__name__
    padding = extreme_of(input.dtype, "min" if name.endswith("max") else "max")
    return reduced(func, name, input, dim, keepdim, padding, **_plain(options))


nested_elements.EXTREMES = extremes


@handles("mean")
def _mean(
    func: Any, input: Any, dim: Any = None, keepdim: bool = False, **options: Any
) -> Any:
    options = _plain(options)
    whole = dim is None or (isinstance(dim, (tuple, list)) and not dim)
    several = isinstance(dim, (tuple, list))
    dims = None if whole else _Dims(input, dim if several else [dim])
    if dims is None or not dims.ragged or dims.batch:
        made = reduced(func, "mean", input, dim, keepdim, 0, **options)
        return _named(made, "Mean") if dims is None else made
    if dims.others:
        raise AssertionError(
            "Cannot reduce on both ragged and non-batch dimensions without also "
            "reducing on batch"
        )
    total = reduced(_sum_of, "mean", input, dim, True, 0, **options)
    made = total / _divisors(input, total.ndim)
    return named(made if keepdim else made.squeeze(input._ragged_idx), "MeanDim")


def _sum_of(values: Any, **options: Any) -> Any:
    return values.sum(**options)


def _divisors(tensor: Any, ndim: int) -> Any:
    """The lengths of the tensors of a batch, to divide a padded sum by."""
    device = tensor.device

    def make(offsets: np.ndarray) -> Any:
        lengths = np.diff(offsets)
        return placed(lengths.reshape(-1, *(1 for _ in range(ndim - 1))), device)

    return planned(("divisors", ndim), make, tensor._offsets)


@handles("softmax", "log_softmax")
def _softmax(
    func: Any,
    input: Any,
    dim: Any = None,
    _stacklevel: int = 3,
    dtype: Any = None,
) -> Any:
    name = func.__name__
    if isinstance(dim, tuple):
        raise RuntimeError(
            f"{name}(): not supported for dimensions of type 'tuple' for NestedTensor"
        )
    if isinstance(_stacklevel, int) is False:  # `torch.softmax(x, dim, dtype)`
        dtype = _stacklevel
    if dim is None:
        refuse(f"{name} without dim")
    options = {} if dtype is None else {"dtype": dtype}
    dims = _Dims(input, [dim])
    if dims.batch:
        raise RuntimeError(
            f"{name}(): not supported when reducing across the batch dimension for "
            "NestedTensor"
        )
    if not dims.ragged:
        return input._like(func(input._v, dim=dims.inner[0], **options))
    if name == "log_softmax":
        raise RuntimeError(
            "log_softmax(): not supported when reducing along the ragged dimension for "
            "NestedTensor"
        )
    if input._ragged_idx > 1:
        raise RuntimeError(
            "softmax(): not supported when reducing along the ragged dimension for "
            "ragged_idx > 1 for NestedTensor"
        )
    if input._lengths is not None:
        raise RuntimeError(
            "softmax(): not supported where lengths is not None if reducing across the "
            "ragged dimension for NestedTensor"
        )
    padded = to_padded(input, float("-inf"), max(input._get_max_seqlen(), 1))
    made = from_padded(func(padded, dim=1, **options), input)
    return made._like(named(made._v, "Softmax"))


@handles("cross_entropy")
def _cross_entropy(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    # The classes would be along the ragged dimension.
    return input.log_softmax(1)
