"""The operations of `torch.masked`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from torchshim._core import dtypes
from torchshim._core.layout import strided
from torchshim._derived import fns
from torchshim._functions.nn_activation import log_softmax as _log_softmax
from torchshim._functions.nn_activation import softmax as _softmax
from torchshim._functions.nn_activation import softmin as _softmin
from torchshim._tensor import Tensor
from torchshim.masked import _sparse
from torchshim.masked._masks import _canonical_dim, _input_mask, combined
from torchshim.masked._masks import (
    _combine_input_and_mask as _combine_input_and_mask,
)
from torchshim.masked._masks import _output_mask as _output_mask
from torchshim.masked._masks import _reduction_identity as _reduction_identity
from torchshim.masked._masks import _where as _where

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

_F = TypeVar("_F", bound=Callable[..., Any])

_SMALL_INTEGERS = (
    dtypes.uint8,
    dtypes.bool_,
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
)


def _sum_dtype(input: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return dtypes.int64 if input.dtype in _SMALL_INTEGERS else input.dtype


def _of_parts(function: _F) -> _F:
    """Lets a function take a `MaskedTensor`, whose own mask is the one that counts."""

    @functools.wraps(function)
    def taking(input: Any, *args: Any, **kwargs: Any) -> Any:
        mask = getattr(input, "_masked_mask", None)
        if mask is not None:
            input, kwargs = input.get_data(), {**kwargs, "mask": mask}
        return function(input, *args, **kwargs)

    return taking  # type: ignore[return-value]


def _of_values(name: str, x: Any, dims: Any, keepdim: Any, dtype: Any) -> Tensor:
    """A reduction of a sparse tensor."""
    start = functools.partial(_reduction_identity, name)
    dtype = x.dtype if dtype is None else dtype
    return _sparse.reduced(name, x, dims, bool(keepdim), dtype, start)


def _expect_strided(name: str, input: Any) -> None:
    if input.layout is not strided:
        raise ValueError(
            f"masked {name} expects strided tensor (got {input.layout} tensor)"
        )


# -- reductions ------------------------------------------------------------------------


@_of_parts
def sum(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The sum of the elements chosen. Follows ``torch.masked.sum``.

    >>> import torchshim as torch
    >>> torch.masked.sum(torch.ones(3), mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    dtype, dims = _sum_dtype(input, dtype), _canonical_dim(dim, input.ndim)
    x: Any = combined("sum", input, mask)
    if x.layout is not strided:
        return _of_values("sum", x, dims, keepdim, dtype)
    return x.sum(dims, bool(keepdim), dtype=dtype)


@_of_parts
def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The product of the elements chosen. Follows ``torch.masked.prod``."""
    dtype, dims = _sum_dtype(input, dtype), _canonical_dim(dim, input.ndim)
    x: Any = combined("prod", input, mask)
    if x.layout is not strided:
        return _of_values("prod", x, dims, keepdim, dtype)
    x = x.to(dtype=dtype)
    for d in reversed(dims):
        x = x.prod(d, bool(keepdim))
    return x


@_of_parts
def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Sums from the first element on. Follows ``torch.masked.cumsum``."""
    (axis,) = _canonical_dim(dim, input.ndim)[:1]
    dtype = input.dtype if dtype is None else dtype
    x: Any = combined("cumsum", input, mask)
    return x.cumsum(axis, dtype=dtype)


@_of_parts
def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Products from the first element on. Follows ``torch.masked.cumprod``."""
    (axis,) = _canonical_dim(dim, input.ndim)[:1]
    dtype = input.dtype if dtype is None else dtype
    x: Any = combined("cumprod", input, mask)
    return x.cumprod(axis, dtype=dtype)


