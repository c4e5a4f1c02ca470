"""Shapes and pieces of sparse tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex, TypeGuard

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import FORMAT_TEXTS
from torchshim._derived import fns, public
from torchshim._functions._arguments import size_of, tensor_argument, wrong
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.indexing import out_of_bounds
from torchshim._functions.sparse_compressed import compressed
from torchshim._functions.sparse_construct import empty_coo
from torchshim._functions.sparse_convert import expect_coo
from torchshim._functions.sparse_elements import become
from torchshim._functions.sparse_tensor import (
    SparseTensor,
    coo,
    handles,
    is_sparse,
    named,
    refuse,
)
from torchshim._ops.view_geometry import moved as dims_moved
from torchshim._ops.view_geometry import permutation, wrap_dim
from torchshim._tensor import Tensor

# -- dimensions in another order -------------------------------------------------------


def reordered(tensor: Any, order: Sequence[int], node: str) -> Any:
    """The tensor with its sparse dimensions in another order."""
    device = tensor.device
    rows = tuple(order)
    indices = planned(
        ("rows", rows),
        lambda host: placed(host[list(rows)], device),
        tensor._i,
    )
    size = [tensor.shape[d] for d in rows] + list(tensor.shape[len(rows) :])
    same = rows == tuple(range(len(rows))) or tensor._v.shape[0] < 2
    return coo(indices, named(tensor._v, node), size, tensor._coalesced and same)


def _swapped(tensor: Any, dim0: int, dim1: int, node: str) -> Any:
    a, b = wrap_dim(dim0, tensor.ndim), wrap_dim(dim1, tensor.ndim)
    if not tensor.is_sparse:
        return _compressed_swapped(tensor, a, b, node)
    count = tensor._i.shape[0]
    if a >= count or b >= count:
        raise RuntimeError(
            "sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
            f"{count}, d0: {a}, d1: {b}"
        )
    order = list(range(count))
    order[a], order[b] = order[b], order[a]
    return reordered(tensor, order, node)


def _compressed_swapped(tensor: Any, a: int, b: int, node: str) -> Any:
    batch = tensor._batch
    if tensor.dense_dim():
        raise RuntimeError(
            "transpose(): hybrid sparse compressed tensors with dense dimensions are "
            "not supported"
        )
    if a == b:
        return tensor._like(named(tensor._v, node))
    if a >= batch and b >= batch:
        return tensor._transposed(node)
    if a >= batch or b >= batch:
        kinds = ["Batch" if d < batch else "Sparse" for d in (a, b)]
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, "
            f"Sparse, Dense), got {a}({kinds[0]}) and {b}({kinds[1]})"
        )
    size = [*tensor.shape]
    size[a], size[b] = size[b], size[a]
    return compressed(
        tensor.layout,
        *(fns.transpose(t, a, b) for t in (tensor._outer, tensor._inner)),
        named(fns.transpose(tensor._v, a, b), node),
        size,
    )


@handles("t")
def t(input: Any) -> Any:
    """As `torch.t`."""
    if not input.is_sparse:
        if input.ndim > 2:
            raise RuntimeError(
                f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D"
            )
        return input._transposed("T")
    dense = input._v.ndim - 1
    count = input.ndim - dense
    if count > 2 or dense:
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{count} sparse and {dense} dense dimensions"
        )
    return input if input.ndim < 2 else _swapped(input, 0, 1, "T")


@handles("transpose", "swapaxes", "swapdims")
def transpose(input: Any, dim0: int, dim1: int) -> Any:
    """As `torch.transpose`, of sparse dimensions."""
    return _swapped(input, dim0, dim1, "Transpose")


@handles("t_", "transpose_", "swapaxes_", "swapdims_")
def transpose_(self: Any, dim0: int = 0, dim1: int = 1) -> Any:
    """As `Tensor.transpose_`."""
    return become(self, _swapped(self, dim0, dim1, "Transpose"))


@handles("permute")
def permute(input: Any, *order: Any, dims: Any = None) -> Any:
    """As `torch.permute`, of sparse dimensions, and of dense ones."""
    given = size_of("permute", order, dims, name="dims")
    order = permutation(input.ndim, given)
    if not input.is_sparse:
        if order == tuple(range(input.ndim)):
            return input
        if input.ndim != 2:
            refuse("permute", input)
        return input._transposed("Permute")
    count = input._i.shape[0]
    if any(d >= count for d in order[:count]):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions "
            "are not allowed.Only transpositions within sparse and dense dimensions "
            "are supported."
        )
    if order[count:] != tuple(range(count, input.ndim)):
        inner = (0, *(d - count + 1 for d in order[count:]))
        size = [*input.shape[:count], *(input.shape[d] for d in order[count:])]
        values = fns.permute(input._v, inner)
        input = coo(input._i, values, size, input._coalesced)
    made = reordered(input, order[:count], "Permute")
    # PyTorch looks at the first dimension as it is given: a negative one is another.
    made._coalesced = made._coalesced and list(given[:1]) == [0]
    return made


@handles("movedim", "moveaxis")
def movedim(input: Any, source: Any, destination: Any) -> Any:
    """As `torch.movedim`, of sparse dimensions."""
    start, end = ((d,) if d.__class__ is int else d for d in (source, destination))
    return permute(input, *dims_moved(input.ndim, start, end))


def _reversed(self: Any) -> Any:
    return permute(self, *reversed(range(self.ndim)))


SparseTensor.T = property(_reversed)
SparseTensor.mT = property(lambda self: _swapped(self, -2, -1, "Transpose"))


@handles("unsqueeze")
def unsqueeze(input: Any, dim: int) -> Any:
    """As `torch.unsqueeze`."""
    expect_coo("unsqueeze", input)
    dim = wrap_dim(dim, input.ndim + 1)
    size = [*input.shape[:dim], 1, *input.shape[dim:]]
    count = input._i.shape[0]
    if dim > count:
        values = fns.unsqueeze(input._v, dim - count + 1)
        return coo(input._i, values, size, input._coalesced)
    zeros = input._i[:1] * 0 if count else None
    if zeros is None:
        refuse("unsqueeze without sparse dimensions", input)
    indices = fns.cat([input._i[:dim], zeros, input._i[dim:]])
    return coo(indices, named(input._v, "Unsqueeze"), size, False)


@handles("squeeze")
def squeeze(input: Any, dim: Any = ...) -> Any:
    """As `torch.squeeze`, of one sparse dimension."""
    if dim is ... or not input.is_sparse:
        refuse("squeeze", input)
    dim = wrap_dim(dim, input.ndim)
    return input if input.shape[dim] != 1 else select(input, dim, 0)


for _name in ("reshape", "flatten", "view", "expand", "repeat", "expand_as"):

    def _fixed(self: Any, *args: Any, name: str = _name, **kwargs: Any) -> Any:
        if name in ("expand", "repeat", "expand_as"):
            raise RuntimeError("expand is unsupported for Sparse tensors")
        raise RuntimeError("reshape is not implemented for sparse tensors")

    handles(_name)(_fixed)


# -- pieces ----------------------------------------------------------------------------


@handles("select")
def select(input: Any, dim: int, index: int) -> Any:
    """As `torch.select`; the values of one element of a dimension."""
    dim = wrap_dim(dim, input.ndim)
    length = input.shape[dim]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size "
            f"{list(input.shape)} at dimension {dim}"
        )
    index %= length
    if not input.is_sparse and not input._batch <= dim < input._batch + 2:
        return _compressed_select(input, dim, index)
    if not input.is_sparse and input._batch:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse "
            "compressed tensors."
        )
    plain = input.to_sparse_coo()
    size = [n for d, n in enumerate(plain.shape) if d != dim]
    count, device = plain._i.shape[0], plain.device
    if dim >= count:
        values = plain._v.select(dim - count + 1, index)
        return coo(plain._i, values, size, plain._coalesced)

    def make(host: np.ndarray) -> Any:
        at = np.nonzero(host[dim] == index)[0]
        rest = np.delete(host, dim, 0)[:, at]
        return placed(rest, device), placed(at, device)

    indices, at = planned(("select", dim, index), make, plain._i)
    values = plain._v.index_select(0, at)
    if count == 1:
        return named(fns.sum(values, 0, dtype=values.dtype), "Select")
    few = values.shape[0] < 2
    return coo(indices, named(values, "Select"), size, plain._coalesced or few)


def _compressed_select(tensor: Any, dim: int, index: int) -> Any:
    """One matrix of a batch, or one element of a dense dimension."""
    size = [n for d, n in enumerate(tensor.shape) if d != dim]
    parts = tensor._outer, tensor._inner
    if dim < tensor._batch:
        parts = (part.select(dim, index) for part in parts)
    else:
        dim += len(tensor._block) - 1  # for the rows and columns, one of places
    values = named(tensor._v.select(dim, index), "Select")
    return compressed(tensor.layout, *parts, values, size)


def _is_integer(index: Any) -> TypeGuard[SupportsIndex]:
    """Whether an index takes a dimension away."""
    if isinstance(index, Tensor):
        return not index.ndim and index.dtype is not dtypes.bool_
    return not isinstance(index, bool) and hasattr(index, "__index__")


@handles("__getitem__")
def getitem(self: Any, index: Any) -> Any:
    """As `Tensor.__getitem__`, by integers, None, and what takes a dimension whole."""
    whole = index if isinstance(index, tuple) else (index,)
    given = sum(one is not None and one is not Ellipsis for one in whole)
    if given > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
    found, dim = self, 0
    for place, one in enumerate(whole):
        if one is Ellipsis:
            dim += self.ndim - given
            continue
        if one is None:
            sparse = is_sparse(found)
            found = unsqueeze(found, dim) if sparse else found.unsqueeze(dim)
            dim += 1
            continue
        length = found.shape[dim]
        if isinstance(one, slice) and one.indices(length) == (0, length, 1):
            dim += 1
        elif _is_integer(one):
            at = operator.index(one)
            if not -length <= at < length:
                raise out_of_bounds(at, place, length)
            sparse = is_sparse(found)
            found = select(found, dim, at) if sparse else found.select(dim, at)
        else:
            refuse("indexing by anything but integers", self)
    if found is self:
        refuse("indexing by slices alone", self)
    return found


@handles("unbind")
def unbind(input: Any, dim: int = 0) -> Any:
    """As `torch.unbind`."""
    return tuple(select(input, dim, i) for i in range(input.shape[dim]))


@handles("__iter__")
def iterate(self: Any) -> Iterator[Any]:
    """The elements of the first dimension."""
    return iter(unbind(self))


@handles("index_select")
def index_select(input: Any, dim: int, index: Any, *, out: Any = None) -> Any:
    """As `torch.index_select`."""
    if out is not None:
        refuse("index_select with out=", input)
    expect_coo("index_select", input)
    dim = wrap_dim(dim, input.ndim)
    length = input.shape[dim]
    size = [*input.shape]
    size[dim] = index.numel()
    count, device = input._i.shape[0], input.device
    if dim >= count:
        values = fns.index_select(input._v, dim - count + 1, index)
        return coo(input._i, values, size, input._coalesced)

    def make(host: np.ndarray, wanted: np.ndarray) -> Any:
        wanted = wanted.reshape(-1)
        bad = wanted[(wanted < -length) | (wanted >= length)]
        if bad.size:
            raise IndexError(
                f"index_select(): index contains {bad[0]} that is out of range for "
                f"tensor of size {list(input.shape)} at dimension {dim}"
            )
        order = np.argsort(host[dim], kind="stable")
        row = host[dim][order]
        begins = np.searchsorted(row, wanted % length, "left")
        counts = np.searchsorted(row, wanted % length, "right") - begins
        steps = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        at = order[np.repeat(begins, counts) + steps]
        places = host[:, at]
        places[dim] = np.repeat(np.arange(len(wanted)), counts)
        return placed(places, device), placed(at.astype(np.int64), device)

    indices, at = planned(("index_select", dim, length), make, input._i, index)
    values = named(input._v.index_select(0, at), "IndexSelect")
    return coo(indices, values, size, input._coalesced and dim == 0)


@handles("narrow_copy")
def narrow_copy(input: Any, dim: int, start: int, length: int) -> Any:
    """As `torch.narrow_copy`."""
    expect_coo("narrow_copy", input)
    if not 0 <= dim < input.ndim:
        raise RuntimeError(
            f"Dimension {dim} out of range. Expecting 0 <= dim < {input.ndim}."
        )
    if start < 0 or length < 0 or start + length > input.shape[dim]:
        raise RuntimeError(
            "Invalid range to narrow. range(start, start+length) must be a subset of "
            f"range(0, {input.shape[dim]})."
        )
    count, device = input._i.shape[0], input.device
    size = [*input.shape]
    size[dim] = length
    if dim >= count:
        values = input._v.narrow(dim - count + 1, start, length)
        return coo(input._i, fns.clone(values), size, input._coalesced)

    def make(host: np.ndarray) -> Any:
        at = np.nonzero((host[dim] >= start) & (host[dim] < start + length))[0]
        places = host[:, at]
        places[dim] -= start
        return placed(places, device), placed(at, device)

    indices, at = planned(("narrow", dim, start, length), make, input._i)
    values = named(input._v.index_select(0, at), "NarrowCopy")
    return coo(indices, values, size, input._coalesced)


# -- several tensors -------------------------------------------------------------------


@handles("cat", "concat", "concatenate")
def cat(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """As `torch.cat`, where all tensors are sparse."""
    if out is not None:
        refuse("cat with out=")
    for position, each in enumerate(tensors):
        if not is_sparse(each):
            if position:
                raise RuntimeError(
                    "Concatenating sparse tensors, but a dense tensor was found at "
                    f"position {position}."
                )
            refuse("cat of dense and sparse tensors")
        expect_coo("cat", each)
    first = tensors[0]
    dim = wrap_dim(dim, first.ndim)
    count = first._i.shape[0]
    size = [*first.shape]
    for position, each in enumerate(tensors[1:], 1):
        theirs = [*each.shape]
        if [*theirs[:dim], *theirs[dim + 1 :]] != [*size[:dim], *size[dim + 1 :]]:
            raise RuntimeError(
                "All tensors must have the same shape: "
                f"{[*first.shape]} (except in the concatenating dimension), but found "
                f"shape: {theirs} at position {position}."
            )
        if each._i.shape[0] != count:
            has, dense = each._i.shape[0], each._v.ndim - 1
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {count}, "
                f"{first._v.ndim - 1}, but tensor at position {position} has {has}, "
                f"{dense}."
            )
        size[dim] += theirs[dim]
    starts = [0, *np.cumsum([each.shape[dim] for each in tensors])[:-1].tolist()]
    if dim >= count:
        parts = []
        for each, start in zip(tensors, starts, strict=True):
            after = size[dim] - start - each.shape[dim]
            zeros = [*each._v.shape], [*each._v.shape]
            zeros[0][dim - count + 1], zeros[1][dim - count + 1] = start, after
            ends = [fns.full(tuple(z), 0, each.dtype, each.device) for z in zeros]
            parts.append(fns.cat([ends[0], each._v, ends[1]], dim - count + 1))
        return coo(fns.cat([e._i for e in tensors], 1), fns.cat(parts), size, False)
    device = first.device

    def make(*hosts: np.ndarray) -> Any:
        moved = [host.copy() for host in hosts]
        for host, start in zip(moved, starts, strict=True):
            host[dim] += start
        return placed(np.concatenate(moved, 1), device)

    indices = planned(("cat", dim, *starts), make, *(e._i for e in tensors))
    return coo(indices, fns.cat([e._v for e in tensors]), size, False)


@handles("stack")
def stack(tensors: Sequence[Any], dim: int = 0, *, out: Any = None) -> Any:
    """As `torch.stack`, where all tensors are sparse."""
    dim = wrap_dim(dim, tensors[0].ndim + 1)
    made = cat([unsqueeze(each, dim) for each in tensors], dim, out=out)
    return made._like(named(made._v, "Stack"))


@handles("vstack", "row_stack")
def vstack(tensors: Sequence[Any]) -> Any:
    """As `torch.vstack`, of sparse matrices."""
    return cat(tensors, 0)


@handles("hstack")
def hstack(tensors: Sequence[Any]) -> Any:
    """As `torch.hstack`, of sparse matrices."""
    return cat(tensors, 1)


# -- sizes that change -----------------------------------------------------------------

_NOT_EMPTY = (
    "{} (from {} to {}) on a non-empty sparse tensor is not supported.\n"
    "You could try the following options:\n"
    "1. If you need an empty sparse tensor of this size, call `x = "
    "torch.sparse_coo_tensor(size)`.\n"
    "2. If you need to resize this tensor, you have the following options:\n"
    "    1. For both sparse and dense dimensions, keep the number of them constant and "
    "the size of them non-shrinking, and then try the same call again.\n"
    "    2. Or, create a new sparse tensor with the correct indices and values from "
    "this sparse tensor."
)


@public(namespaces=(), method=True)
@handles("sparse_resize_")
def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Gives a sparse tensor another size, which holds all its values.

    RuntimeError for a smaller one, unless there are no values.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.sparse_resize_.html

    >>> import torchshim as torch
    >>> x = torch.tensor([5.0]).to_sparse()
    >>> x.sparse_resize_((3,), 1, 0).to_dense()
    tensor([5., 0., 0.])
    """
    expect_coo("sparse_resize_", self)
    shape = _split_size("sparse_resize_", size, sparse_dim, dense_dim)
    if not self._v.shape[0]:
        made = empty_coo(shape, self.dtype, self.device, False, dense_dim)
        made._coalesced = self._coalesced
        return become(self, made)
    parts = (
        ("sparse", tuple(self.shape[: self._i.shape[0]]), shape[:sparse_dim]),
        ("dense", tuple(self._v.shape[1:]), shape[sparse_dim:]),
    )
    for kind, old, new in parts:
        if len(old) != len(new):
            change = f"changing the number of {kind} dimensions"
            raise RuntimeError(_NOT_EMPTY.format(change, len(old), len(new)))
    for kind, old, new in parts:
        if any(n < m for n, m in zip(new, old, strict=True)):
            change = f"shrinking the size of {kind} dimensions"
            raise RuntimeError(_NOT_EMPTY.format(change, [*old], [*new]))
    values, each = self._v, shape[sparse_dim:]
    if each != tuple(values.shape[1:]):
        # The memory keeps what it holds, as in `Tensor.resize_`; zeros come after it.
        more = values.shape[0] * math.prod(each) - values.numel()
        memory = fns.cat([values.reshape(-1), values.new_zeros(more)])
        values = memory.view(values.shape[0], *each)
    return become(self, coo(self._i, values, shape, self._coalesced))


