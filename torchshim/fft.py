"""Discrete Fourier transforms: https://docs.pytorch.org/docs/2.13/fft.html.

A transform of length n is multiplied with 1 or 1 / n or, with `norm="ortho"`, with
1 / sqrt(n); by default it is the inverse that is divided. Lengths (`n`, `s`) cut the
input or fill it with zeros.

>>> import torchshim as torch
>>> torch.fft.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
>>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0])), 3)
tensor([1., 2., 3.])
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from torchshim import _functions  # noqa: F401 -- makes its functions public
from torchshim._core import dtypes
from torchshim._derived import fns, namespace
from torchshim._functions._arguments import tensor_argument, wrong
from torchshim._functions.creation import out_dtype
from torchshim._functions.fourier import (
    both_halves,
    half,
    integer,
    integers,
    inverse_half,
    one_dimension,
    several_dimensions,
    to_real,
    wrapped,
)
from torchshim._overrides import overridable_all as _overridable_all
from torchshim._tensor import Tensor

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "hfft2",
    "hfftn",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "ihfft2",
    "ihfftn",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

_ALL = tuple[int, ...] | int | None

# One dimension ------------------------------------------------------------------------


def fft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along one dimension; complex.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.fft.html
    """
    return one_dimension(
        "fft", partial(both_halves, forward=True), input, n, dim, norm, out
    )


def ifft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fft`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ifft.html
    """
    return one_dimension(
        "ifft", partial(both_halves, forward=False), input, n, dim, norm, out
    )


def rfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real numbers: its first n // 2 + 1 elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.rfft.html
    """
    return one_dimension("rfft", partial(half, forward=True), input, n, dim, norm, out)


def irfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfft`: `n` real numbers, by default an even number.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.irfft.html
    """
    return one_dimension(
        "irfft", partial(to_real, forward=False), input, n, dim, norm, out
    )


def hfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of half of a Hermitian signal: real numbers.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.hfft.html
    """
    return one_dimension(
        "hfft", partial(to_real, forward=True), input, n, dim, norm, out
    )


