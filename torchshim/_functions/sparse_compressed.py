"""Compressed sparse tensors: by rows (CSR, BSR) or columns (CSC, BSC).

Each of a batch of matrices has its lines' begins and as many places as the others. A
value is an element, or a block of them (BSR, BSC), with the dense dimensions last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._derived import fns, public
from torchshim._functions._arguments import warn_once
from torchshim._functions._family import described
from torchshim._functions.composed import host_indices, planned, set_meta
from torchshim._functions.creation import placed, zeros
from torchshim._functions.sparse_tensor import (
    SparseTensor,
    coalesced,
    coo,
    countable,
    handles,
    is_sparse,
    keys_of,
    named,
)
from torchshim._tensor import Tensor

_BY_ROWS = ("crow_indices", "col_indices")
_BY_COLUMNS = ("ccol_indices", "row_indices")
#: The names of the compressed and of the plain indices.
LAYOUT_NAMES = {
    "sparse_csr": _BY_ROWS,
    "sparse_csc": _BY_COLUMNS,
    "sparse_bsr": _BY_ROWS,
    "sparse_bsc": _BY_COLUMNS,
}
_TRANSPOSED = {
    "sparse_csr": "sparse_csc",
    "sparse_csc": "sparse_csr",
    "sparse_bsr": "sparse_bsc",
    "sparse_bsc": "sparse_bsr",
}
_BETA = (
    "Sparse {} tensor support is in beta state. If you miss a functionality in the "
    "sparse tensor support, please submit a feature request to "
    "https://github.com/pytorch/pytorch/issues. (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/SparseCsrTensorImpl.cpp:49.)"
)


def by_rows(layout: Any) -> bool:
    """Whether it is the rows that are compressed."""
    return LAYOUT_NAMES[layout.name] is _BY_ROWS


def in_blocks(layout: Any) -> bool:
    """Whether values are blocks."""
    return layout.name in ("sparse_bsr", "sparse_bsc")


def halves(layout: Any) -> tuple[str, str]:
    """What PyTorch's texts call the compressed dimension, and the other."""
    return ("nrows", "ncols") if by_rows(layout) else ("ncols", "nrows")


class Compressed(SparseTensor):
    """Matrices whose values stand row by row, or column by column."""

    __slots__ = ()
    __module__ = "torch"

    is_sparse = False
    # Where each row (column) begins, and the columns (rows).
    _outer: Any
    _inner: Any

    @property
    def is_sparse_csr(self) -> bool:
        return self.layout.name == "sparse_csr"

    @property
    def _batch(self) -> int:
        """How many dimensions the batch has."""
        return self._outer.ndim - 1

    @property
    def _block(self) -> tuple[int, ...]:
        """The size of blocks, () where values are elements."""
        if not in_blocks(self.layout):
            return ()
        return tuple(self._v.shape[self._batch + 1 : self._batch + 3])

    def _like(self, values: Any, **changes: Any) -> Any:
        size = changes.get("size", self._tmeta.shape)
        return compressed(self.layout, self._outer, self._inner, values, size)

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        parts = move(self._outer), move(self._inner), move(self._v)
        return compressed(self.layout, *parts, self._tmeta.shape)

    def _parts(self) -> Sequence[tuple[str, Any]]:
        outer, inner = LAYOUT_NAMES[self.layout.name]
        return ((outer, self._outer), (inner, self._inner), ("values", self._v))

    def _flat(self) -> Any:
        """The values of single elements, in the order of `_places`."""
        dims = self._batch + len(self._block)
        return fns.flatten(self._v, 0, dims) if dims else self._v

    def _shaped(self, elements: Any) -> Any:
        """Values of single elements, arranged as those of this tensor are."""
        dims = self._batch + len(self._block)
        if not dims:
            return elements
        return elements.reshape(*self._v.shape[: dims + 1], *elements.shape[1:])

    def _places(self) -> Any:
        """The coordinates of the elements that have values, in the order of these."""
        rows, block, device = by_rows(self.layout), self._block, self.device

        def make(outer: Any, inner: Any) -> Any:
            return placed(_coordinates(outer, inner, rows, block), device)

        return planned(("coordinates", rows, block), make, self._outer, self._inner)

    def _coordinates(self) -> Any:
        """The same elements in coordinates, in the order of the values."""
        values = named(self._flat(), "ToSparse")
        return coo(self._places(), values, self._tmeta.shape, self.is_sparse_csr)

    def _transposed(self, node: str) -> Any:
        """Each matrix transposed."""
        at, size = self._batch, [*self._tmeta.shape]
        size[at], size[at + 1] = size[at + 1], size[at]
        values = self._v
        if in_blocks(self.layout):
            values = fns.transpose(values, at + 1, at + 2)
        layout = LAYOUTS[_TRANSPOSED[self.layout.name]]
        return compressed(layout, self._outer, self._inner, named(values, node), size)


