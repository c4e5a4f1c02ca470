"""NumPy's functions as references for operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def prod_numpy(a: Any, *args: Any, **kwargs: Any) -> Any:
    """The product, of small integers in int64 as PyTorch computes it."""
    kind = a.dtype.kind if isinstance(a, np.ndarray) else ""
    if kind in "iub" and "dtype" not in kwargs:
        kwargs["dtype"] = np.int64
    return np.prod(a, *args, **kwargs)


def np_unary_ufunc_integer_promotion_wrapper(fn: Callable[..., Any]) -> Any:
    """The function, in float32 for integers, as PyTorch computes it."""

    @functools.wraps(fn)
    def wrapped(x: Any, *args: Any, **kwargs: Any) -> Any:
        kind = np.asarray(x).dtype.kind
        return fn(x.astype(np.float32) if kind in "iub" else x, *args, **kwargs)

    return wrapped


def reference_reduction_numpy(
    f: Callable[..., Any], supports_keepdims: bool = True
) -> Any:
    """A reduction of NumPy with PyTorch's names of arguments."""

    @functools.wraps(f)
    def wrapped(x: Any, *args: Any, **kwargs: Any) -> Any:
        keys = set(kwargs)
        dim = kwargs.pop("dim", None)
        keepdim = kwargs.pop("keepdim", False)
        if "dim" in keys:
            dim = tuple(dim) if isinstance(dim, (list, tuple)) else dim
            # NumPy takes no empty tuple as PyTorch does: all dimensions.
            kwargs["axis"] = dim if x.ndim and dim != () else None
        if "unbiased" in keys:
            kwargs["ddof"] = int(bool(kwargs.pop("unbiased")))
        if "correction" in keys:
            kwargs["ddof"] = kwargs.pop("correction")
        if supports_keepdims:
            kwargs["keepdims"] = keepdim
        result = f(x, *args, **kwargs)
        if keepdim and not supports_keepdims and x.ndim:
            return np.expand_dims(result, range(x.ndim) if dim is None else dim)
        return result

    return wrapped
