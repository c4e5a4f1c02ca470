"""Masks of masked operations, and what stands for the elements that they leave out."""

from __future__ import annotations

import math
from typing import Any

from torchshim._core import dtypes
from torchshim._core.layout import NAMES, strided
from torchshim._derived import fns
from torchshim._functions.construct import tensor
from torchshim._functions.sparse_convert import _sparse_broadcast_to
from torchshim._tensor import Tensor
from torchshim.masked import _sparse

COO, CSR = NAMES["sparse_coo"], NAMES["sparse_csr"]
_LOWEST = frozenset(("amax", "argmax", "logaddexp", "logsumexp"))
_HIGHEST = frozenset(("amin", "argmin"))
_REDUCTIONS = frozenset(
    "sum prod amax amin argmax argmin mean median norm var std logsumexp".split()
)
_NORMALIZATIONS = frozenset(
    "softmax log_softmax softmin normalize cumsum cumprod".split()
)


def _canonical_dim(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions meant, sorted; all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    ndim = max(ndim, 1)
    found: list[int] = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        if d >= ndim or d < -ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-ndim}, "
                f"{ndim - 1}], but got {d})"
            )
        found.append(d % ndim)
    return tuple(sorted(found))


def identity(name: str, dtype: Any, *args: Any) -> Any:
    """The number that a reduction starts with; None where it has no such number.

    `args`: the order of a norm.
    """
    if name in ("sum", "cumsum"):
        return 0
    if name in ("prod", "cumprod"):
        return 1
    if name in ("mean", "var", "std"):
        return None
    if name == "median":
        return math.nan
    if name == "norm":
        if not args or args[0] != -math.inf:
            return 0
        if not dtype.is_floating_point:
            raise AssertionError(f"input must be floating point, got {dtype}")
        return math.inf
    if name not in _LOWEST | _HIGHEST or dtype is dtypes.bool_:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    lowest = name in _LOWEST
    if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
        return -math.inf if lowest else math.inf
    info = dtypes.iinfo(dtype)
    return info.min if lowest else info.max


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """`identity` as a tensor like the input."""
    value = identity(op_name, input.dtype, *args)
    if value is None:
        return None
    dtype: Any = input.dtype
    if op_name == "median" and not dtype.is_floating_point:
        dtype = dtypes.float32
    return tensor(value, dtype=dtype, device=input.device)


def _input_mask(input: Any, *args: Any, **kwargs: Any) -> Any:
    """The mask in the shape and the layout of the input, and of truth values."""
    if input.layout not in (strided, COO, CSR):
        raise ValueError(
            "_input_mask expects strided or sparse COO or sparse CSR tensor but got "
            f"{input.layout}"
        )
    mask = kwargs.get("mask")
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape != input.shape and mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality "
            "higher than of the input)"
        )
    if input.layout is strided and mask.layout is not strided:
        mask = mask.to_dense()
    if mask.shape != input.shape:
        if mask.layout is strided:
            mask = mask.broadcast_to(input.shape)
        else:
            mask = _sparse_broadcast_to(mask.to_sparse(), input.shape)
    if input.layout is COO:
        if mask.layout is strided:
            mask = mask.to_sparse(input.sparse_dim())
        mask = mask.to_sparse().coalesce()
    elif input.layout is CSR and mask.layout is not CSR:
        mask = mask.to_sparse_csr()
    return mask.to(dtype=dtypes.bool_)


def _output_mask(op: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Where the result of a masked operation has elements that were chosen."""
    if not callable(op):
        raise ValueError(
            f"_output_mask expected masked operation (got {type(op).__name__} object)"
        )
    name = getattr(op, "__name__", "")
    if name in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    if name not in _REDUCTIONS:
        raise ValueError(
            "_output_mask expected masked operation (got callable "
            f"{op.__module__}.{name})"
        )
    if name == "norm":
        args = args[1:]
    mask = _input_mask(input, *args, **kwargs)
    dims = _canonical_dim(args[0] if args else kwargs.get("dim"), input.ndim)
    keepdim = bool(kwargs.get("keepdim", False))
    for dim in reversed(dims):
        mask = mask.any(dim, keepdim)
    return mask


def _where(mask: Tensor, input: Tensor, fill_value: Any) -> Tensor:
    """The input, and the fill value where the mask is False.

    Of sparse ones the elements that the mask chooses, zero where they have no value.
    """
    if mask.layout is strided:
        return fns.where(mask, input, fill_value)
    if mask.layout not in (COO, CSR):
        raise ValueError(
            "_where expects strided or sparse COO or sparse CSR tensor but got "
            f"{mask.layout}"
        )
    return _sparse.where(mask, input, fill_value)


def combined(name: str, input: Any, mask: Any, *args: Any) -> Any:
    """The input with the identity of an operation where the mask is False."""
    taken, need_mask = _sparse.LAYOUTS.get(name, ("strided", ()))
    kind = input.layout.name
    if kind not in taken.replace(",", "").split():
        if mask is not None and name != "mean":
            _input_mask(input, mask=mask)
        raise ValueError(
            f"masked {name} expects {taken} tensor (got {input.layout} tensor)"
        )
    if mask is not None:
        value = identity(name, input.dtype, *args)
        if input.dtype is dtypes.bool_ and value is not None:
            value = bool(value)
        return _where(_input_mask(input, mask=mask), input, value)
    if kind in need_mask:
        if input.layout is COO:
            name = name.replace("amin", "amax")  # as PyTorch says
        raise ValueError(f"masked {name} expects explicit mask for {kind} tensor input")
    return input


def _combine_input_and_mask(op: Any, input: Tensor, mask: Any, *args: Any) -> Tensor:
    """As `combined`, for an operation of `torch.masked` itself."""
    return combined(op.__name__, input, mask, *args)
