"""The two ways into the Fourier transforms: along one dimension, along several.

Each of the 18 functions of `torchshim.fft` is one of these with one of the kinds of
transforms: `both_halves`, `half`, `to_real`, `inverse_half`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._autocast import autocast_operand
from torchshim._core import dtypes
from torchshim._core.op import REGISTRY
from torchshim._derived import fns
from torchshim._functions._arguments import as_index, tensor_argument, wrong
from torchshim._functions.memory import write_into
from torchshim._ops.view_geometry import wrap_dim
from torchshim._tensor import Tensor

# Arguments ----------------------------------------------------------------------------


def integer(function: str, name: str, position: int, value: Any) -> int:
    found = as_index(value)
    if found is None:
        raise TypeError(wrong(f"fft_{function}", name, position, "int", value))
    return found


def integers(function: str, name: str, position: int, value: Any) -> tuple[int, ...]:
    one = as_index(value)
    if one is not None:
        return (one,)
    if not isinstance(value, (tuple, list)):
        expected = "tuple of ints"
        raise TypeError(wrong(f"fft_{function}", name, position, expected, value))
    return tuple(integer(function, name, position, v) for v in value)


def _promoted(input: Tensor, to_complex: bool) -> Tensor:
    """The input as numbers that can be transformed."""
    dtype = input._tmeta.dtype
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
    return input if dtype is input._tmeta.dtype else input.to(dtype)


def _check_real(name: str, input: Tensor, what: str = "real") -> None:
    dtype = input._tmeta.dtype
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
    want = "complex" if result._tmeta.dtype.is_complex else "floating point"
    have = tensor_argument(f"fft_{name}", "out", 0, out)._tmeta.dtype
    fits = have.is_complex if want == "complex" else have.is_floating_point
    if not fits:
        raise RuntimeError(
            f"{name} expects a {want} output tensor, but got {have.scalar_name}"
        )
    return write_into(REGISTRY[op], result, out, (input,))


# One dimension ------------------------------------------------------------------------


def one_dimension(
    name: str,
    transform: Callable[..., tuple[str, Tensor]],
    input: Any,
    n: Any,
    dim: Any,
    norm: Any,
    out: Any,
) -> Tensor:
    input = tensor_argument(f"fft_{name}", "input", 1, input)
    input = autocast_operand(f"fft_{name}", input)
    if n is not None:
        n = integer(name, "n", 2, n)
    dim = integer(name, "dim", 3, dim)
    _check_norm(name, norm)
    if name in ("rfft", "ihfft"):
        _check_real(name, input)
    x = _promoted(input, name in ("irfft", "hfft"))
    d = wrapped(dim, len(x._tmeta.shape))
    if n is None:
        n = x._tmeta.shape[d]
        n = 2 * (n - 1) if name in ("irfft", "hfft") else n
    _check_length(n)
    op, result = transform(x, (n,), (d,), norm)
    return _given(op, name, result, out, input)


_Result = tuple[str, Tensor]


def both_halves(x: Tensor, n: Any, d: Any, norm: Any, forward: bool) -> _Result:
    scale = _scale(norm, forward, n)
    if x._tmeta.dtype.is_complex:
        return "_fft_c2c", fns._fft_c2c(x, n, d, scale, forward)
    result = fns._fft_r2c(x, n, d, scale, False)
    return "_fft_r2c", result if forward else result.conj()


def half(x: Tensor, n: Any, d: Any, norm: Any, forward: bool) -> _Result:
    result = fns._fft_r2c(x, n, d, _scale(norm, forward, n), True)
    return "_fft_r2c", result if forward else result.conj()


def to_real(x: Tensor, n: Any, d: Any, norm: Any, forward: bool) -> _Result:
    return "_fft_c2r", fns._fft_c2r(x, n, d, _scale(norm, forward, n), forward)


# Several dimensions -------------------------------------------------------------------


def _shape_and_dims(x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The length given or there along each dimension that is transformed."""
    shape = tuple(x._tmeta.shape)
    if dim is not None:
        dims = [wrapped(d, len(shape)) for d in dim]
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


def wrapped(dim: int, ndim: int) -> int:
    """A dimension counted from the front, in a tensor that has any."""
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim, ndim)


def several_dimensions(
    function: str,
    transform: Callable[..., tuple[str, Tensor]],
    input: Any,
    s: Any,
    dim: Any,
    norm: Any,
    out: Any,
) -> Tensor:
    input = tensor_argument(f"fft_{function}", "input", 1, input)
    input = autocast_operand(f"fft_{function}", input)
    if s is not None:
        s = integers(function, "s", 2, s)
    if dim is not None or function.endswith("2"):
        dim = integers(function, "dim", 3, dim)
    _check_norm(function, norm)
    name = function.replace("2", "n")
    real = name in ("irfftn", "hfftn")
    if name == "rfftn":
        _check_real(name, input, "real-valued")
    whole = "r" not in name and "h" not in name
    lengths, dims = _shape_and_dims(input, s, dim)
    if not whole and not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    if real and (s is None or s[-1] == -1):
        last = 2 * (input._tmeta.shape[dims[-1]] - 1)
        for n in lengths[:-1]:
            _check_length(n)
        _check_length(input._tmeta.shape[dims[-1]])
        lengths[-1] = last
    for n in lengths:
        _check_length(n)
    x = _promoted(input, whole or real)
    if name == "ihfftn" and x._tmeta.dtype.is_complex:
        raise RuntimeError(
            "Only supports floating-point dtypes, but found: "
            f"{x._tmeta.dtype.scalar_name}"
        )
    op, result = transform(x, tuple(lengths), tuple(dims), norm)
    # PyTorch's `ifftn` calls itself `fftn` here.
    return _given(op, "fftn" if whole else name, result, out, input)


def inverse_half(x: Tensor, n: Any, d: Any, norm: Any) -> _Result:
    """`ihfftn`: the half along the last dimension, then the inverse of the others."""
    scale = _scale(norm, False, n)
    result = fns._fft_r2c(x, n[-1:], d[-1:], scale, True).conj()
    if len(d) == 1:
        return "_fft_r2c", result
    return "_fft_c2c", fns._fft_c2c(result, n[:-1], d[:-1], 1.0, False)
