"""Random arrays on the host, bit for bit as PyTorch draws them on a CPU.

Every function takes a generator and returns a flat NumPy array in the order in which
PyTorch's kernel visits the elements; it consumes from the generator exactly what
PyTorch consumes. Dtypes are NumPy dtypes or their names ("bfloat16" included).
Algorithms: the CPU distribution kernels of PyTorch 2.13 on a machine with AVX2
(AVX-512 machines give the same bits), and the platform's libm for doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from torchshim._core import normal_program
from torchshim._core.host_dtypes import (
    NAMES,
    DTypeLike,
    as_dtype,
    check_bound,
    check_floating,
    check_kernel,
    digits_of,
)
from torchshim._core.host_math import (
    HALVES,
    cast,
    fma32,
    fma64,
    libm,
    log,
    sincos,
    units,
)
from torchshim._core.mt19937 import MT19937

# So many doubles stay in the processor's cache.
_BLOCK = 1 << 13


def unit64(generator: MT19937, size: int) -> np.ndarray:
    """`size` doubles in [0, 1), two draws each."""
    return (generator.draw64(size) & np.uint64(2**53 - 1)) * 2.0**-53


def unit32(generator: MT19937, size: int) -> np.ndarray:
    """`size` floats in [0, 1), one draw each."""
    return units(generator.draw32(size).astype(np.uint32))


def uniform(
    generator: MT19937,
    size: int,
    dtype: DTypeLike = "float32",
    low: float = 0.0,
    high: float = 1.0,
) -> np.ndarray:
    """Uniform numbers in [low, high), as `Tensor.uniform_` and `torch.rand`.

    Complex dtypes get real and imaginary parts drawn in turn. RuntimeError for
    bounds that the dtype can't hold or that are out of order.

    >>> uniform(MT19937(0), 2)
    array([0.4962566, 0.7682218], dtype=float32)
    """
    dtype = as_dtype(dtype)
    if dtype == np.float32 and (low, high) == (0, 1):
        return unit32(generator, size)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return uniform(generator, 2 * size, part, low, high).view(dtype)
    check_floating(dtype, "check_uniform_bounds")
    largest = float(ml_dtypes.finfo(dtype).max)
    check_bound("from", low, -largest, largest, dtype)
    check_bound("to", high, -largest, largest, dtype)
    if not low <= high:
        raise RuntimeError(
            "uniform_ expects to return a [from, to) range, but found "
            f"from={low:g} > to={high:g}"
        )
    if not high - low <= largest:
        raise RuntimeError(
            "uniform_ expects to-from <= std::numeric_limits<"
            f"{NAMES[dtype.name][0]}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )
    if dtype == np.float64:
        values = fma64(unit64(generator, size), high - low, low)
        first, last = low, high
    else:
        first, last = np.float32(low), np.float32(high)
        units = unit32(generator, size)
        if (first, last) == (0, 1):
            values = cast(units, dtype)
        else:
            values = np.empty(size, dtype)
            for start in range(0, size, _BLOCK):
                block = units[start : start + _BLOCK].astype(np.float64)
                block = fma32(block, float(last - first), first)
                values[start : start + _BLOCK] = cast(block, dtype)
    # Rounding to a narrow type can reach the upper bound, which is excluded.
    values[values == np.asarray(last).astype(dtype)] = first
    return values


def normal(
    generator: MT19937,
    size: int,
    dtype: DTypeLike = "float32",
    mean: float = 0.0,
    std: float = 1.0,
    *,
    contiguous: bool = True,
) -> np.ndarray:
    """Normal numbers, as `Tensor.normal_` and `torch.randn`.

    PyTorch fills contiguous tensors of 16 elements and more in blocks; fewer, or a
    tensor that isn't contiguous, element by element with the second value of each
    pair kept in the generator for a later call. RuntimeError unless std >= 0.

    >>> normal(MT19937(0), 2)
    array([ 1.5409961, -0.2934289], dtype=float32)
    """
    dtype = as_dtype(dtype)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        std = std / math.sqrt(2)
        values = normal(generator, 2 * size, part, mean, std, contiguous=contiguous)
        return values.view(dtype)
    if size == 0:
        return np.empty(0, dtype)
    check_floating(dtype, "normal_kernel_cpu")
    if size < 16 or not contiguous:
        return cast(_normal_pairs(generator, size, mean, std), dtype)
    # In blocks of 16; the last 16 of an unfinished block are drawn again.
    whole, rest = size // 16 * 16, size % 16
    wide = np.float64 if dtype == np.float64 else np.float32
    values = np.empty(whole + 16 * bool(rest), wide)
    fill = _fill64 if dtype == np.float64 else normal_program.fill
    # Uniforms of the unfinished block are drawn too, except in 16-bit types.
    skipped = 0 if dtype in HALVES else rest
    fill(generator, values.reshape(-1, 16), mean, std, skipped)
    if rest:
        values[size - 16 : size] = values[whole:]
    return values[:size].astype(dtype, copy=False)


def _normal_pairs(generator: MT19937, size: int, mean: float, std: float) -> np.ndarray:
    """The path for single elements: doubles, made in pairs, cosine before sine."""
    values = np.empty(size)
    start = 0
    if size and generator.next_double_normal_sample is not None:
        values[0] = generator.next_double_normal_sample
        generator.next_double_normal_sample = None
        start = 1
    pairs = (size - start + 1) // 2
    u1, u2 = unit64(generator, 2 * pairs).reshape(pairs, 2).T
    radius = np.sqrt(-2.0 * libm(math.log1p, -u2))
    sine, cosine = sincos(2.0 * math.pi * u1)
    made = np.stack([radius * cosine, radius * sine], 1).ravel()
    values[start:] = made[: size - start]
    if made.size > size - start:
        generator.next_double_normal_sample = float(made[-1])
    return fma64(values, std, mean)


def _fill64(
    generator: MT19937, values: np.ndarray, mean: float, std: float, skipped: int
) -> None:
    uniforms = unit64(generator, values.size + skipped)
    if skipped:
        uniforms = np.delete(uniforms, slice(values.size - 16, -16))
    uniforms = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2.0 * libm(math.log, (1.0 - uniforms[:, 0]).ravel()))
    sine, cosine = sincos(2.0 * math.pi * uniforms[:, 1])
    radius = radius.reshape(-1, 8)
    made = np.concatenate([radius * cosine, radius * sine], 1)
    values[:] = fma64(made, std, mean)


def normal_tensors(
    generator: MT19937, mean: np.ndarray | float, std: np.ndarray | float
) -> np.ndarray:
    """`torch.normal` with arrays for mean, std or both; the result has their shape.

    RuntimeError for a negative std.

    >>> normal_tensors(MT19937(0), np.float32([1, 2]), np.float32([0, 1]))
    array([1.       , 1.7065711], dtype=float32)
    """
    if not isinstance(std, np.ndarray):
        mean = np.asarray(mean)
        drawn = normal(generator, mean.size, mean.dtype, 0.0, float(std))
        return _in_place(np.add, drawn.reshape(mean.shape), mean)
    if std.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.size and not std.min() >= 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    if not isinstance(mean, np.ndarray):
        mean = np.asarray(mean).astype(std.dtype)
        dtype = std.dtype
    else:
        dtype = mean.dtype
    shape = np.broadcast_shapes(mean.shape, std.shape)
    drawn = normal(generator, math.prod(shape), dtype).reshape(shape)
    return _in_place(np.add, _in_place(np.multiply, drawn, std), mean)


def _in_place(
    function: Callable[..., np.ndarray], output: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """`output.mul_(other)`, `output.add_(other)`: computed wide, rounded back."""
    wide = np.float32 if output.dtype in HALVES else output.dtype
    if other.ndim:
        wide = np.result_type(wide, np.float32 if other.dtype in HALVES else other)
    # Of arrays without dimensions NumPy makes scalars.
    result = np.asarray(function(output.astype(wide), other.astype(wide)))
    return cast(result, output.dtype)


def log_normal(
    generator: MT19937,
    size: int,
    dtype: DTypeLike = "float32",
    mean: float = 1.0,
    std: float = 2.0,
) -> np.ndarray:
    """exp of normal numbers, as `Tensor.log_normal_`; RuntimeError unless std > 0.

    >>> log_normal(MT19937(0), 2).round(4)
    array([59.2634,  1.5116], dtype=float32)
    """
    dtype = as_dtype(dtype)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if size == 0:
        return np.empty(0, dtype)
    check_floating(dtype, "log_normal_cpu")
    values = _normal_pairs(generator, size, mean, std)
    return cast(libm(_exp, values), dtype)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def cauchy(
    generator: MT19937,
    size: int,
    dtype: DTypeLike = "float32",
    median: float = 0.0,
    sigma: float = 1.0,
) -> np.ndarray:
    """Cauchy numbers, as `Tensor.cauchy_`; RuntimeError unless sigma > 0.

    >>> cauchy(MT19937(0), 2).round(4)
    array([10.5977,  0.7648], dtype=float32)
    """
    dtype = as_dtype(dtype)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    _check_continuous(dtype, "Cauchy", 1)
    angle = math.pi * (unit64(generator, size) - 0.5)
    return cast(fma64(libm(math.tan, angle), sigma, median), dtype)


def exponential(
    generator: MT19937, size: int, dtype: DTypeLike = "float32", rate: float = 1.0
) -> np.ndarray:
    """Exponential numbers, as `Tensor.exponential_`; RuntimeError unless rate > 0.

    >>> exponential(MT19937(0), 2).round(4)
    array([3.5083, 1.2304], dtype=float32)
    """
    dtype = as_dtype(dtype)
    if not rate > 0:
        raise RuntimeError(
            f"exponential_ expects lambda > 0.0, but found lambda={rate:g}"
        )
    if size == 0:
        return np.empty(0, dtype)
    _check_continuous(dtype, "Exponential", 0)
    logs = libm(math.log1p, -unit64(generator, size))
    return cast(-1.0 / rate * logs, dtype)


def _check_continuous(dtype: np.dtype, name: str, spelling: int) -> None:
    if not digits_of(dtype):
        raise RuntimeError(
            f"{name} distribution is a continuous probability distribution. dtype "
            f"must be a floating point but you specified {NAMES[dtype.name][spelling]}"
        )


def geometric(generator: MT19937, size: int, dtype: DTypeLike, p: float) -> np.ndarray:
    """Trials up to the first success, as `Tensor.geometric_`; 0 < p < 1.

    >>> geometric(MT19937(0), 4, "int64", 0.5)
    array([1, 1, 2, 1])
    """
    dtype = as_dtype(dtype)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if size == 0:
        return np.empty(0, dtype)
    check_kernel(dtype, "geometric_cpu", ("bool",))
    trials = np.ceil(log(unit64(generator, size)) / math.log1p(-p))
    # C++ turns a double into a narrow integer by way of a wide one.
    return cast(trials.astype(np.int64) if dtype.kind in "iu" else trials, dtype)


def bernoulli(
    generator: MT19937, size: int, dtype: DTypeLike, p: float | np.ndarray
) -> np.ndarray:
    """Ones with probability p, as `Tensor.bernoulli_` and the mask of dropout.

    A number p is compared in double; an array (flat, one entry an element) in its
    own precision, which also decides how much is drawn.

    >>> bernoulli(MT19937(0), 6, "float32", 0.5)
    array([0., 0., 1., 0., 0., 0.], dtype=float32)
    """
    dtype = as_dtype(dtype)
    if isinstance(p, np.ndarray):
        if size == 0:
            return np.empty(0, dtype)
        check_kernel(dtype, "bernoulli_tensor_cpu_self_")
        check_floating(p.dtype, "bernoulli_tensor_cpu_p_")
        if p.dtype != np.float64:
            p = p.astype(np.float32)
        if not ((p >= 0) & (p <= 1)).all():
            raise RuntimeError(
                "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could "
                "this error message be improved?  If so, please report an enhancement "
                "request to PyTorch.)"
            )
        unit = unit64 if p.dtype == np.float64 else unit32
        return (unit(generator, size) < p).astype(dtype)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if size == 0:
        return np.empty(0, dtype)
    check_kernel(dtype, "bernoulli_scalar_cpu_")
    return (unit64(generator, size) < p).astype(dtype)
