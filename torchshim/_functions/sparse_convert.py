"""Dense tensors as sparse ones and back; the parts of sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core.layout import LAYOUT_TEXTS, strided
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.meta import Size
from torchshim._core.record import local
from torchshim._derived import fns, public
from torchshim._functions._arguments import as_index, size_of, tensor_argument, wrong
from torchshim._functions._family import described
from torchshim._functions.composed import host_indices, planned
from torchshim._functions.creation import placed
from torchshim._functions.rebuilding import _rebuild_from_type_v2
from torchshim._functions.sparse_compressed import (
    LAYOUT_NAMES,
    Compressed,
    from_coo,
    from_dense,
    in_blocks,
)
from torchshim._functions.sparse_construct import sparse_coo_tensor
from torchshim._functions.sparse_construct_compressed import sparse_compressed_tensor
from torchshim._functions.sparse_tensor import (
    COO,
    coalesced,
    coo,
    flat,
    handles,
    is_sparse,
    named,
)
from torchshim._tensor import Tensor


def sparse_from(dense: Any, sparse_dim: int) -> Any:
    """The elements of a dense tensor that are not zero, by its first dimensions."""
    shape = tuple(dense.shape)
    mask = fns.ne(dense.detach(), 0)
    if sparse_dim < len(shape):
        mask = mask.flatten(sparse_dim).any(-1)
    if mask.ndim:
        at = np.ascontiguousarray(np.stack(np.nonzero(host_indices(mask))))
    else:
        at = np.zeros((0, int(bool(mask))), np.int64)
    indices = placed(at.astype(np.int64), dense.device)
    values = fns.sparse_mask_values(dense, indices)
    if not sparse_dim:
        values = values[: at.shape[1]]
    return coo(indices, named(values, "ToSparse"), shape, True)


@public(namespaces=(), method=True)
@handles("to_sparse")
def to_sparse(
    self: Any,
    sparse_dim: Any = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """The tensor with only those elements that are not zero.

    Of its first `sparse_dim` dimensions (COO), or as `Tensor.to_sparse_csr` and its
    like, by `layout`.

    >>> import torchshim as torch
    >>> torch.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    if sparse_dim is not None and (layout is not None or blocksize is not None):
        raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
    if layout is strided:
        if is_sparse(self):
            return to_dense(self)
        raise RuntimeError(
            "to_sparse: conversion from Strided to Strided is not supported; use "
            "to_dense"
        )
    layout = COO if layout is None else layout
    if is_sparse(self) or layout is not COO or blocksize is not None:
        if sparse_dim is not None and sparse_dim != _dimensions_by_index(self):
            name = _conversion("to_sparse", self, layout)
            own = "self.sparse_dim()" if self.is_sparse else "2"
            raise RuntimeError(
                f"{name} with sparse_dim argument !={own} is not supported"
            )
        return _converted("to_sparse", self, layout, blocksize, dense_dim)
    if dense_dim is not None:
        _check_dense("dense_to_sparse", dense_dim, self.ndim)
    if sparse_dim is None:
        sparse_dim = self.ndim - (dense_dim or 0)
    elif sparse_dim.__class__ is not int:
        given = as_index(sparse_dim)
        if given is None:
            raise TypeError(wrong("to_sparse", "sparse_dim", 1, "int", sparse_dim))
        sparse_dim = given
    low = 1 if self.ndim else 0
    if not low <= sparse_dim <= self.ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{self.ndim}] range, "
            f"but {sparse_dim} is given"
        )
    return sparse_from(self, sparse_dim)


def _conversion(method: str, tensor: Any, layout: Any) -> str:
    """What PyTorch's texts call a conversion."""
    target = method.removeprefix("to_")
    if not is_sparse(tensor):
        name = f"dense_to_{target}"
    elif tensor.layout is layout:
        name = method
    elif tensor.is_sparse:
        name = f"{'sparse_coo' if target == 'sparse' else 'coo'}_to_{target}"
    else:
        name = f"sparse_compressed_to_{target}"
    kinds = [LAYOUT_TEXTS[each.name] for each in (tensor.layout, layout)]
    return f"{name}: conversion from {kinds[0]} to {kinds[1]}"


