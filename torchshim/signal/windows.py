"""Window functions, symmetric by default.

https://docs.pytorch.org/docs/2.13/signal.html. A window of `M` elements; with
`sym=False` the first `M` of `M + 1`. Raises ValueError for a negative length and for
dtypes other than float32 and float64.

>>> import torchshim as torch
>>> torch.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from torchshim import _functions  # noqa: F401 -- makes its functions public
from torchshim._core import dtypes
from torchshim._core.layout import strided
from torchshim._functions import windows as shapes
from torchshim._functions._arguments import check_options, device_of, wrong
from torchshim._tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _checked(name: str, M: Any, dtype: Any, layout: Any) -> tuple[int, dtypes.dtype]:
    """The length of a window as an integer, and its dtype."""
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(
            f"{name} is implemented for strided tensors only, got: {layout}"
        )
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    try:
        return operator.index(M), dtype
    except TypeError:
        raise TypeError(wrong("linspace", "steps", 0, "int", M)) from None


def _made(
    name: str, values: np.ndarray, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    check_options("tensor", None, False, requires_grad, none_is_false=False)
    return shapes.from_values(values, dtype, device_of(name, device), requires_grad)


def _periods(M: int, sym: bool) -> int:
    """What the angles of a window are divided by."""
    return max(M - 1 if sym else M, 1)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-abs(n - center) / tau)`; Poisson's window."""
    M, dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2
    values = np.exp(-np.abs(np.arange(M) - center) / tau)
    return _made("exponential", values, dtype, device, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Half a period of a sine."""
    M, dtype = _checked("cosine", M, dtype, layout)
    n = M + 1 if not sym and M > 1 else max(M, 1)
    values = np.sin((np.arange(M) + 0.5) * (np.pi / n))
    return _made("cosine", values, dtype, device, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """`exp(-(n - center) ** 2 / (2 * std ** 2))`."""
    M, dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    center = (M if not sym and M > 1 else M - 1) / 2
    values = np.exp(-(((np.arange(M) - center) / std) ** 2) / 2)
    return _made("gaussian", values, dtype, device, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Kaiser's window, of which `beta` is the shape."""
    M, dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    values = np.ones(M) if M < 2 else shapes.kaiser(M, beta, _periods(M, sym))
    return _made("kaiser", values, dtype, device, requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A triangle."""
    M, dtype = _checked("bartlett", M, dtype, layout)
    values = np.ones(M) if M < 2 else shapes.triangle(M, _periods(M, sym))
    return _made("bartlett", values, dtype, device, requires_grad)


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of cosines with the coefficients `a`, with alternating signs."""
    M, dtype = _checked("general_cosine", M, dtype, layout)
    if M < 2:
        return _made("general_cosine", np.ones(M), dtype, device, requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    values = shapes.cosines(M, a, _periods(M, sym), dtype)
    return _made("general_cosine", values, dtype, device, requires_grad)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, **options: Any
) -> Tensor:
    """`alpha - (1 - alpha) * cos(…)`."""
    return general_cosine(M, a=(alpha, 1.0 - alpha), sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with 0.54."""
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """`general_hamming` with 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Any = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """A sum of three cosines."""
    _checked("blackman", M, dtype, layout)
    return general_cosine(
        M,
        a=(0.42, 0.5, 0.08),
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def nuttall(M: int, *, sym: bool = True, **options: Any) -> Tensor:
    """A sum of four cosines with very small sidelobes."""
    a = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return general_cosine(M, a=a, sym=sym, **options)
