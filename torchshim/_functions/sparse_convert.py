"""Dense tensors as sparse ones and back; the parts of sparse tensors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchshim._core.layout import LAYOUT_TEXTS, strided
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.meta import Size
from torchshim._core.record import local
from torchshim._derived import fns, public
from torchshim._functions._arguments import as_index, tensor_argument, wrong
from torchshim._functions._family import described
from torchshim._functions.composed import host_indices, planned
from torchshim._functions.creation import placed
from torchshim._functions.rebuilding import _rebuild_from_type_v2
from torchshim._functions.sparse_compressed import LAYOUT_NAMES, Compressed, from_coo
from torchshim._functions.sparse_construct import (
    sparse_compressed_tensor,
    sparse_coo_tensor,
)
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

    Of its first `sparse_dim` dimensions (COO), or of its rows (CSR), by `layout`.

    >>> import torchshim as torch
    >>> torch.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    if sparse_dim is not None and (layout is not None or blocksize is not None):
        raise TypeError(
            "to_sparse(): sparse_dim cannot be combined with layout or blocksize"
        )
    if layout is strided:
        raise RuntimeError(
            "to_sparse: conversion from Strided to Strided is not supported; use "
            "to_dense"
        )
    if blocksize is not None or (layout is not None and layout.name[7:] in _BLOCKS):
        raise NotImplementedError(
            "to_sparse(): sparse tensors in blocks are not supported"
        )
    if dense_dim and layout not in (None, COO):
        raise NotImplementedError("to_sparse(): dense_dim with this layout")
    if is_sparse(self):
        if layout is self.layout:
            return self
        layout = COO if layout is None else layout
        return _as_coo(self) if layout is COO else from_coo(_as_coo(self), layout)
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
    made = sparse_from(self, sparse_dim)
    return made if layout in (None, COO) else from_coo(made, layout)


_BLOCKS = ("bsr", "bsc")


def _as_coo(tensor: Any) -> Any:
    return tensor.to_sparse_coo()


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


def _to_layout(name: str) -> None:
    layout = LAYOUTS[name]

    def convert(self: Any, dense_dim: int | None = None) -> Any:
        """NotImplementedError for tensors that are no matrices.

        >>> import torchshim as torch
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
        >>> x.to_sparse_csr().values(), x.to_sparse_csc().values()
        (tensor([2., 3.]), tensor([3., 2.]))
        """
        return to_sparse(self, layout=layout, dense_dim=dense_dim)

    line = f"The matrix in the layout `torch.{name}`."
    described(convert, f"to_{name}", line)
    public(convert, namespaces=(), method=True)
    handles(convert.__name__)(convert)


_to_layout("sparse_csr")
_to_layout("sparse_csc")


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
    return self._v.shape[0]


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
    return self._i.shape[0] if self.is_sparse else 2


@public(namespaces=(), method=True)
@handles("dense_dim")
def dense_dim(self: Any) -> int:
    """How many dimensions each value has; all of them for dense tensors.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.dense_dim.html

    >>> import torchshim as torch
    >>> torch.eye(2).to_sparse(1).dense_dim(), torch.eye(2).dense_dim()
    (1, 2)
    """
    return self.ndim - sparse_dim(self)


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


def _refused(name: str) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Tensor:
        """Blocks are the only layouts that are missing.

        >>> import torchshim as torch
        >>> try:
        ...     torch.eye(2).to_sparse_bsr((1, 1))
        ... except NotImplementedError as error:
        ...     print(str(error).partition(":")[0])
        to_sparse_bsr() is not supported
        """
        raise NotImplementedError(
            f"{name}() is not supported: sparse tensors in blocks are not; use "
            "torch.sparse_csr"
        )

    described(refuse, name, "Not supported: NotImplementedError.")
    if name.startswith("sparse"):
        public(refuse)
    else:
        public(refuse, namespaces=(), method=True)
        handles(name)(refuse)


for _name in (
    "sparse_bsr_tensor",
    "sparse_bsc_tensor",
    "to_sparse_bsr",
    "to_sparse_bsc",
):
    _refused(_name)


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


# -- checks ----------------------------------------------------------------------------


@public
def _validate_sparse_coo_tensor_args(
    indices: Any,
    values: Any,
    size: Any,
    is_coalesced: bool | None = None,
    check_pinning: bool | None = None,
) -> None:
    """Raises RuntimeError where these do not make a tensor in coordinates.

    `check_pinning` finds nothing, as no memory is pinned.

    >>> import torchshim as torch
    >>> i, v = torch.tensor([[0, 1]]), torch.ones(2)
    >>> torch._validate_sparse_coo_tensor_args(i, v, (2,))
    """
    sparse_coo_tensor(
        indices, values, size, check_invariants=True, is_coalesced=is_coalesced
    )


@public
def _validate_sparse_compressed_tensor_args(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any,
    layout: Any,
    check_pinning: bool | None = None,
) -> None:
    """Raises RuntimeError where these do not make a compressed tensor.

    `check_pinning` finds nothing, as no memory is pinned.

    >>> import torchshim as torch
    >>> at, where, v = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
    >>> csr = torch.sparse_csr
    >>> torch._validate_sparse_compressed_tensor_args(at, where, v, (2, 2), csr)
    """
    parts = compressed_indices, plain_indices, values, size
    sparse_compressed_tensor(*parts, layout=layout, check_invariants=True)


def _validation(layout: str) -> None:
    def validate(
        compressed: Any,
        plain: Any,
        values: Any,
        size: Any,
        check_pinning: bool | None = None,
    ) -> None:
        """`check_pinning` finds nothing, as no memory is pinned.

        >>> import torchshim as torch
        >>> at, where, v = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
        >>> torch._validate_sparse_csr_tensor_args(at, where, v, (2, 2))
        """
        parts = compressed, plain, values, size
        _validate_sparse_compressed_tensor_args(*parts, LAYOUTS[layout])

    name = f"_validate_{layout}_tensor_args"
    described(validate, name, f"Raises where these do not make a {layout} tensor.")
    public(validate)


for _layout in LAYOUT_NAMES:
    _validation(_layout)