def _split_size(
    name: str, size: Any, sparse_dim: Any, dense_dim: Any
) -> tuple[int, ...]:
    """A size, whose dimensions are as many as sparse and dense ones are named."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(wrong(name, "size", 1, "tuple of ints", size))
    for at, (key, value) in enumerate(
        (("sparse_dim", sparse_dim), ("dense_dim", dense_dim)), 2
    ):
        if value.__class__ is not int:
            raise TypeError(wrong(name, key, at, "int", value))
    shape = size_of(name, (size,))
    if len(shape) != sparse_dim + dense_dim:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(shape)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if any(n < 0 for n in shape):
        raise RuntimeError("numel: integer multiplication overflow")
    return shape


@public(namespaces=(), method=True)
@handles("sparse_resize_and_clear_")
def sparse_resize_and_clear_(
    self: Any, size: Any, sparse_dim: int, dense_dim: int
) -> Any:
    """Gives a sparse tensor another size, without values.

    RuntimeError unless the dimensions of both kinds add up to those of the size.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.sparse_resize_and_clear_.html

    >>> import torchshim as torch
    >>> x = torch.tensor([5.0]).to_sparse()
    >>> x.sparse_resize_and_clear_((2, 3), 1, 1).values().shape
    torch.Size([0, 3])
    """
    expect_coo("sparse_resize_and_clear_", self)
    shape = _split_size("sparse_resize_and_clear_", size, sparse_dim, dense_dim)
    return become(self, empty_coo(shape, self.dtype, self.device, False, dense_dim))


@public(method=True)
@handles("resize_as_sparse_")
def resize_as_sparse_(input: Any, the_template: Any) -> Any:
    """Gives a sparse tensor the size of another, and as many sparse dimensions.

    RuntimeError for a smaller one, unless there are no values, and for other layouts
    than coordinates.

    >>> import torchshim as torch
    >>> x = torch.tensor([5.0]).to_sparse()
    >>> x.resize_as_sparse_(torch.zeros(3).to_sparse()).to_dense()
    tensor([5., 0., 0.])
    """
    template = tensor_argument("resize_as_sparse_", "the_template", 1, the_template)
    expect_coo("resize_as_sparse_", input)
    if is_sparse(template) and not template.is_sparse:
        raise RuntimeError(
            "resize_as_sparse_compressed_: self  expected sparse compressed tensor "
            "layout but got Sparse"
        )
    return _resize_as(input, template)


def _resize_as(tensor: Any, template: Any) -> Any:
    dense = template._v.ndim - 1 if is_sparse(template) else template.ndim
    size = tuple(template.shape)
    return sparse_resize_(tensor, size, template.ndim - dense, dense)


@handles("resize_as_")
def resize_as_(self: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """As `Tensor.resize_as_`: the size of another tensor, which holds all values."""
    if memory_format is not None:
        raise RuntimeError(
            "Unsupported memory format for sparse tensor resize_as_ :"
            + FORMAT_TEXTS[memory_format]
        )
    if not is_sparse(self):
        return self.resize_(the_template.shape)
    if not is_sparse(the_template):
        refuse("resize_as_", self)
    return _resize_as(self, the_template)