def _check_dense(name: str, dense_dim: int, most: int) -> None:
    if not 0 <= dense_dim <= most:
        raise RuntimeError(
            f"{name}: dense_dim argument must be in [0,{most}] range, but {dense_dim} "
            "is given"
        )


def _blocksize(name: str, given: Any, size: Sequence[int]) -> tuple[int, ...]:
    """The size of blocks, which are to fill matrices of a size."""
    block = tuple(given)
    if len(block) != 2:
        raise RuntimeError(
            f"{name}: blocksize needs to be a tuple of size 2, but got {len(block)}"
        )
    if min(block) <= 0:
        raise RuntimeError(
            f"{name}: blocksize needs to be positive, but got {list(block)}"
        )
    if any(n % b for n, b in zip(size, block, strict=True)):
        raise RuntimeError(
            f"{name}: tensor sparse size ({size[0]},{size[1]}) must be divisible by "
            f"given blocksize ({block[0]},{block[1]})"
        )
    return block


def _converted(
    method: str, tensor: Any, layout: Any, blocksize: Any, dense_dim: int | None
) -> Any:
    """A tensor in another layout, of dense ones a compressed one."""
    text = _conversion(method, tensor, layout)
    name = text.partition(":")[0]
    if in_blocks(layout) is not (blocksize is not None):
        with_or_not = "without" if blocksize is None else "with"
        raise RuntimeError(
            f"{text} {with_or_not} blocksize argument given is not supported"
        )
    if blocksize is not None:
        one = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
        blocksize = size_of(method, (one,), name="blocksize")
    if not is_sparse(tensor):
        return _dense_as(name, tensor, layout, blocksize, dense_dim)
    if dense_dim is not None:
        raise RuntimeError(f"{text} with dense_dim argument given is not supported")
    if tensor.is_sparse:
        if layout is COO:
            return tensor
        if tensor._i.shape[0] != 2:
            raise RuntimeError(
                f"{text} for input tensors with sparse_dim()!=2 is not supported"
            )
        block = _blocksize(name, blocksize, tensor.shape[:2]) if blocksize else ()
        return from_coo(tensor, layout, block)
    if layout is COO:
        return tensor._coordinates()
    batch, block = tensor._batch, tensor._block
    if block and not in_blocks(layout):
        target = layout.name.removeprefix("sparse_")
        raise RuntimeError(
            f"sparse_compressed_to_sparse_{target}: expected SparseCsr or SparseCsc "
            f"layout but got {LAYOUT_TEXTS[tensor.layout.name]}"
        )
    if block and tuple(blocksize) != block:
        raise RuntimeError(
            f"{text} with blocksize changed from {list(block)} to {list(blocksize)} is "
            "not supported"
        )
    if layout is tensor.layout:
        return tensor
    if blocksize and not block:
        if batch:
            raise RuntimeError(f"{text} for batched inputs is not supported")
        block = _blocksize(name, blocksize, tensor.shape[:2])
    return from_coo(tensor._coordinates(), layout, block)


def _dense_as(
    name: str, dense: Any, layout: Any, blocksize: Any, dense_dim: int | None
) -> Any:
    """A dense tensor as a compressed one; the last dimensions may stay dense."""
    if dense_dim is not None and not blocksize:
        _check_dense(name, dense_dim, dense.ndim - 2)
    dense_dim = dense_dim or 0
    cut = dense.ndim - dense_dim
    if cut < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-dense.ndim}, "
            f"{dense.ndim - 1}], but got {-dense_dim - 2})"
        )
    block = _blocksize(name, blocksize, dense.shape[cut - 2 : cut]) if blocksize else ()
    if not math.prod(dense.shape[: cut - 2]):
        raise RuntimeError(
            f"to_{layout.name}: Expected product of batch dimensions to be non-zero."
        )
    mask = fns.ne(dense.detach(), 0)
    if dense_dim:
        mask = mask.flatten(cut).any(-1)
    return from_dense(dense, mask, layout, block)


