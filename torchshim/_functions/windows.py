"""Windows for Fourier transforms: `hann_window` and its like.

A window depends on numbers alone, so it is made on the host, in float64; PyTorch rounds
every step to the window's dtype, which shows in the half types alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._derived import public
from torchshim._functions._arguments import (
    as_index,
    check_options,
    device_of,
    dtype_of,
    unfit,
    wrong,
)
from torchshim._functions.creation import place
from torchshim._tensor import Tensor, from_array

_CPP = {
    dtypes.bool_: "bool",
    dtypes.uint8: "unsigned char",
    dtypes.int8: "signed char",
    dtypes.int16: "short int",
    dtypes.int32: "int",
    dtypes.int64: "long int",
}


def from_values(
    values: np.ndarray, dtype: dtypes.dtype, device: Any, requires_grad: bool
) -> Tensor:
    """A tensor of host values in a floating-point dtype."""
    array = np.asarray(values).astype(dtypes.array_dtype(dtype))
    return from_array(place(array, device), requires_grad, device=device)


def cosines(
    n: int,
    coefficients: Any,
    denominator: int,
    dtype: dtypes.dtype,
    backwards: bool = False,
) -> np.ndarray:
    """A sum of cosines of 0, 1, 2, … periods, with alternating signs.

    Some windows' ends are what rounding leaves of terms that cancel, so these are
    rounded and added as PyTorch does, the last ones first if `backwards`.
    """
    kind = np.float32 if dtype is dtypes.float32 else np.float64
    phase = np.arange(n) * (2 * np.pi / denominator)
    terms = [
        kind((-1) ** i * float(c)) * np.cos(i * phase).astype(kind)
        for i, c in enumerate(coefficients)
    ]
    return sum(terms[::-1] if backwards else terms, np.zeros(n, kind))


def triangle(n: int, denominator: int) -> np.ndarray:
    """A rise from 0 to 1 and the fall back."""
    return 1 - np.abs(np.arange(n) * (2 / denominator) - 1)


def kaiser(n: int, beta: float, denominator: int) -> np.ndarray:
    """I0 of `beta` times a half circle, over I0 of `beta`."""
    x = np.arange(n) * (2 / denominator) - 1
    return np.i0(beta * np.sqrt(np.maximum(0, 1 - x * x))) / np.i0(beta)


def _window(
    name: str, given: tuple[Any, ...], named: dict[str, Any], extras: tuple[str, ...]
) -> tuple[int, int, list[float], dtypes.dtype, Any]:
    """Length, the periods' denominator, other numbers, dtype, what makes a tensor."""
    options = {
        k: named.pop(k, None)
        for k in ("dtype", "layout", "device", "pin_memory", "requires_grad")
    }
    names = ("window_length", "periodic", *extras)
    values = dict(zip(names, given, strict=False))
    clash = [k for k in named if k not in names or k in values]
    values |= named
    clash += [k for k in values if k not in names[: len(values)]]
    length = as_index(values.get("window_length"))
    numbers = [values[k] for k in extras if k in values]
    fits = isinstance(values.get("periodic", True), bool) and all(
        isinstance(v, (int, float, np.number)) for v in numbers
    )
    if "window_length" in values and length is None and fits and len(values) == 1:
        at = 1 if given else 0
        raise TypeError(wrong(name, "window_length", at, "int", *values.values()))
    if clash or len(given) > len(names) or length is None or not fits:
        raise unfit(name)
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    requires_grad = options["requires_grad"] or False
    check_options(name, options["layout"], options["pin_memory"], requires_grad)
    device = device_of(name, options["device"])
    dtype = dtype_of(name, options["dtype"]) or dtypes.get_default_dtype()
    if dtype in _CPP:
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions("
            f"dtype={_CPP[dtype]}, device={device}, layout=Strided (default), "
            "requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if dtype.is_complex:
        raise NotImplementedError(
            f"\"arange_cpu\" not implemented for '{dtype.scalar_name}'"
        )

    def finish(values: np.ndarray) -> Tensor:
        if length == 1:
            values = np.ones(1)
        return from_values(values, dtype, device, requires_grad)

    numbers = [float(v) if isinstance(v, np.number) else v for v in numbers]
    periodic = values.get("periodic", True)
    over = max(length if periodic else length - 1, 1)
    return length, over, numbers, dtype, finish


@public
def hann_window(*args: Any, **kwargs: Any) -> Tensor:
    """A raised cosine: 0 at its ends. `(window_length, periodic=True)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.hann_window.html

    >>> import torchshim as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    n, over, _, dtype, finish = _window("hann_window", args, kwargs, ())
    return finish(cosines(n, (0.5, 0.5), over, dtype))


@public
def hamming_window(*args: Any, **kwargs: Any) -> Tensor:
    """A raised cosine. `(window_length, periodic=True, alpha=0.54, beta=0.46)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.hamming_window.html

    >>> import torchshim as torch
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    extras = ("alpha", "beta")
    n, over, numbers, dtype, finish = _window("hamming_window", args, kwargs, extras)
    alpha, beta = (*numbers, *(0.54, 0.46)[len(numbers) :])
    return finish(cosines(n, (alpha, beta), over, dtype))


@public
def blackman_window(*args: Any, **kwargs: Any) -> Tensor:
    """A sum of three cosines. `(window_length, periodic=True)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.blackman_window.html

    >>> import torchshim as torch
    >>> torch.blackman_window(5, False)[1:4]
    tensor([0.3400, 1.0000, 0.3400])
    """
    n, over, _, dtype, finish = _window("blackman_window", args, kwargs, ())
    return finish(cosines(n, (0.42, 0.5, 0.08), over, dtype, backwards=True))


@public
def bartlett_window(*args: Any, **kwargs: Any) -> Tensor:
    """A triangle. `(window_length, periodic=True)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.bartlett_window.html

    >>> import torchshim as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    n, over, _, _, finish = _window("bartlett_window", args, kwargs, ())
    return finish(triangle(n, over))


@public
def kaiser_window(*args: Any, **kwargs: Any) -> Tensor:
    """Kaiser's window. `(window_length, periodic=True, beta=12.0)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.kaiser_window.html

    >>> import torchshim as torch
    >>> torch.kaiser_window(4, True, 5.0)
    tensor([0.0367, 0.5529, 1.0000, 0.5529])
    """
    n, over, numbers, _, finish = _window("kaiser_window", args, kwargs, ("beta",))
    beta = numbers[0] if numbers else 12.0
    return finish(kaiser(n, beta, over))