def compressed(
    layout: Any, outer: Any, inner: Any, values: Any, size: Sequence[int]
) -> Any:
    """A compressed tensor, unchecked."""
    warn_once(_BETA.format(layout.name[7:].upper()), key=_BETA)
    made = object.__new__(Compressed)
    made.layout = layout
    made._outer, made._inner = outer, inner
    return set_meta(made, countable(size), values)


# -- patterns --------------------------------------------------------------------------


def _coordinates(
    outer: np.ndarray, inner: np.ndarray, rows: bool, block: tuple[int, ...]
) -> np.ndarray:
    """The coordinates of the elements of a pattern, batches first."""
    batch = outer.shape[:-1]
    begins = outer.reshape(-1, outer.shape[-1])
    lines = np.arange(begins.shape[1] - 1)
    none = np.zeros(0, np.int64)
    line = np.concatenate([none, *(np.repeat(lines, np.diff(b)) for b in begins)])
    across = inner.reshape(-1)
    which = np.indices(batch).reshape(len(batch), math.prod(batch))
    before = np.repeat(which, inner.shape[-1], 1)
    pair = np.stack((line, across) if rows else (across, line))
    if block:
        # Each block's corner, and its elements from there.
        steps = np.indices(block).reshape(2, -1)
        corners = pair * np.array(block)[:, None]
        pair = (corners[:, :, None] + steps[:, None]).reshape(2, -1)
        before = np.repeat(before, steps.shape[1], 1)
    return np.concatenate([before, pair]).astype(np.int64)