def _dimensions_by_index(tensor: Any) -> int:
    return tensor._i.shape[0] if tensor.is_sparse else 2


@public(namespaces=(), method=True)
@handles("to_sparse_coo")
def to_sparse_coo(self: Any) -> Any:
    """The tensor in coordinates, see `Tensor.to_sparse`.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.to_sparse_coo.html

    >>> import torchshim as torch
    >>> torch.tensor([[0.0, 2.0]]).to_sparse_csr().to_sparse_coo().indices()
    tensor([[0],
            [1]])
    """
    if isinstance(self, Compressed):
        return self._coordinates()
    return self if is_sparse(self) else to_sparse(self)


def _to_layout(name: str, blocks: bool) -> None:
    layout = LAYOUTS[name]

    def convert(self: Any, dense_dim: int | None = None) -> Any:
        """Dimensions before the last two that are not dense are a batch.

        RuntimeError where matrices of a batch differ in how many values they have.

        >>> import torchshim as torch
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
        >>> x.to_sparse_csr().values(), x.to_sparse_csc().values()
        (tensor([2., 3.]), tensor([3., 2.]))
        """
        return _converted(f"to_{name}", self, layout, None, dense_dim)

    def convert_blocks(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
        """Its values are blocks of that size, of which not all is zero.

        Dimensions before the last two that are not dense are a batch. RuntimeError
        where blocks do not fill the matrix, or matrices differ in how many they have.

        >>> import torchshim as torch
        >>> x = torch.tensor([[0.0, 2.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
        >>> x.to_sparse_bsr((2, 2)).values(), x.to_sparse_bsc((1, 2)).row_indices()
        (tensor([[[0., 2.],
                 [3., 0.]]]), tensor([0, 1]))
        """
        return _converted(f"to_{name}", self, layout, blocksize, dense_dim)

    made = convert_blocks if blocks else convert
    line = f"The matrix in the layout `torch.{name}`."
    described(made, f"to_{name}", line)
    public(made, namespaces=(), method=True)
    handles(made.__name__)(made)


for _layout in LAYOUT_NAMES:
    _to_layout(_layout, in_blocks(LAYOUTS[_layout]))


@public(namespaces=(), method=True)
@handles("to_dense")
def to_dense(
    self: Any, dtype: Any = None, *, masked_grad: bool | None = None
) -> Tensor:
    """The tensor with all its elements; itself if it is dense.

    The gradient of a sparse tensor is that of the elements it has a value for, which
    `masked_grad=False`, not supported, would change.

    >>> import torchshim as torch
    >>> torch.tensor([3.0, 0.0]).to_sparse().to_dense()
    tensor([3., 0.])
    """
    if not is_sparse(self):
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    if masked_grad is False and self.requires_grad and local.rec.grad:
        raise NotImplementedError(
            "to_dense(): masked_grad=False is not supported for sparse tensors"
        )
    return fns.sparse_to_dense(*flat(to_sparse_coo(self)), tuple(self.shape))


# -- parts -----------------------------------------------------------------------------


def expect_coo(name: str, tensor: Any) -> None:
    """Raises for a tensor that is not in coordinates."""
    if tensor.layout is not COO:
        raise RuntimeError(
            f"{name} expected sparse coordinate tensor layout but got "
            f"{LAYOUT_TEXTS[tensor.layout.name]}"
        )


@public(namespaces=(), method=True)
@handles("coalesce")
def coalesce(self: Any) -> Any:
    """The tensor with one value for each element; itself if it is so already.

    Values for the same element are added. RuntimeError for other layouts.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.coalesce.html

    >>> import torchshim as torch
    >>> x = torch.sparse_coo_tensor([[1, 1]], [2.0, 3.0], (3,))
    >>> x.coalesce().values(), x.is_coalesced()
    (tensor([5.]), False)
    """
    expect_coo("coalesce", self)
    return coalesced(self)


@public(namespaces=(), method=True)
@handles("is_coalesced")
def is_coalesced(self: Any) -> bool:
    """Whether the tensor is known to have one value for each element, in order.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.is_coalesced.html

    >>> import torchshim as torch
    >>> torch.eye(2).to_sparse().is_coalesced()
    True
    """
    expect_coo("is_coalesced", self)
    return self._coalesced


@public(namespaces=(), method=True)
@handles("indices")
def indices(self: Any) -> Tensor:
    """The index tensor of a coalesced tensor.

    Of shape (sparse dimensions, number of values), int64. RuntimeError for others.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.indices.html

    >>> import torchshim as torch
    >>> torch.tensor([[0.0, 2.0]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    expect_coo("indices", self)
    if not self._coalesced:
        raise RuntimeError(
            "Cannot get indices on an uncoalesced tensor, please call .coalesce() first"
        )
    return self._i.detach()


@public(namespaces=(), method=True)
@handles("values")
def values(self: Any) -> Tensor:
    """The values of a coalesced or compressed tensor.

    RuntimeError for others.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.values.html

    >>> import torchshim as torch
    >>> torch.tensor([[0.0, 2.0]]).to_sparse().values()
    tensor([2.])
    """
    if not is_sparse(self):
        raise RuntimeError("values expected sparse tensor layout but got Strided")
    if self.is_sparse and not self._coalesced:
        raise RuntimeError(
            "Cannot get values on an uncoalesced tensor, please call .coalesce() first"
        )
    return named(self._v, "Values") if self.requires_grad else self._v.detach()


def _parts_of(tensor: Any, name: str) -> Any:
    if tensor.layout is not COO:
        raise NotImplementedError(
            f"{name}() is for sparse tensors in coordinates, not {tensor.layout}"
        )
    return tensor


@public(namespaces=(), method=True)
@handles("_indices")
def _indices(self: Any) -> Tensor:
    """The index tensor, coalesced or not."""
    return _parts_of(self, "_indices")._i.detach()


@public(namespaces=(), method=True)
@handles("_values")
def _values(self: Any) -> Tensor:
    """The values, coalesced or not, without history."""
    return _parts_of(self, "_values")._v.detach()


@public(namespaces=(), method=True)
@handles("_nnz")
def _nnz(self: Any) -> int:
    """How many values a sparse tensor has."""
    if not is_sparse(self):
        raise NotImplementedError("_nnz() is for sparse tensors, not torch.strided")
    return self._v.shape[0] if self.is_sparse else self._inner.shape[-1]


@public(namespaces=(), method="_dimI")
@handles("_dimI")
def _dims_of_indices(self: Any) -> int:
    """How many dimensions the indices are of."""
    return _parts_of(self, "_dimI")._i.shape[0]


@public(namespaces=(), method="_dimV")
@handles("_dimV")
def _dims_of_values(self: Any) -> int:
    """How many dimensions each value has."""
    return _parts_of(self, "_dimV")._v.ndim - 1


@public(namespaces=(), method=True)
@handles("_coalesced_")
def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Says whether the tensor has one value for each element, in order."""
    _parts_of(self, "_coalesced_")._coalesced = bool(coalesced)
    return self


@public(namespaces=(), method=True)
@handles("sparse_dim")
def sparse_dim(self: Any) -> int:
    """How many dimensions the indices are of; 0 for dense tensors.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.sparse_dim.html

    >>> import torchshim as torch
    >>> torch.eye(2).to_sparse(1).sparse_dim(), torch.eye(2).sparse_dim()
    (1, 0)
    """
    if not is_sparse(self):
        return 0
    return _dimensions_by_index(self)


@public(namespaces=(), method=True)
@handles("dense_dim")
def dense_dim(self: Any) -> int:
    """How many dimensions each value has; all of them for dense tensors.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.dense_dim.html

    >>> import torchshim as torch
    >>> torch.eye(2).to_sparse(1).dense_dim(), torch.eye(2).dense_dim()
    (1, 2)
    """
    batch = 0 if not is_sparse(self) or self.is_sparse else self._batch
    return self.ndim - batch - sparse_dim(self)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Any:
    """A sparse tensor out of its parts, as files and pickles have it."""
    if layout is COO:
        indices, values, size, *rest = data
        return sparse_coo_tensor(
            indices,
            values,
            size,
            check_invariants=True,
            is_coalesced=rest[0] if rest else None,
        )
    if getattr(layout, "name", None) in LAYOUT_NAMES:
        given = [
            tensor_argument("_rebuild_sparse_tensor", "data", 2, d) for d in data[:3]
        ]
        return sparse_compressed_tensor(
            *given, data[3], layout=layout, check_invariants=True
        )
    raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")


@handles("__reduce_ex__")
def _reduce_ex(self: Any, proto: Any) -> Any:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user support being pickled: "
            "detach() the sparse tensor first"
        )
    parts = tuple(part.detach() for _, part in self._parts())
    data: tuple[Any, ...] = (*parts, Size(self.shape))
    if self.is_sparse:
        data = (*data, self._coalesced)
    args = self.layout, data
    state = dict(self._notes(self._moved(lambda part: part)))
    if state:
        return _rebuild_from_type_v2, (_rebuild_sparse_tensor, None, args, state)
    return _rebuild_sparse_tensor, args


