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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from torchshim import _functions
from torchshim._core import dtypes
from torchshim._core.op import REGISTRY
from torchshim._derived import fns, namespace
from torchshim._functions._arguments import as_index, tensor_argument, wrong
from torchshim._functions.creation import out_dtype
from torchshim._functions.memory import write_into
from torchshim._ops.view_geometry import wrap_dim
from torchshim._tensor import Tensor

assert _functions.__all__

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

# Arguments ----------------------------------------------------------------------------


def _integer(function: str, name: str, position: int, value: Any) -> int:
    found = as_index(value)
    if found is None:
        raise TypeError(wrong(f"fft_{function}", name, position, "int", value))
    return found


def _integers(function: str, name: str, position: int, value: Any) -> tuple[int, ...]:
    one = as_index(value)
    if one is not None:
        return (one,)
    if not isinstance(value, (tuple, list)):
        expected = "tuple of ints"
        raise TypeError(wrong(f"fft_{function}", name, position, expected, value))
    return tuple(_integer(function, name, position, v) for v in value)


def _promoted(input: Tensor, to_complex: bool) -> Tensor:
    """The input as numbers that can be transformed."""
    dtype = input._meta.dtype
    if dtype.category < dtypes.FLOATING:
        dtype = dtypes.get_default_dtype()
    if dtype not in (
        dtypes.float32,
        dtypes.float64,
        dtypes.complex64,
        dtypes.complex128,
    ):
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_name}")
    if to_complex and not dtype.is_complex:
        dtype = dtype.to_complex()
    return input if dtype is input._meta.dtype else input.to(dtype)  # type: ignore[attr-defined]


def _check_real(name: str, input: Tensor, what: str = "real") -> None:
    dtype = input._meta.dtype
    if dtype.is_complex:
        raise RuntimeError(
            f"{name} expects a {what} input tensor, but got {dtype.scalar_name}"
        )


def _check_length(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _scale(norm: Any, forward: bool, lengths: Sequence[int]) -> float:
    total = math.prod(lengths)
    if norm is None or norm in ("backward", "forward"):
        return 1.0 if (norm == "forward") is not forward else 1 / total
    if norm == "ortho":
        return 1 / math.sqrt(total)
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _check_norm(function: str, norm: Any) -> None:
    if norm is not None and not isinstance(norm, str):
        raise TypeError(wrong(f"fft_{function}", "norm", 4, "str", norm))


def _given(op: str, name: str, result: Tensor, out: Any, input: Tensor) -> Tensor:
    """The result, in `out` where that is given."""
    if out is None:
        return result
    want = "complex" if result._meta.dtype.is_complex else "floating point"
    have = tensor_argument(f"fft_{name}", "out", 0, out)._meta.dtype
    fits = have.is_complex if want == "complex" else have.is_floating_point
    if not fits:
        raise RuntimeError(
            f"{name} expects a {want} output tensor, but got {have.scalar_name}"
        )
    return write_into(REGISTRY[op], result, out, (input,))


# One dimension ------------------------------------------------------------------------


def _one(
    name: str,
    transform: Callable[..., tuple[str, Tensor]],
    input: Any,
    n: Any,
    dim: Any,
    norm: Any,
    out: Any,
) -> Tensor:
    input = tensor_argument(f"fft_{name}", "input", 1, input)
    if n is not None:
        n = _integer(name, "n", 2, n)
    dim = _integer(name, "dim", 3, dim)
    _check_norm(name, norm)
    if name in ("rfft", "ihfft"):
        _check_real(name, input)
    x = _promoted(input, name in ("irfft", "hfft"))
    if not x._meta.shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, len(x._meta.shape))
    if n is None:
        n = x._meta.shape[d]
        n = 2 * (n - 1) if name in ("irfft", "hfft") else n
    _check_length(n)
    op, result = transform(x, (n,), (d,), norm)
    return _given(op, name, result, out, input)


_Result = tuple[str, Tensor]


def _complex(x: Tensor, n: Any, d: Any, norm: Any, forward: bool) -> _Result:
    scale = _scale(norm, forward, n)
    if x._meta.dtype.is_complex:
        return "_fft_c2c", fns._fft_c2c(x, n, d, scale, forward)
    result = fns._fft_r2c(x, n, d, scale, False)
    return "_fft_r2c", result if forward else fns.conj_values(result)


def _half(x: Tensor, n: Any, d: Any, norm: Any, forward: bool) -> _Result:
    result = fns._fft_r2c(x, n, d, _scale(norm, forward, n), True)
    return "_fft_r2c", result if forward else fns.conj_values(result)


def _real(x: Tensor, n: Any, d: Any, norm: Any, forward: bool) -> _Result:
    return "_fft_c2r", fns._fft_c2r(x, n, d, _scale(norm, forward, n), forward)


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
    return _one("fft", partial(_complex, forward=True), input, n, dim, norm, out)


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
    return _one("ifft", partial(_complex, forward=False), input, n, dim, norm, out)


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
    return _one("rfft", partial(_half, forward=True), input, n, dim, norm, out)


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
    return _one("irfft", partial(_real, forward=False), input, n, dim, norm, out)


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
    return _one("hfft", partial(_real, forward=True), input, n, dim, norm, out)


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
    return _one("ihfft", partial(_half, forward=False), input, n, dim, norm, out)


