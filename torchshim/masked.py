"""Reductions and normalizations of the elements that a mask chooses.

Elements where the mask is False are as if they were not there; what has none left gets
the operation's identity. `masked_tensor` and its class are not supported.
https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

from torchshim._core import dtypes
from torchshim._core.layout import strided
from torchshim._derived import fns
from torchshim._functions.nn_activation import log_softmax as _log_softmax
from torchshim._functions.nn_activation import softmax as _softmax
from torchshim._functions.nn_activation import softmin as _softmin
from torchshim._tensor import Tensor

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
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

_SMALL_INTEGERS = (
    dtypes.uint8,
    dtypes.bool_,
    dtypes.int8,
    dtypes.int16,
    dtypes.int32,
)


def _refuse() -> NoReturn:
    raise NotImplementedError(
        "torch.masked.masked_tensor is not supported: keep data and mask apart, and "
        "pass mask= to the functions of torch.masked"
    )


class MaskedTensor:
    """Not supported: NotImplementedError."""

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
        _refuse()


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> NoReturn:
    """Not supported: NotImplementedError."""
    _refuse()


def as_masked_tensor(data: Any, mask: Any) -> NoReturn:
    """Not supported: NotImplementedError."""
    _refuse()


def is_masked_tensor(obj: Any, /) -> bool:
    """Always False, as there are no masked tensors."""
    return isinstance(obj, MaskedTensor)


# -- masks -----------------------------------------------------------------------------


def _dims(dim: Any, ndim: int) -> tuple[int, ...]:
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


def _input_mask(input: Any, mask: Any) -> Any:
    """The mask in the shape of the input."""
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality "
                "higher than of the input)"
            )
        mask = mask.broadcast_to(input.shape)
    return mask.to(dtype=dtypes.bool_)


def _masked(name: str, input: Any, mask: Any, identity: Any) -> Any:
    """The input with the identity where the mask is False."""
    if input.layout is not strided:
        raise ValueError(
            f"masked {name} expects strided tensor (got {input.layout} tensor)"
        )
    if mask is None:
        return input
    return fns.where(_input_mask(input, mask), input, identity)


def _extreme(name: str, input: Any, lowest: bool) -> Any:
    """The smallest, or the largest, number of a dtype."""
    dtype = input.dtype
    if dtype.is_floating_point:
        return -math.inf if lowest else math.inf
    if dtype.is_complex or dtype is dtypes.bool_:
        raise NotImplementedError(f"identity of {name} on {dtype} input")
    info = dtypes.iinfo(dtype)
    return info.min if lowest else info.max


def _sum_dtype(input: Any, dtype: Any) -> Any:
    if dtype is not None:
        return dtype
    return dtypes.int64 if input.dtype in _SMALL_INTEGERS else input.dtype


# -- reductions ------------------------------------------------------------------------


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
    x: Any = _masked("sum", input, mask, 0)
    dtype = _sum_dtype(input, dtype)
    return x.sum(_dims(dim, x.ndim), bool(keepdim), dtype=dtype)


def prod(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool | None = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The product of the elements chosen. Follows ``torch.masked.prod``."""
    dims = _dims(dim, input.ndim)
    x: Any = _masked("prod", input, mask, 1).to(dtype=_sum_dtype(input, dtype))
    for d in reversed(dims):
        x = x.prod(d, bool(keepdim))
    return x