def _arranged(
    places: np.ndarray, size: Sequence[int], layout: Any, block: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pattern that holds places: begins, plain indices, and which place is where.

    What a block has besides its places is numbered as one place more than there are.
    """
    batch, sizes = len(places) - 2, np.array(size[-2:])
    high, wide = block or (1, 1)
    row, column = places[batch:]
    lines, across = sizes // (high, wide)
    line, other = row // high, column // wide
    if not by_rows(layout):
        lines, across, line, other = across, lines, other, line
    matrix = keys_of(places[:batch], size[:batch])
    found, which = np.unique(
        (matrix * lines + line) * across + other, return_inverse=True
    )
    line, other = np.divmod(found, max(across, 1))
    matrices = math.prod(size[:batch])
    counts = np.bincount(line, minlength=matrices * lines)
    counts = counts.reshape(*size[:batch], lines)
    if (counts.sum(-1) != len(found) // max(matrices, 1)).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    begins = np.zeros((*size[:batch], lines + 1), np.int64)
    np.cumsum(counts, -1, out=begins[..., 1:])
    at = np.full(len(found) * high * wide, places.shape[1])
    slot = (which.reshape(-1) * high + row % high) * wide + column % wide
    at[slot] = np.arange(places.shape[1])
    inner = other.reshape(*size[:batch], len(found) // max(matrices, 1))
    return begins, inner, at


def from_coo(tensor: Any, layout: Any, block: tuple[int, ...] = ()) -> Any:
    """A sparse tensor of coordinates in a compressed layout.

    All sparse dimensions but the last two are the batch.
    """
    tensor = coalesced(tensor)
    size, device = tuple(tensor.shape[: tensor._i.shape[0]]), tensor.device

    def make(places: np.ndarray) -> Any:
        begins, inner, at = _arranged(places, size, layout, block)
        same = np.array_equal(at, np.arange(places.shape[1]))
        parts = begins, inner, at
        begins, inner, at = (placed(part.astype(np.int64), device) for part in parts)
        return begins, inner, None if same else at

    key = "compress", layout.name, block, size
    begins, inner, at = planned(key, make, tensor._i)
    values = tensor._v
    if at is not None:
        if block:
            one = 1, *values.shape[1:]
            nothing = fns.full(one, 0, values.dtype, values.device)
            values = fns.cat([values, nothing])
        values = fns.index_select(values, 0, at)
    return _made(layout, begins, inner, values, block, tensor.shape)


def from_dense(tensor: Any, mask: Any, layout: Any, block: tuple[int, ...] = ()) -> Any:
    """The elements of a dense tensor, by a mask of those to be there."""
    host, device = host_indices(mask), tensor.device
    places = np.stack(np.nonzero(host))
    begins, inner, _ = _arranged(places, host.shape, layout, block)
    where = _coordinates(begins, inner, by_rows(layout), block)
    values = fns.sparse_mask_values(tensor, placed(where, device))
    begins, inner = (placed(part.astype(np.int64), device) for part in (begins, inner))
    return _made(layout, begins, inner, values, block, tensor.shape)


def _made(
    layout: Any,
    begins: Any,
    inner: Any,
    elements: Any,
    block: tuple[int, ...],
    size: Sequence[int],
) -> Any:
    """A compressed tensor of the values of its elements."""
    values = elements
    if block or inner.ndim > 1:
        values = elements.reshape(*inner.shape, *block, *elements.shape[1:])
    node = f"ToSparse{layout.name[7:].title()}"
    return compressed(layout, begins, inner, named(values, node), size)


def alike(made: Any, template: Any) -> Any:
    """A tensor of coordinates in the layout of another one, with its blocks."""
    if template.is_sparse:
        return made
    return from_coo(made, template.layout, template._block)


def without_values(
    tensor: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """A compressed tensor of the same size and blocks, zero everywhere."""
    batch = tensor._batch
    options = {"dtype": tensor.dtype if dtype is None else dtype}
    options["device"] = tensor.device if device is None else device
    shape = tensor._v.shape
    size = (*shape[:batch], 0, *shape[batch + 1 :])
    values = zeros(size, requires_grad=requires_grad, **options)
    outer, inner = (t.to(values.device) for t in (tensor._outer, tensor._inner))
    outer, inner = outer * 0, inner.narrow(-1, 0, 0)
    return compressed(tensor.layout, outer, inner, values, tensor._tmeta.shape)


def check_copied(target: Any, source: Any) -> None:
    """RuntimeError unless one tensor can take the values of another of its layout."""
    if target._nnz() != source._nnz():
        raise RuntimeError(
            "torch.copy_: only sparse compressed tensors with the same number of "
            "specified elements are supported."
        )
    dim = target._batch + (not by_rows(target.layout))
    lengths = [t.shape[dim] for t in (target, source)]
    if lengths[0] != lengths[1]:
        raise RuntimeError(
            "torch.copy_: expected shapes of self and src to match along dimension "
            f"{dim} for {LAYOUT_TEXTS[target.layout.name]} layout but the "
            "corresponding dimensions of self and src are "
            f"{lengths[0]} and {lengths[1]}, respectively."
        )
    blocks = list(target._block), list(source._block)
    if blocks[0] != blocks[1]:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different block "
            "sizes is not supported. self and src block sizes are "
            f"{blocks[0]} and {blocks[1]}, respectively."
        )


# -- parts -----------------------------------------------------------------------------


def _part(name: str, layouts: Sequence[str], kind: str) -> None:
    attribute = "_outer" if name in ("crow_indices", "ccol_indices") else "_inner"

    def part(self: Any) -> Tensor:
        """RuntimeError for other layouts.

        >>> import torchshim as torch
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 4.0]])
        >>> x.to_sparse_csr().crow_indices(), x.to_sparse_csr().col_indices()
        (tensor([0, 1, 3]), tensor([1, 0, 1]))
        >>> x.to_sparse_csc().ccol_indices(), x.to_sparse_csc().row_indices()
        (tensor([0, 1, 3]), tensor([1, 0, 1]))
        """
        if not is_sparse(self) or self.layout.name not in layouts:
            raise RuntimeError(
                f"{name} expected sparse {kind} compressed tensor layout but got "
                f"{LAYOUT_TEXTS[self.layout.name]}"
            )
        return getattr(self, attribute).detach()

    texts = " or ".join(f"`torch.{layout}`" for layout in layouts)
    line = f"The {name.replace('_', ' ')} of a tensor of {texts}."
    described(part, name, line)
    public(part, namespaces=(), method=True)
    handles(name)(part)


for _names, _layouts, _kind in (
    (_BY_ROWS, ("sparse_csr", "sparse_bsr"), "row"),
    (_BY_COLUMNS, ("sparse_csc", "sparse_bsc"), "column"),
):
    for _name in _names:
        _part(_name, _layouts, _kind)