# Several dimensions -------------------------------------------------------------------


def _shape_and_dims(x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The length given or there along each dimension that is transformed."""
    shape = tuple(x._meta.shape)
    if dim is not None:
        dims = [_wrapped(d, len(shape)) for d in dim]
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError(
                "When given, dim and shape arguments must have the same length"
            )
    elif s is not None:
        if len(s) > len(shape):
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has "
                f"{len(shape)} dimensions."
            )
        dims = list(range(len(shape) - len(s), len(shape)))
    else:
        dims = list(range(len(shape)))
    asked = [-1] * len(dims) if s is None else list(s)
    lengths = [shape[d] if n == -1 else n for n, d in zip(asked, dims, strict=True)]
    return lengths, dims


def _wrapped(dim: int, ndim: int) -> int:
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def _several(
    function: str,
    transform: Callable[..., tuple[str, Tensor]],
    input: Any,
    s: Any,
    dim: Any,
    norm: Any,
    out: Any,
) -> Tensor:
    input = tensor_argument(f"fft_{function}", "input", 1, input)
    if s is not None:
        s = _integers(function, "s", 2, s)
    if dim is not None or function.endswith("2"):
        dim = _integers(function, "dim", 3, dim)
    _check_norm(function, norm)
    name = function.replace("2", "n")
    to_real = name in ("irfftn", "hfftn")
    if name == "rfftn":
        _check_real(name, input, "real-valued")
    whole = "r" not in name and "h" not in name
    if not whole and not (input._meta.shape if dim is None else dim):
        raise RuntimeError(f"{name} must transform at least one axis")
    lengths, dims = _shape_and_dims(input, s, dim)
    if to_real and (s is None or s[-1] == -1):
        last = 2 * (input._meta.shape[dims[-1]] - 1)
        for n in lengths[:-1]:
            _check_length(n)
        _check_length(input._meta.shape[dims[-1]])
        lengths[-1] = last
    for n in lengths:
        _check_length(n)
    x = _promoted(input, whole or to_real)
    if name == "ihfftn" and x._meta.dtype.is_complex:
        raise RuntimeError(
            "Only supports floating-point dtypes, but found: "
            f"{x._meta.dtype.scalar_name}"
        )
    op, result = transform(x, tuple(lengths), tuple(dims), norm)
    return _given(op, name, result, out, input)


def _half_several(x: Tensor, n: Any, d: Any, norm: Any) -> _Result:
    """`ihfftn`: the half along the last dimension, then the inverse of the others."""
    scale = _scale(norm, False, n)
    result = fns.conj_values(fns._fft_r2c(x, n[-1:], d[-1:], scale, True))
    if len(d) == 1:
        return "_fft_r2c", result
    return "_fft_c2c", fns._fft_c2c(result, n[:-1], d[:-1], 1.0, False)


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
    return _several("fft2", partial(_complex, forward=True), input, s, dim, norm, out)


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
    return _several("ifft2", partial(_complex, forward=False), input, s, dim, norm, out)


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
    return _several("fftn", partial(_complex, forward=True), input, s, dim, norm, out)


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
    return _several("ifftn", partial(_complex, forward=False), input, s, dim, norm, out)


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
    return _several("rfft2", partial(_half, forward=True), input, s, dim, norm, out)


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
    return _several("irfft2", partial(_real, forward=False), input, s, dim, norm, out)


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
    return _several("rfftn", partial(_half, forward=True), input, s, dim, norm, out)


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
    return _several("irfftn", partial(_real, forward=False), input, s, dim, norm, out)


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
    return _several("hfft2", partial(_real, forward=True), input, s, dim, norm, out)


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
    return _several("ihfft2", _half_several, input, s, dim, norm, out)


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
    return _several("hfftn", partial(_real, forward=True), input, s, dim, norm, out)


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
    return _several("ihfftn", _half_several, input, s, dim, norm, out)


# Frequencies --------------------------------------------------------------------------


def _frequencies(name: str, n: Any, d: Any, half: bool, options: Any) -> Tensor:
    n = _integer(name, "n", 1, n)
    if not isinstance(d, (int, float)):
        raise TypeError(wrong(f"fft_{name}", "d", 2, "float", d))
    out = options.pop("out")
    chosen = options["dtype"]
    requires_grad = options.pop("requires_grad")
    chosen = out_dtype(name, out, chosen, dtypes.get_default_dtype())
    if not (chosen.is_floating_point or chosen.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    arange = namespace("torch")["arange"]
    options["dtype"] = chosen
    if half:
        result = arange(n // 2 + 1, **options)
    else:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: [{n}]"
            )
        result = arange(n, **options)
        middle = (n + 1) // 2
        result = fns.where(result >= middle, result - n, result)
    # As PyTorch has it: multiplied, so that a spacing of 0 gives infinities.
    total = n * d
    result = result * (1.0 / total if total else math.inf)
    if requires_grad:
        result.requires_grad_(True)
    return result if out is None else write_into(None, result, out, ())


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
    shape = tuple(input._meta.shape)
    if dim is None:
        dims = tuple(range(len(shape)))
    else:
        dims = _integers(name, "dim", 2, dim)
    shifts = tuple((shape[wrap_dim(d, len(shape))] + up) // 2 for d in dims)
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
