"""Compressed sparse matrices: CSR by rows, CSC by columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._derived import public
from torchshim._functions._arguments import warn_once
from torchshim._functions._family import described
from torchshim._functions.composed import planned, set_meta
from torchshim._functions.creation import placed
from torchshim._functions.sparse_tensor import (
    SparseTensor,
    coalesced,
    coo,
    countable,
    handles,
    is_sparse,
    named,
)
from torchshim._tensor import Tensor

#: The names of the compressed and of the plain indices.
LAYOUT_NAMES = {
    "sparse_csr": ("crow_indices", "col_indices"),
    "sparse_csc": ("ccol_indices", "row_indices"),
}
_BETA = (
    "Sparse {} tensor support is in beta state. If you miss a functionality in the "
    "sparse tensor support, please submit a feature request to "
    "https://github.com/pytorch/pytorch/issues. (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/SparseCsrTensorImpl.cpp:49.)"
)


def halves(layout: str) -> tuple[str, str]:
    """What PyTorch's texts call the compressed dimension, and the other."""
    return ("nrows", "ncols") if layout == "sparse_csr" else ("ncols", "nrows")


class Compressed(SparseTensor):
    """A matrix whose values stand row by row, or column by column."""

    __slots__ = ()
    __module__ = "torch"

    is_sparse = False
    # Where each row (column) begins, and the columns (rows).
    _outer: Any
    _inner: Any

    @property
    def is_sparse_csr(self) -> bool:
        return self.layout.name == "sparse_csr"

    def _like(self, values: Any, **changes: Any) -> Any:
        size = changes.get("size", self._tmeta.shape)
        return compressed(self.layout, self._outer, self._inner, values, size)

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        parts = move(self._outer), move(self._inner), move(self._v)
        return compressed(self.layout, *parts, self._tmeta.shape)

    def _parts(self) -> Sequence[tuple[str, Any]]:
        outer, inner = LAYOUT_NAMES[self.layout.name]
        return ((outer, self._outer), (inner, self._inner), ("values", self._v))

    def _places(self) -> Any:
        """The coordinates of the values, in the order of these."""
        by_rows = self.is_sparse_csr
        device = self.device

        def make(outer: Any, inner: Any) -> Any:
            rows = np.repeat(np.arange(len(outer) - 1), np.diff(outer))
            pair = (rows, inner) if by_rows else (inner, rows)
            return placed(np.stack(pair).astype(np.int64), device)

        return planned(("coordinates", by_rows), make, self._outer, self._inner)

    def _coordinates(self) -> Any:
        """The same matrix in coordinates, row by row."""
        by_rows, values = self.is_sparse_csr, named(self._v, "ToSparse")
        made = coo(self._places(), values, self._tmeta.shape, by_rows)
        return made if by_rows else coalesced(made)

    def _transposed(self, node: str) -> Any:
        other = "sparse_csc" if self.is_sparse_csr else "sparse_csr"
        size = self._tmeta.shape[::-1]
        values = named(self._v, node)
        return compressed(LAYOUTS[other], self._outer, self._inner, values, size)


def compressed(
    layout: Any, outer: Any, inner: Any, values: Any, size: Sequence[int]
) -> Any:
    """A compressed matrix, unchecked."""
    warn_once(_BETA.format(layout.name[7:].upper()), key=_BETA)
    made = object.__new__(Compressed)
    made.layout = layout
    made._outer, made._inner = outer, inner
    return set_meta(made, countable(size), values)


def from_coo(tensor: Any, layout: Any) -> Any:
    """A sparse matrix of coordinates in another layout."""
    if tensor.ndim != 2 or tensor._i.shape[0] != 2:
        raise NotImplementedError(
            f"conversion to {layout} is supported for sparse matrices only"
        )
    tensor = coalesced(tensor)
    by_rows = layout.name == "sparse_csr"
    count = tensor.shape[0 if by_rows else 1]
    device = tensor.device

    def make(indices: Any) -> Any:
        outer, inner = indices if by_rows else indices[::-1]
        order = np.lexsort((inner, outer))
        begins = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(outer, minlength=count)[:count], out=begins[1:])
        parts = begins, inner[order], order
        return [placed(part.astype(np.int64), device) for part in parts]

    begins, inner, order = planned(("compress", by_rows, count), make, tensor._i)
    values = tensor._v if by_rows else tensor._v.index_select(0, order)
    node = "ToSparseCsr" if by_rows else "ToSparseCsc"
    return compressed(layout, begins, inner, named(values, node), tensor.shape)


def _part(name: str, layout: str, kind: str) -> None:
    attribute = "_outer" if name[0] == "c" and name != "col_indices" else "_inner"

    def part(self: Any) -> Tensor:
        """RuntimeError for other layouts.

        >>> import torchshim as torch
        >>> x = torch.tensor([[0.0, 2.0], [3.0, 4.0]])
        >>> x.to_sparse_csr().crow_indices(), x.to_sparse_csr().col_indices()
        (tensor([0, 1, 3]), tensor([1, 0, 1]))
        >>> x.to_sparse_csc().ccol_indices(), x.to_sparse_csc().row_indices()
        (tensor([0, 1, 3]), tensor([1, 0, 1]))
        """
        if not is_sparse(self) or self.layout.name != layout:
            texts = {"strided": "Strided", "sparse_coo": "Sparse"}
            got = texts.get(self.layout.name) or "Sparse" + self.layout.name[7:].title()
            raise RuntimeError(
                f"{name} expected sparse {kind} compressed tensor layout but got {got}"
            )
        return getattr(self, attribute).detach()

    line = f"The {name.replace('_', ' ')} of a tensor of `torch.{layout}`."
    described(part, name, line)
    public(part, namespaces=(), method=True)
    handles(name)(part)


_part("crow_indices", "sparse_csr", "row")
_part("col_indices", "sparse_csr", "row")
_part("ccol_indices", "sparse_csc", "column")
_part("row_indices", "sparse_csc", "column")