# -- broadcasting ----------------------------------------------------------------------


@public
@handles("_sparse_broadcast_to")
def _sparse_broadcast_to(self: Any, size: Any) -> Any:
    """A tensor of coordinates repeated along new dimensions and those of length 1.

    RuntimeError for a size that its own does not broadcast to. Each value comes once
    for each of its new places, one after the other.

    >>> import torchshim as torch
    >>> x = torch.tensor([[0.0], [2.0]]).to_sparse()
    >>> torch._sparse_broadcast_to(x, (2, 2)).to_dense()
    tensor([[0., 0.],
            [2., 2.]])
    """
    expect_coo("_sparse_broadcast_to", self)
    old, new = tuple(self.shape), tuple(size)
    extra = len(new) - len(old)
    if extra < 0:
        raise RuntimeError(
            "input not broadcastable to size with smaller dimensionality"
        )
    for d, (have, want) in enumerate(zip(old, new[extra:], strict=True)):
        if have not in (1, want):
            raise RuntimeError(
                f"The input's length {have} at dimension {d} does not broadcast over "
                f"the requested shape of length {want} at dimension {extra + d}"
            )
    count = self._i.shape[0]
    spread = [d for d in range(extra + count) if d < extra or old[d - extra] != new[d]]
    device, times = self.device, math.prod(new[d] for d in spread)

    def make(host: np.ndarray) -> Any:
        each = np.indices([new[d] for d in spread]).reshape(len(spread), times)
        places = np.zeros((extra + count, host.shape[1] * times), np.int64)
        places[extra:] = np.repeat(host, times, 1)
        places[spread] = np.tile(each, host.shape[1])
        at = np.repeat(np.arange(host.shape[1]), times)
        return placed(places, device), placed(at, device)

    indices, at = planned(("broadcast", old, new), make, self._i)
    values = self._v.expand(-1, *new[extra + count :]).index_select(0, at)
    # In order as before where only the last dimensions are repeated.
    kept = [d for d in range(extra + count) if d not in spread]
    ordered = not spread or not kept or max(kept) < spread[0]
    return coo(indices, values, new, self._coalesced and ordered)
