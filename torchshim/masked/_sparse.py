"""Masked reductions of sparse tensors: elements without a value are left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core.layout import NAMES
from torchshim._derived import fns
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.sparse_tensor import coalesced, coo, keys_of
from torchshim._tensor import Tensor

CSR = NAMES["sparse_csr"]
#: The reductions that take sparse tensors, and what they need a mask for.
LAYOUTS = {
    "sum": ("strided, sparse_coo or sparse_csr", ()),
    "prod": ("strided, sparse_coo or sparse_csr", ("sparse_coo", "sparse_csr")),
    "amax": ("strided, sparse_coo or sparse_csr", ("sparse_coo", "sparse_csr")),
    "amin": ("strided, sparse_coo or sparse_csr", ("sparse_coo", "sparse_csr")),
    "mean": ("strided or sparse_csr", ("sparse_csr",)),
}


def where(mask: Any, input: Any, fill_value: Any) -> Any:
    """The elements that a sparse mask chooses: zero where the input has no value.

    Within dense dimensions the others are the fill value.
    """
    if input.layout is CSR:
        return where(mask.to_sparse(), input.to_sparse(), fill_value).to_sparse_csr()
    input, mask = coalesced(input), coalesced(mask)
    on = mask._v.flatten(1).any(1) if mask._v.ndim > 1 else mask._v
    of_mask = on.nonzero()[:, 0]
    indices = mask._i.index_select(1, of_mask)
    size = tuple(input.shape[: len(indices)])

    def make(given: np.ndarray, asked: np.ndarray) -> tuple[Any, bool]:
        have, want = keys_of(given, size), keys_of(asked, size)
        at = np.searchsorted(have, want)
        found = np.append(have, -1)[at] == want
        return placed(np.where(found, at, len(have)), input.device), bool(found.all())

    at, complete = planned(("chosen", size), make, input._i, indices)
    values = input._v
    if mask._v.ndim > 1:
        chosen = values if complete else _with_zero(values)
        there = mask._v.index_select(0, of_mask)
        if not complete:
            there = there | (at == len(values)).view(-1, *[1] * (values.ndim - 1))
        values = fns.where(there, chosen.index_select(0, at), fill_value)
    else:
        values = (values if complete else _with_zero(values)).index_select(0, at)
    return coo(indices, values, input.shape, True)


def _with_zero(values: Any) -> Any:
    return fns.cat([values, values.new_zeros(1, *values.shape[1:])])


def reduced(
    name: str,
    input: Any,
    dims: Sequence[int],
    keepdim: bool,
    dtype: Any,
    start: Callable[[Any], Any],
) -> Tensor:
    """A reduction over the elements that have values, as a sparse tensor.

    `start`: what the reduction of nothing is, of a dtype.
    """
    if input.layout is not CSR:
        return _reduced_coo(name, input, dims, keepdim, dtype, start)
    if not keepdim:
        error = RuntimeError if name in ("sum", "prod") else AssertionError
        raise error(
            "reduction operations on CSR tensors with keepdim=False is unsupported"
        )
    x = input.to_sparse_coo()
    if len(dims) < 2:
        return coalesced(
            _reduced_coo(name, x, dims, True, dtype, start)
        ).to_sparse_csr()
    # As PyTorch's, the result of a matrix without values has no columns.
    if not len(x._v):
        empty = coo(x._i, x._v.to(dtype=dtype), (1, 0), True)
        return empty.to_sparse_csr()
    value = getattr(x._v.to(dtype=dtype), name)(0).view(1)
    corner = placed(np.zeros((2, 1), np.int64), input.device)
    return coo(corner, value, (1, 1), True).to_sparse_csr()


def _reduced_coo(
    name: str,
    x: Any,
    dims: Sequence[int],
    keepdim: bool,
    dtype: Any,
    start: Callable[[Any], Any],
) -> Tensor:
    count, values = len(x._i), x._v.to(dtype=dtype)
    dims = [d for d in dims if d < x.ndim]  # a scalar has none
    if dense := [d - count + 1 for d in dims if d >= count]:
        if name != "sum":
            raise NotImplementedError(
                f"masked {name} along dense dimensions of a sparse tensor"
            )
        values = values.sum(dense, keepdim)
    size = [1 if d in dims else n for d, n in enumerate(x.shape)]
    if not keepdim:
        size = [n for d, n in enumerate(x.shape) if d not in dims]
    if all(d in dims for d in range(count)):
        if name in ("amax", "amin") and not len(values):
            values = start(values)
        else:
            values = getattr(values, name)(0)
        for _ in range(count if keepdim else 0):
            values = values.unsqueeze(0)
        return values.to(dtype=dtype).to_sparse()

    def make(host: np.ndarray) -> tuple[Any, Any, int]:
        kept = host.copy()
        kept[[d for d in dims if d < count]] = 0
        if not keepdim:
            kept = host[[d for d in range(count) if d not in dims]]
        found, groups = np.unique(kept, axis=1, return_inverse=True)
        device = x.device
        return placed(found, device), placed(groups.reshape(-1), device), len(found[0])

    key = "reduced", tuple(dims), keepdim
    indices, groups, number = planned(key, make, x._i)
    if len(values):
        into = values.new_zeros(number, *values.shape[1:])
        places = groups.view(-1, *[1] * (values.ndim - 1)).expand(values.shape)
        values = into.scatter_reduce(0, places, values, name, include_self=False)
    return coo(indices, values, size, len(values) < 2)
