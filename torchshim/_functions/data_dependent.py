"""Functions whose results' shapes depend on values.

They read what decides the shape on the host and record the rest, so that gradients flow
where PyTorch lets them flow.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.extent import COUNTS, check_extent, too_many_elements
from torchshim._core.record import local
from torchshim._core.storage import TensorBase, check_apart, placement
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    all_tensors,
    check_room,
    only_bools,
    wrong,
)
from torchshim._functions.resizing import resize_output, show
from torchshim._functions.vmap_fallback import example_by_example
from torchshim._ops.view_geometry import wrap_dim
from torchshim._out import refuse_followed
from torchshim._refusal import refuse
from torchshim._tensor import Tensor, from_array, host_value


def _check_tensor(function: str, name: str, position: int, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(wrong(function, name, position, "Tensor", value))


def _not_implemented(kernel: str, tensor: Tensor) -> NotImplementedError:
    return NotImplementedError(
        f"\"{kernel}\" not implemented for '{tensor.dtype.scalar_name}'"
    )


def _made(array: np.ndarray, like: Tensor, strides: Any = None) -> Tensor:
    """A new tensor of host values on the device of another."""
    return from_array(array, device=like.device, strides=strides)


def _exact(dtype: dtypes.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex)


def _written(out: Any, result: Tensor) -> Tensor:
    """The result in the tensor given as `out=`, resized to it."""
    resize_output(out, result._tmeta.shape)
    return out.copy_(result)


# -- where elements are not zero -------------------------------------------------------


def refuse_examples(function: str, *tensors: Any) -> None:
    """Under `vmap`: raises for tensors that would give each example another shape."""
    if any(isinstance(t, Tensor) and t._tmeta.batch for t in tensors):
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. "
            f"Attempted to vmap over aten::{function}. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )


def refuse_rule(function: str, *tensors: Any) -> None:
    """Under `vmap`: raises for tensors of which PyTorch does not map the function."""
    if any(isinstance(t, Tensor) and t._tmeta.batch for t in tensors):
        raise RuntimeError(
            f"Batching rule not implemented for aten::{function}. We could not "
            "generate a fallback."
        )


def _nonzero(input: Tensor) -> tuple[np.ndarray, ...]:
    refuse_examples("nonzero", input)
    values = host_value(input)
    return tuple(np.nonzero(values != 0) if values.ndim else ())


@public(method=True)
def nonzero(
    input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False
) -> Tensor | tuple[Tensor, ...]:
    """The positions of elements that are not zero: (n, dimensions), int64.

    With `as_tuple`, one tensor a dimension, to index with. See
    https://docs.pytorch.org/docs/2.13/generated/torch.nonzero.html.

    >>> import torchshim as torch
    >>> torch.nonzero(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    _check_tensor("nonzero", "input", 1, input)
    if not isinstance(as_tuple, bool):
        refuse("torch", "nonzero", (input,), {"as_tuple": as_tuple})
    if as_tuple:
        if out is not None:
            raise RuntimeError(
                "nonzero does not support the out kwarg when as_tuple is True"
            )
        refuse_rule("nonzero_numpy", input)
        values = np.atleast_1d(host_value(input))
        return tuple(_made(i.astype(np.int64), input) for i in np.nonzero(values != 0))
    found = _nonzero(input)
    if input.ndim:
        n = len(found[0])
        # PyTorch lays the positions out one dimension after the other.
        rows = np.stack(found).astype(np.int64)
        result = _made(np.ascontiguousarray(rows.T), input, (1, n))
    else:
        number = int(bool(host_value(input) != 0))
        result = _made(np.zeros((number, 0), np.int64), input, (1, number))
    if out is None:
        return result
    if out.dtype is not dtypes.int64:
        raise RuntimeError(
            "nonzero: Expected out tensor to have scalar type Long but got scalar "
            f"type{out.dtype.scalar_name}"
        )
    check_apart(out, (input,))
    if out.shape != result.shape:
        resize_output(out, result._tmeta.shape)
        if result.numel():
            show(out, (tuple(result.shape), result.stride(), placement(out)[2]))
    return out.copy_(result)


@public(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The positions of elements that are not zero: (n, dimensions), int64.

    See https://docs.pytorch.org/docs/2.13/generated/torch.argwhere.html.

    >>> import torchshim as torch
    >>> torch.argwhere(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    _check_tensor("argwhere", "input", 1, input)
    return nonzero(input)


@public(method=True)
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where a mask is True, as one dimension.

    Input and mask are broadcast; raises RuntimeError for a mask that is not boolean.
    See https://docs.pytorch.org/docs/2.13/generated/torch.masked_select.html.

    >>> import torchshim as torch
    >>> x = torch.tensor([1., 2., 3.])
    >>> x.masked_select(x > 1)
    tensor([2., 3.])
    """
    _check_tensor("masked_select", "input", 1, input)
    _check_tensor("masked_select", "mask", 2, mask)
    if out is not None:
        refuse_followed(local.rec, "masked_select", (input, out))
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if out is not None:
        if out.dtype is not input.dtype:
            raise RuntimeError(
                "masked_select(): self and result must have the same scalar type"
            )
        check_apart(out, (input, mask))
    if mask._tmeta.batch:
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We "
            "cannot support this because for each batch this would return a "
            "differently shaped Tensor. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    shape = _broadcast(tuple(mask.shape), tuple(input.shape))
    index = np.flatnonzero(np.broadcast_to(host_value(mask), shape))
    result = fns.masked_take(input, _made(index.astype(np.int64), input), shape)
    return result if out is None else _written(out, result)


@public(name="_rowwise_prune")
def rowwise_prune(
    weight: Tensor, mask: Tensor, compressed_indices_dtype: dtypes.dtype
) -> tuple[Tensor, Tensor]:
    """The rows that a mask keeps, and of each row where it is among these, or -1.

    Follows PyTorch's `_rowwise_prune`; both results are without a history.

    >>> import torchshim as torch
    >>> w, mask = torch.tensor([[1.0], [2.0], [3.0]]), torch.tensor([True, False, True])
    >>> torch._rowwise_prune(w, mask, torch.int32)
    (tensor([[1.],
            [3.]]), tensor([ 0, -1,  1], dtype=torch.int32))
    """
    if weight.dim() != 2:
        raise RuntimeError("'weights' should have 2 dimensions.")
    if mask.numel() != weight.size(0):
        raise RuntimeError(
            "Number of elements in 'mask' should be equivalent to the number of rows "
            "in 'weights'."
        )
    if compressed_indices_dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            "compressed_indices_dtype should be either int(int32) or long(int64)."
        )
    if mask.dtype is not dtypes.bool_:
        found = mask.dtype.scalar_name
        raise RuntimeError(f"expected scalar type Bool but found {found}")
    if weight.dtype is dtypes.bool_ or weight.dtype.is_complex:
        raise _not_implemented("rowwise_prune_helper", weight)
    kept = host_value(mask).reshape(-1)
    places = np.where(kept, np.cumsum(kept) - 1, -1)
    rows = fns.index_select(weight.detach(), 0, _made(np.flatnonzero(kept), mask))
    return rows, _made(places.astype(compressed_indices_dtype.np), mask)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    ndim = max(len(a), len(b))
    sizes = []
    for k in range(1, ndim + 1):
        m = a[-k] if k <= len(a) else 1
        n = b[-k] if k <= len(b) else 1
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                f"non-singleton dimension {ndim - k}"
            )
        sizes.append(n if m == 1 else m)
    return tuple(reversed(sizes))


# -- unique elements -------------------------------------------------------------------


def _rows(input: Tensor, dim: int | None, kernel: str) -> tuple[np.ndarray, int | None]:
    """The values to compare, one row each, and the dimension they lie along."""
    if input.dtype.is_complex:
        raise _not_implemented(kernel, input)
    if dim is None:
        return host_value(input).reshape(-1, 1), None
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = wrap_dim(dim, input.ndim)
    empty = sum(n == 0 for n in input.shape)
    if input.shape[axis] == 0 and empty > 1:
        raise RuntimeError(
            "Number of zero sized dimensions is more than one, so unique cannot be "
            "applied "
        )
    if input.shape[axis] and empty:
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot "
            "be applied"
        )
    values = host_value(input)
    if values.dtype == np.bool_:
        values = values.view(np.uint8) != 0  # sorting compares bytes, which may be any
    values = np.moveaxis(values, axis, 0)
    width = math.prod(values.shape[1:])
    return values.reshape(values.shape[0], width), axis


def _runs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where runs of equal rows start, each row's run, and the runs' lengths."""
    if not len(rows):
        none = np.zeros(0, np.int64)
        return none, none, none
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    counts = np.diff(np.append(starts, len(rows)))
    return starts, np.cumsum(new) - 1, counts


def _unique_result(
    input: Tensor,
    axis: int | None,
    index: np.ndarray,
    inverse: np.ndarray,
    counts: np.ndarray,
    node: str,
    asked: tuple[bool, bool],
) -> Any:
    taken = _made(index.astype(np.int64), input)
    results = [fns.unique_take(input, taken, axis, node)]
    if asked[0]:
        shape = tuple(input.shape) if axis is None else (len(inverse),)
        results.append(_made(inverse.astype(np.int64).reshape(shape), input))
    if asked[1]:
        results.append(_made(counts.astype(np.int64), input))
    return results[0] if len(results) == 1 else tuple(results)


@public(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The different elements (or slices along `dim`), in ascending order.

    With `return_inverse` also where each element went, with `return_counts` how often
    each occurs. Not sorting is allowed, not promised, by `sorted=False`. Raises
    NotImplementedError for complex numbers. See
    https://docs.pytorch.org/docs/2.13/generated/torch.unique.html.

    >>> import torchshim as torch
    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    _check_tensor("unique", "input", 1, input)
    name, node = ("_unique2", "Unique2") if dim is None else ("unique_dim", "UniqueDim")
    asked = {"return_inverse": return_inverse, "return_counts": return_counts}
    _check_flags(name, sorted=sorted, **asked)
    return _unique(name, input, dim, node, (return_inverse, return_counts))


def _check_flags(name: str, **flags: Any) -> None:
    for key, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(wrong(name, key, 0, "bool", value))


# So many slices PyTorch sorts by insertion, where it shows that it takes NaN to be
# neither less nor greater than anything: they stay about where they are.
_FEW = 16


def _inserted(rows: np.ndarray) -> np.ndarray:
    """An order of the rows: each goes before those at the end that it is less than."""

    def less(a: np.ndarray, b: np.ndarray) -> bool:
        differ = (a < b) | (a > b)
        return bool(differ.any() and (a < b)[differ.argmax()])

    order: list[int] = []
    for i, row in enumerate(rows):
        at = len(order)
        if at and less(row, rows[order[0]]):
            at = 0
        while at and less(row, rows[order[at - 1]]):
            at -= 1
        order.insert(at, i)
    return np.array(order)


def _unique(
    name: str, input: Tensor, dim: int | None, node: str, asked: tuple[bool, bool]
) -> Any:
    refuse_examples(name, input)
    rows, axis = _rows(input, dim, "unique" if dim is None else "unique_dim")
    if dim is not None and len(rows) <= _FEW and (rows != rows).any():
        order = _inserted(rows)
    elif rows.shape[1] == 1:
        order = np.argsort(rows[:, 0], kind="stable")
    else:
        order = np.lexsort(rows.T[::-1]) if rows.size else np.arange(len(rows))
    starts, runs, counts = _runs(rows[order])
    inverse = np.empty(len(order), np.int64)
    inverse[order] = runs
    return _unique_result(input, axis, order[starts], inverse, counts, node, asked)


@public(name="_unique")
def unique_1(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> Any:
    """As `unique`, with where each element went, of no elements if not asked for."""
    _check_tensor("_unique", "input", 1, input)
    found = _unique("_unique", input, None, "Unique", (True, False))
    return _asked(found, (True, return_inverse))


@public(name="_unique2")
def unique_2(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """As `unique`, with all results; what was not asked for has no elements."""
    _check_tensor("_unique2", "input", 1, input)
    found = _unique("_unique2", input, None, "Unique2", (True, True))
    return _asked(found, (True, return_inverse, return_counts))


def _asked(results: tuple[Tensor, ...], asked: tuple[bool, ...]) -> tuple[Tensor, ...]:
    return tuple(
        r if wanted else _made(np.zeros(0, np.int64), r)
        for r, wanted in zip(results, asked, strict=True)
    )


@public(namespaces=("_VF",))
def unique_dim(
    input: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    """As `unique` along a dimension, always with all results."""
    _check_tensor("unique_dim", "input", 1, input)
    return _unique("unique_dim", input, dim, "UniqueDim", (True, True))


@public(method=True)
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The first element (or slice along `dim`) of every run of equal ones.

    The further results are those of `unique`. See
    https://docs.pytorch.org/docs/2.13/generated/torch.unique_consecutive.html.

    >>> import torchshim as torch
    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    asked = {"return_inverse": return_inverse, "return_counts": return_counts}
    _check_flags("unique_consecutive", **asked)
    _check_tensor("unique_consecutive", "input", 1, input)
    refuse_examples("unique_consecutive", input)
    rows, axis = _rows(input, dim, "unique" if dim is None else "unique_dim")
    starts, runs, counts = _runs(rows)
    pair = return_inverse, return_counts
    return _unique_result(input, axis, starts, runs, counts, "UniqueConsecutive", pair)


@public(method=True)
def bincount(
    input: Tensor, weights: Tensor | None = None, minlength: int = 0
) -> Tensor:
    """How often each non-negative integer occurs, or the sum of weights there.

    The result is int64, or the weights' dtype where that is float32, else float64; it
    has `max(input) + 1` elements, at least `minlength`. See
    https://docs.pytorch.org/docs/2.13/generated/torch.bincount.html.

    >>> import torchshim as torch
    >>> torch.bincount(torch.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    _check_tensor("bincount", "input", 1, input)
    if input._tmeta.batch or (weights is not None and weights._tmeta.batch):
        each = functools.partial(bincount, minlength=minlength)
        return example_by_example("bincount", each, (input, weights))
    if not _exact(input.dtype) or input.dtype is dtypes.bool_:
        raise _not_implemented("bincount_cpu", input)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.ndim == 1 and not input.numel():
        check_extent((minlength,), 8)
        return _made(np.zeros(minlength, np.int64), input)
    values = host_value(input)
    if values.ndim != 1 or values.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return _made(_counted(values, None, minlength, np.int64), input)
    if weights.ndim != 1 or weights.shape[0] != values.shape[0]:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = np.float32 if weights.dtype is dtypes.float32 else np.float64
    added = host_value(weights)
    if weights.dtype.is_complex:
        added = np.real(added)
    return _made(_counted(values, added.astype(np.float64), minlength, kind), input)


def _counted(
    values: np.ndarray, weights: np.ndarray | None, minlength: int, kind: Any
) -> np.ndarray:
    largest = int(values.max())
    if largest >= COUNTS - 1:
        raise RuntimeError(
            "maximum value of input overflowed, it should be < "
            f"{COUNTS - 1} but got {largest}"
        )
    check_extent((max(largest + 1, minlength),), 8)
    counts = np.bincount(values.astype(np.int64), weights, minlength)
    return counts.astype(kind)


# -- choices and products --------------------------------------------------------------


def _check_vector(tensor: Tensor) -> None:
    if tensor.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")


def _columns(tensors: Sequence[Tensor], index: np.ndarray) -> Tensor:
    """A matrix whose column k holds elements of tensor k."""
    picked = [
        fns.index_select(t, 0, _made(np.ascontiguousarray(column), t))
        for t, column in zip(tensors, index.T, strict=True)
    ]
    return fns.stack(picked, 1)


@public(method=True)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a vector, one a row.

    With replacement, an element may be chosen again. See
    https://docs.pytorch.org/docs/2.13/generated/torch.combinations.html.

    >>> import torchshim as torch
    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    only_bools(with_replacement)
    _check_tensor("combinations", "input", 1, input)
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return from_array(np.zeros(0, input.dtype.np), device=input.device)
    choose = (
        itertools.combinations_with_replacement
        if with_replacement
        else itertools.combinations
    )
    n = input.numel()
    if r * math.log(max(n, 1)) >= 63 * math.log(2):  # PyTorch makes all tuples
        raise too_many_elements()
    count = math.comb(n + r - 1 if with_replacement else n, r)
    check_room((count, r), dtypes.int64, input.device)
    rows = list(choose(range(input.numel()), r))
    return _columns([input] * r, np.array(rows, np.int64).reshape(-1, r))


@public
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every tuple with one element of each vector, one a row.

    Of one vector, that vector. See
    https://docs.pytorch.org/docs/2.13/generated/torch.cartesian_prod.html.

    >>> import torchshim as torch
    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3]))
    tensor([[1, 3],
            [2, 3]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    for tensor in all_tensors(tensors):
        _check_vector(tensor)
    if len(tensors) == 1:
        return tensors[0]
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if len({t.dtype for t in tensors}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    grids = np.indices([t.numel() for t in tensors]).reshape(len(tensors), -1)
    return _columns(tensors, grids.T.astype(np.int64))