@_of_parts
def amax(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The largest of the elements chosen. Follows ``torch.masked.amax``."""
    return _bound("amax", input, dim, keepdim, dtype, mask)


@_of_parts
def amin(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The smallest of the elements chosen. Follows ``torch.masked.amin``."""
    return _bound("amin", input, dim, keepdim, dtype, mask)


def _bound(
    name: str, input: Any, dim: Any, keepdim: Any, dtype: Any, mask: Any
) -> Tensor:
    dims = _canonical_dim(dim, input.ndim)
    x = combined(name, input, mask)
    if x.layout is not strided:
        return _of_values(name, x, dims, keepdim, dtype)
    found = getattr(x, name)(dims, bool(keepdim))
    return found if dtype is None else found.to(dtype=dtype)


@_of_parts
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Where the largest of the elements chosen is, in the input's dtype.

    Follows ``torch.masked.argmax``.
    """
    return _place("argmax", input, dim, keepdim, dtype, mask)


@_of_parts
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """Where the smallest of the elements chosen is, in the input's dtype.

    Follows ``torch.masked.argmin``.
    """
    return _place("argmin", input, dim, keepdim, dtype, mask)


def _place(
    name: str, input: Any, dim: Any, keepdim: Any, dtype: Any, mask: Any
) -> Tensor:
    x = combined(name, input, mask)
    found = getattr(x, name)(dim, bool(keepdim))
    return found.to(dtype=input.dtype if dtype is None else dtype)


def _count(input: Any, dim: Any, keepdim: Any, mask: Any) -> Any:
    """How many elements are chosen."""
    dims = _canonical_dim(dim, input.ndim)
    if mask is not None:
        return _input_mask(input, mask=mask).sum(dims, bool(keepdim))
    chosen = input.new_ones(input.shape, dtype=dtypes.int64)
    return chosen.sum(dims, bool(keepdim))


def mean(
    input: Any,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The mean of the elements chosen; NaN of none. Follows ``torch.masked.mean``.

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 5.0, 3.0])
    >>> torch.masked.mean(x, mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    x, counted = input, mask
    if (own := getattr(input, "_masked_mask", None)) is not None:
        # PyTorch counts all elements, unless a mask is given as well.
        x, mask, counted = x.get_data(), own, None if mask is None else own
    source = "Input" if dtype is None else "Optional"
    dtype = x.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a "
            f"floating point or complex dtype. Got: {dtype}"
        )
    if x.layout is not strided:
        chosen = combined("mean", x, mask)
        return _of_values("mean", chosen, _canonical_dim(dim, x.ndim), keepdim, dtype)
    total: Any = sum(x, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(x, dim, keepdim, counted)


@_of_parts
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The middle of the elements chosen, the lower one of two.

    ValueError where none are chosen and the dtype has no NaN. Follows
    ``torch.masked.median``.
    """
    x: Any = input
    (axis,) = _canonical_dim(dim, x.ndim)[:1]
    dtype = x.dtype if dtype is None else dtype
    inexact = x.is_floating_point()
    x = x if inexact else x.to(dtype=dtypes.float32)
    found = combined("median", x, mask).nanmedian(axis, keepdim).values
    if inexact:
        return found
    if bool(found.isnan().any()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating "
            "point"
        )
    return found.to(dtype=dtype)


@_of_parts
def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The logarithm of the sum of exponentials. Follows ``torch.masked.logsumexp``."""
    x: Any = combined("logsumexp", input, mask)
    found = x.logsumexp(_canonical_dim(dim, x.ndim), keepdim=keepdim)
    return found.to(dtype=input.dtype if dtype is None else dtype)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Any = None,
    input_mask: Any = None,
    other_mask: Any = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, of each element.

    Follows ``torch.masked.logaddexp``.
    """
    if not (input.layout is other.layout is strided):
        raise ValueError(
            f"masked logaddexp expects strided tensors (got {input.layout} tensor for "
            f"input, {other.layout} for other)"
        )
    pair = [
        combined("logaddexp", x, m)
        for x, m in ((input, input_mask), (other, other_mask))
    ]
    found = fns.logaddexp(*pair)
    return found.to(dtype=input.dtype if dtype is None else dtype)


@_of_parts
def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The norm of the elements chosen. Follows ``torch.masked.norm``."""
    x: Any = input
    dtype = x.dtype if dtype is None else dtype
    dims = _canonical_dim(dim, x.ndim)
    x = combined("norm", x, mask, ord)
    order = 2.0 if ord is None else ord
    return fns.vector_norm(x, order, dims, bool(keepdim), dtype=dtype)


@_of_parts
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The variance of the elements chosen. Follows ``torch.masked.var``."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@_of_parts
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The standard deviation of the elements chosen. Follows ``torch.masked.std``."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def _variance(
    input: Any,
    dim: Any,
    unbiased: bool | None,
    correction: float | None,
    keepdim: Any,
    dtype: Any,
    mask: Any,
) -> Any:
    _expect_strided("std/var", input)
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if dtype is None:
        inexact = input.dtype.is_floating_point or input.dtype.is_complex
        dtype = input.dtype if inexact else dtypes.float32
    inexact = dtype.is_floating_point or dtype.is_complex
    wide = dtype if inexact else dtypes.float32
    count = _count(input, dim, True, mask)
    total: Any = sum(input, dim, keepdim=True, dtype=dtype, mask=mask)
    x = input - total / count
    spread: Any = sum(x * x.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = count if keepdim else count.reshape(spread.shape)
    if correction != 0:
        count = (count.to(wide.to_real()) - float(correction)).clamp_min(0)
    return (spread / count).to(dtype=dtype)


# -- normalizations --------------------------------------------------------------------


@_of_parts
def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax over the elements chosen. Follows ``torch.masked.softmax``.

    >>> import torchshim as torch
    >>> torch.masked.softmax(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _normalized(_softmax, "amax", input, dim, dtype, mask)


@_of_parts
def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Its logarithm. Follows ``torch.masked.log_softmax``."""
    return _normalized(_log_softmax, "amax", input, dim, dtype, mask)


@_of_parts
def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax of what is negated. Follows ``torch.masked.softmin``."""
    return _normalized(_softmin, "amin", input, dim, dtype, mask)


def _normalized(
    function: Any,
    extreme: str,
    input: Any,
    dim: int,
    dtype: Any,
    mask: Any,
) -> Tensor:
    _expect_strided(function.__name__, input)
    dtype = input.dtype if dtype is None else dtype
    (axis,) = _canonical_dim(dim, input.ndim)[:1]
    # What is left out weighs nothing.
    return function(combined(extreme, input, mask), axis, dtype=dtype)


@_of_parts
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The elements chosen over their norm. Follows ``torch.masked.normalize``."""
    _expect_strided("normalize", input)
    x = combined("sum", input, mask)
    dtype = x.dtype if dtype is None else dtype
    size: Any = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return x / size.maximum(size.new_full([], eps))
