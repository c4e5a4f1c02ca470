"""Sums, norms and softmax of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._derived import fns, public
from torchshim._functions._arguments import dtype_of
from torchshim._functions.composed import planned
from torchshim._functions.creation import placed
from torchshim._functions.sparse_compressed import alike
from torchshim._functions.sparse_convert import expect_coo
from torchshim._functions.sparse_shape import reordered, unsqueeze
from torchshim._functions.sparse_tensor import (
    coalesced,
    coo,
    handles,
    is_sparse,
    keys_of,
    named,
    refuse,
)
from torchshim._ops.view_geometry import wrap_dim
from torchshim._tensor import Tensor

# -- sums ------------------------------------------------------------------------------


def _dims(dim: Any, ndim: int) -> list[int]:
    if dim is None or dim == ():
        return list(range(ndim))
    found = [wrap_dim(d, ndim) for d in ((dim,) if isinstance(dim, int) else dim)]
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return found


def _summed(input: Any, dims: list[int], node: str) -> Any:
    """The sum over some dimensions: sparse if any sparse one stays."""
    count = input._i.shape[0]
    dense = [d - count + 1 for d in dims if d >= count]
    values = fns.sum(input._v, tuple(dense)) if dense else input._v
    kept = [d for d in range(count) if d not in dims]
    size = [n for d, n in enumerate(input.shape) if d not in dims]
    if not kept:
        return values.sum(0)
    if len(kept) == count:
        return coo(input._i, named(values, node), size, input._coalesced)
    plain = reordered(input, range(count), node)
    indices = planned(
        ("rows", tuple(kept)),
        lambda host: placed(host[kept], input.device),
        plain._i,
    )
    made = coalesced(coo(indices, values, size, False))
    return coo(made._i, named(made._v, node), size, True)


@handles("sum")
def sum(
    input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """As `torch.sum`."""
    dtype = dtype_of("sum", dtype)
    if dtype is None and input.dtype.category <= dtypes.INTEGER:
        dtype = dtypes.int64
    dims = _dims(dim, input.ndim)
    if len(dims) < input.ndim and not input.is_sparse and input._block:
        raise RuntimeError(
            "Currently the only compressed sparse format supported for "
            "sum.dim_IntList is CSR, but got layout "
            f"{LAYOUT_TEXTS[input.layout.name]}"
        )
    plain = coalesced(input.to_sparse_coo())
    if dtype is not None and dtype is not plain.dtype:
        plain = plain.to(dtype)
    if len(dims) == input.ndim:
        total = plain._v.sum()
        return total.reshape((1,) * input.ndim) if keepdim else total
    made = _summed(plain, dims, "Sum")
    if keepdim:
        for d in sorted(dims):
            made = unsqueeze(made, d) if is_sparse(made) else made.unsqueeze(d)
        if is_sparse(made):
            made = made._like(named(made._v, "Sum"))
            made._coalesced = True
    if is_sparse(made) and not input.is_sparse:
        return alike(made, input) if made.ndim == input.ndim else made
    return made


@handles("norm")
def norm(
    input: Any,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """As `torch.norm`, over all elements."""
    if p == "fro" and dtype is not None:
        raise ValueError("dtype argument is not supported in frobenius norm")
    if out is not None or p == "nuc":
        refuse("norm with out=" if out is not None else "nuclear norm", input)
    if dim is not None and len(_dims(dim, input.ndim)) != input.ndim:
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either "
            "be empty or contain all dimensions of the input"
        )
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    if dtype is not None:
        raise RuntimeError("norm_sparse currently does not support 'dtype' argument")
    whole = coalesced(input) if input.is_sparse else input
    order = 2 if p in ("fro", None) else p
    return fns.vector_norm(whole._v, order, None, False)


@handles("any")
def any_(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """As `torch.any`, over all elements."""
    if dim is not None or not input.is_sparse:
        refuse("any with dim", input)
    found = coalesced(input)._v.any()
    return found.reshape((1,) * input.ndim) if keepdim else found


# -- torch.sparse ----------------------------------------------------------------------


@public(namespaces=("sparse",), name="sum")
@handles("sparse.sum", "sparse.sparse_sum")
def sparse_sum(input: Any, dim: Any = None, dtype: Any = None) -> Tensor:
    """The sum of the values, or of the elements along dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.sum.html

    >>> import torchshim as torch
    >>> torch.sparse.sum(torch.eye(2).to_sparse(), 1).values()
    tensor([1., 1.])
    """
    expect_coo("coalesce", input)
    plain = coalesced(input)
    dtype = dtype_of("sum", dtype)
    if dtype is not None:
        plain = plain.to(dtype)
    if dim is None:
        return plain._v.sum()
    dims = _dims(dim, input.ndim)
    if len(dims) == input.ndim:
        return named(plain._v.sum(), "SparseSum")
    return _summed(plain, dims, "SparseSum")


def _normalized(name: str, input: Any, dim: int, dtype: Any) -> Any:
    if not is_sparse(input) or not input.is_sparse:
        raise NotImplementedError(
            f"torch.sparse.{name} is for sparse tensors in coordinates, not "
            f"{input.layout}"
        )
    dim = wrap_dim(dim, input.ndim)
    dtype = dtype_of(name, dtype)
    if dtype is not None:
        input = input.to(dtype)
    input = coalesced(input)
    count, size = input._i.shape[0], input.shape
    if dim >= count:
        return input._like(getattr(fns, name)(input._v, dim - count + 1))

    def make(host: np.ndarray) -> Any:
        rest = [d for d in range(count) if d != dim]
        keys = keys_of(host[rest], [size[d] for d in rest])
        found, groups = np.unique(keys, return_inverse=True)
        return placed(groups.reshape(-1), input.device), len(found)

    groups, number = planned((name, dim, tuple(size[:count])), make, input._i)
    function = getattr(fns, f"sparse_{name}")
    return input._like(function(input._v, groups, number))


@public(namespaces=("sparse",))
@handles("sparse.softmax")
def softmax(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """The softmax of the elements that have values; the others count as -inf.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.softmax.html

    >>> import torchshim as torch
    >>> s = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]).to_sparse()
    >>> torch.sparse.softmax(s, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000],
            [0.0000, 0.0000, 0.0000]])
    """
    return _normalized("softmax", input, dim, dtype)


@public(namespaces=("sparse",))
@handles("sparse.log_softmax")
def log_softmax(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """The logarithm of `torch.sparse.softmax`.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.log_softmax.html

    >>> import torchshim as torch
    >>> s = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]).to_sparse()
    >>> torch.sparse.log_softmax(s, 1).values()
    tensor([-0.6931, -0.6931])
    """
    return _normalized("log_softmax", input, dim, dtype)