def cumsum(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Sums from the first element on. Follows ``torch.masked.cumsum``."""
    (axis,) = _dims(dim, input.ndim)[:1]
    dtype = input.dtype if dtype is None else dtype
    x: Any = _masked("cumsum", input, mask, 0)
    return x.cumsum(axis, dtype=dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Products from the first element on. Follows ``torch.masked.cumprod``."""
    (axis,) = _dims(dim, input.ndim)[:1]
    dtype = input.dtype if dtype is None else dtype
    x: Any = _masked("cumprod", input, mask, 1)
    return x.cumprod(axis, dtype=dtype)


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
    identity = None if mask is None else _extreme(name, input, name == "amax")
    x = _masked(name, input, mask, identity)
    found = getattr(x, name)(_dims(dim, x.ndim), bool(keepdim))
    return found if dtype is None else found.to(dtype=dtype)


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
    identity = None if mask is None else _extreme(name, input, name == "argmax")
    x = _masked(name, input, mask, identity)
    found = getattr(x, name)(dim, bool(keepdim))
    return found.to(dtype=input.dtype if dtype is None else dtype)


def _count(input: Any, dim: Any, keepdim: Any, mask: Any) -> Any:
    """How many elements are chosen."""
    dims = _dims(dim, input.ndim)
    if mask is not None:
        return _input_mask(input, mask).sum(dims, bool(keepdim))
    chosen = input.new_ones(input.shape, dtype=dtypes.int64)
    return chosen.sum(dims, bool(keepdim))


def mean(
    input: Tensor,
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
    x: Any = input
    source = "Input" if dtype is None else "Optional"
    dtype = x.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a "
            f"floating point or complex dtype. Got: {dtype}"
        )
    total: Any = sum(x, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(x, dim, keepdim, mask)


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
    (axis,) = _dims(dim, x.ndim)[:1]
    dtype = x.dtype if dtype is None else dtype
    inexact = x.is_floating_point()
    x = x if inexact else x.to(dtype=dtypes.float32)
    found = _masked("median", x, mask, math.nan).nanmedian(axis, keepdim).values
    if inexact:
        return found
    if bool(found.isnan().any()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating "
            "point"
        )
    return found.to(dtype=dtype)


def logsumexp(
    input: Tensor,
    dim: Any = None,
    *,
    keepdim: bool = False,
    dtype: Any = None,
    mask: Any = None,
) -> Tensor:
    """The logarithm of the sum of exponentials. Follows ``torch.masked.logsumexp``."""
    identity: Any = None
    if mask is not None:
        complex_input = input.dtype.is_complex
        low = -math.inf if complex_input else _extreme("logsumexp", input, True)
        identity = low
    x: Any = _masked("logsumexp", input, mask, identity)
    found = x.logsumexp(_dims(dim, x.ndim), keepdim=keepdim)
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
    pair = [
        _masked(
            "logaddexp", x, m, None if m is None else _extreme("logaddexp", x, True)
        )
        for x, m in ((input, input_mask), (other, other_mask))
    ]
    found = fns.logaddexp(*pair)
    return found.to(dtype=input.dtype if dtype is None else dtype)


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
    identity = math.inf if ord == -math.inf else 0
    dims = _dims(dim, x.ndim)
    x = _masked("norm", x, mask, identity)
    order = 2.0 if ord is None else ord
    return fns.vector_norm(x, order, dims, bool(keepdim), dtype=dtype)


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


def softmax(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax over the elements chosen. Follows ``torch.masked.softmax``.

    >>> import torchshim as torch
    >>> torch.masked.softmax(torch.zeros(3), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return _normalized(_softmax, "softmax", True, input, dim, dtype, mask)


def log_softmax(
    input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None
) -> Tensor:
    """Its logarithm. Follows ``torch.masked.log_softmax``."""
    return _normalized(_log_softmax, "log_softmax", True, input, dim, dtype, mask)


def softmin(input: Tensor, dim: int, *, dtype: Any = None, mask: Any = None) -> Tensor:
    """Softmax of what is negated. Follows ``torch.masked.softmin``."""
    return _normalized(_softmin, "softmin", False, input, dim, dtype, mask)


def _normalized(
    function: Any,
    name: str,
    lowest: bool,
    input: Any,
    dim: int,
    dtype: Any,
    mask: Any,
) -> Tensor:
    dtype = input.dtype if dtype is None else dtype
    (axis,) = _dims(dim, input.ndim)[:1]
    identity = None
    if mask is not None:
        identity = _extreme("amax" if lowest else "amin", input, lowest)
    return function(_masked(name, input, mask, identity), axis, dtype=dtype)


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
    x = _masked("normalize", input, mask, 0)
    dtype = x.dtype if dtype is None else dtype
    size: Any = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return x / size.maximum(size.new_full([], eps))