def ihfft(
    input: Tensor,
    n: int | None = None,
    dim: int = -1,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfft`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ihfft.html
    """
    return one_dimension(
        "ihfft", partial(half, forward=False), input, n, dim, norm, out
    )


# Several dimensions -------------------------------------------------------------------


def fft2(
    input: Tensor,
    s: _ALL = None,
    dim: tuple[int, ...] | int = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`fftn` along the last two dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.fft2.html
    """
    return several_dimensions(
        "fft2", partial(both_halves, forward=True), input, s, dim, norm, out
    )


def ifft2(
    input: Tensor,
    s: _ALL = None,
    dim: tuple[int, ...] | int = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fft2`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ifft2.html
    """
    return several_dimensions(
        "ifft2", partial(both_halves, forward=False), input, s, dim, norm, out
    )


def fftn(
    input: Tensor,
    s: _ALL = None,
    dim: _ALL = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform along several dimensions, by default all.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.fftn.html
    """
    return several_dimensions(
        "fftn", partial(both_halves, forward=True), input, s, dim, norm, out
    )


def ifftn(
    input: Tensor,
    s: _ALL = None,
    dim: _ALL = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `fftn`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ifftn.html
    """
    return several_dimensions(
        "ifftn", partial(both_halves, forward=False), input, s, dim, norm, out
    )


def rfft2(
    input: Tensor,
    s: _ALL = None,
    dim: tuple[int, ...] | int = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`rfftn` along the last two dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.rfft2.html
    """
    return several_dimensions(
        "rfft2", partial(half, forward=True), input, s, dim, norm, out
    )


def irfft2(
    input: Tensor,
    s: _ALL = None,
    dim: tuple[int, ...] | int = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfft2`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.irfft2.html
    """
    return several_dimensions(
        "irfft2", partial(to_real, forward=False), input, s, dim, norm, out
    )


def rfftn(
    input: Tensor,
    s: _ALL = None,
    dim: _ALL = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of real numbers; the last dimension has n // 2 + 1 elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.rfftn.html
    """
    return several_dimensions(
        "rfftn", partial(half, forward=True), input, s, dim, norm, out
    )


def irfftn(
    input: Tensor,
    s: _ALL = None,
    dim: _ALL = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `rfftn`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.irfftn.html
    """
    return several_dimensions(
        "irfftn", partial(to_real, forward=False), input, s, dim, norm, out
    )


def hfft2(
    input: Tensor,
    s: _ALL = None,
    dim: tuple[int, ...] | int = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`hfftn` along the last two dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.hfft2.html
    """
    return several_dimensions(
        "hfft2", partial(to_real, forward=True), input, s, dim, norm, out
    )


def ihfft2(
    input: Tensor,
    s: _ALL = None,
    dim: tuple[int, ...] | int = (-2, -1),
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfft2`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ihfft2.html
    """
    return several_dimensions("ihfft2", inverse_half, input, s, dim, norm, out)


def hfftn(
    input: Tensor,
    s: _ALL = None,
    dim: _ALL = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The transform of a Hermitian signal, half along the last dimension.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.hfftn.html
    """
    return several_dimensions(
        "hfftn", partial(to_real, forward=True), input, s, dim, norm, out
    )


def ihfftn(
    input: Tensor,
    s: _ALL = None,
    dim: _ALL = None,
    norm: str | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The inverse of `hfftn`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ihfftn.html
    """
    return several_dimensions("ihfftn", inverse_half, input, s, dim, norm, out)


# Frequencies --------------------------------------------------------------------------


def _frequencies(name: str, n: Any, d: Any, half: bool, options: Any) -> Tensor:
    n = integer(name, "n", 1, n)
    if not isinstance(d, (int, float, np.number)):
        raise TypeError(wrong(f"fft_{name}", "d", 2, "float", d))
    d = float(d)
    out = options.pop("out")
    chosen = options["dtype"]
    requires_grad = options.pop("requires_grad")
    chosen = out_dtype(f"fft_{name}", out, chosen, dtypes.get_default_dtype())
    if not (chosen.is_floating_point or chosen.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    arange = namespace("torch")["arange"]
    options["dtype"] = chosen
    count = int(n / 2) + 1 if half else n  # rounded towards zero, as in C
    if count < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {count}: [{count}]"
        )
    middle = (n + 1) // 2
    # As PyTorch has it: multiplied, so that a spacing of 0 gives infinities.
    total = n * d
    factor = 1.0 / total if total else math.inf
    if out is not None:  # `arange` decides whether `out` keeps its shape
        result = arange(count, out=out, **options)
        if not half:
            result[middle:].sub_(n)
        return result.mul_(factor)
    result = arange(count, **options)
    if not half:
        result = fns.where(result >= middle, result - n, result)
    result = result * factor
    if requires_grad:
        result.requires_grad_(True)
    return result


def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of `fft`'s elements, for samples `d` apart.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.fftfreq.html

    >>> import torchshim as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    options = {"out": out, "dtype": dtype, "layout": layout, "device": device}
    options |= {"pin_memory": pin_memory, "requires_grad": requires_grad}
    return _frequencies("fftfreq", n, d, False, options)


def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The frequencies of `rfft`'s elements, for samples `d` apart.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.rfftfreq.html

    >>> import torchshim as torch
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    options = {"out": out, "dtype": dtype, "layout": layout, "device": device}
    options |= {"pin_memory": pin_memory, "requires_grad": requires_grad}
    return _frequencies("rfftfreq", n, d, True, options)


def _shifted(name: str, input: Any, dim: Any, up: int) -> Tensor:
    input = tensor_argument(f"fft_{name}", "input", 1, input)
    shape = tuple(input._tmeta.shape)
    if dim is None:
        dims = tuple(range(len(shape)))
    else:
        dims = integers(name, "dim", 2, dim)
    shifts = tuple((shape[wrapped(d, len(shape))] + up) // 2 for d in dims)
    return fns.roll(input, shifts, dims)


def fftshift(input: Tensor, dim: _ALL = None) -> Tensor:
    """Moves the frequency 0 from the front to the middle.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.fftshift.html

    >>> import torchshim as torch
    >>> torch.fft.fftshift(torch.arange(5))
    tensor([3, 4, 0, 1, 2])
    """
    return _shifted("fftshift", input, dim, 0)


def ifftshift(input: Tensor, dim: _ALL = None) -> Tensor:
    """The inverse of `fftshift`.

    https://docs.pytorch.org/docs/2.13/generated/torch.fft.ifftshift.html

    >>> import torchshim as torch
    >>> torch.fft.ifftshift(torch.arange(5))
    tensor([2, 3, 4, 0, 1])
    """
    return _shifted("ifftshift", input, dim, 1)


_overridable_all(globals(), "torch.fft")
