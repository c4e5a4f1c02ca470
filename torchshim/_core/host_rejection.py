"""Random numbers by rejection, bit for bit as PyTorch's on a CPU.

How much is drawn depends on the values here, so these are loops over single doubles.
The conventions are those of `host_random`; results come in the order of the arguments.
Algorithms: Marsaglia and Tsang (2000) for gamma, Hörmann (1993) for Poisson and
binomial numbers, as PyTorch 2.13 has them (aten/src/ATen/native/Distributions).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from torchshim._core.host_dtypes import check_kernel
from torchshim._core.host_math import cast
from torchshim._core.host_random import unit64
from torchshim._core.mt19937 import MT19937

Uniform = Callable[[], float]


class _Stream:
    """Doubles in [0, 1) one by one; drawn in blocks, and given back if not used."""

    def __init__(self, generator: MT19937, block: int) -> None:
        self.generator = generator
        self.before = generator.clone()
        self.block = min(max(block, 8), 1 << 14)
        self.values: list[float] = []
        self.drawn = 0

    def __enter__(self) -> Uniform:
        return self.next

    def next(self) -> float:
        if not self.values:
            self.values = unit64(self.generator, self.block)[::-1].tolist()
            self.drawn += self.block
        return self.values.pop()

    def __exit__(self, *error: object) -> None:
        if not self.drawn:
            return
        used = self.drawn - len(self.values)
        kept = self.generator.next_double_normal_sample
        self.generator.copy_from(self.before)
        self.generator.draw32(2 * used)
        self.generator.next_double_normal_sample = kept


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan


# Poisson ------------------------------------------------------------------------------


def poisson(generator: MT19937, rate: np.ndarray) -> np.ndarray:
    """Poisson numbers with these rates, as `torch.poisson`.

    RuntimeError for a rate that is negative or NaN.

    >>> poisson(MT19937(0), np.float32([1, 5, 20]))
    array([ 2.,  6., 19.], dtype=float32)
    """
    if rate.size == 0:
        return rate.copy()
    check_kernel(rate.dtype, "poisson_cpu", _NOT_FLOATING)
    made = np.empty(rate.size)
    with _Stream(generator, 4 * rate.size) as uniform:
        for i, each in enumerate(rate.astype(np.float64).reshape(-1).tolist()):
            made[i] = _poisson_one(each, uniform)
    return cast(made.reshape(rate.shape), rate.dtype)


def _poisson_one(rate: float, uniform: Uniform) -> float:
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate >= 10:
        return _poisson_large(rate, uniform)
    if rate == 0:
        return 0.0
    limit, product, count = math.exp(-rate), 1.0, 0
    while True:
        product *= uniform()
        if product <= limit:
            return float(count)
        count += 1


def _long(x: float) -> int:
    """The integer below, as C converts it: the least of 64 bits if there is none."""
    return math.floor(x) if abs(x) < 2.0**63 else -(2**63)


def _poisson_large(rate: float, uniform: Uniform) -> float:
    root, log_rate = math.sqrt(rate), math.log(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    sure = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = uniform() - 0.5
        v = uniform()
        rest = 0.5 - abs(u)
        if rest == 0:
            continue
        k = _long((2 * a / rest + b) * u + rate + 0.43)
        if rest >= 0.07 and v <= sure:
            return float(k)
        if k < 0 or (rest < 0.013 and v > rest):
            continue
        left = _log(v) + math.log(inverse_alpha) - math.log(a / (rest * rest) + b)
        if left <= -rate + k * log_rate - math.lgamma(k + 1):
            return float(k)


# Binomial -----------------------------------------------------------------------------

# What Stirling's formula leaves out of log(k!), for k = 0, 1, …
_TAILS = (
    *(0.0810614667953272, 0.0413406959554092, 0.0276779256849983),
    *(0.02079067210376509, 0.0166446911898211, 0.0138761288230707),
    *(0.0118967099458917, 0.0104112652619720, 0.00925546218271273),
    0.00833056343336287,
)


def binomial(generator: MT19937, count: np.ndarray, prob: np.ndarray) -> np.ndarray:
    """Binomial numbers, as `torch.binomial`; arrays of one shape.

    A count below 0 counts as 0; NaN where one of the two is.

    >>> binomial(MT19937(0), np.float32([5, 100]), np.float32([0.5, 0.5]))
    array([ 4., 55.], dtype=float32)
    """
    if count.size:
        check_kernel(count.dtype, "binomial_cpu", ("float16", "bfloat16"))
    made = np.empty(count.size)
    counts, probs = (x.astype(np.float64).reshape(-1).tolist() for x in (count, prob))
    with _Stream(generator, 4 * count.size) as uniform:
        for i, (n, p) in enumerate(zip(counts, probs, strict=True)):
            made[i] = _binomial_one(n, p, uniform)
    return cast(made.reshape(count.shape), count.dtype)


def _binomial_one(n: float, p: float, uniform: Uniform) -> float:
    if n <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return n
    if math.isnan(n) or math.isnan(p):
        return math.nan
    if p > 0.5:
        return n - _binomial_below(n, 1.0 - p, uniform)
    return _binomial_below(n, p, uniform)


def _binomial_below(n: float, p: float, uniform: Uniform) -> float:
    if n * p >= 10:
        return _binomial_large(n, p, uniform)
    log_fail, total, successes = math.log1p(-p), 0.0, 0
    while True:
        u = uniform()
        total += math.inf if u == 0 else math.ceil(math.log(u) / log_fail)
        if total > n:
            return float(successes)
        successes += 1


def _binomial_large(n: float, p: float, uniform: Uniform) -> float:
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    sure = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = math.floor((n + 1) * p)
    while True:
        u = uniform() - 0.5
        v = uniform()
        rest = 0.5 - abs(u)
        if rest == 0:
            continue
        k = math.floor((2 * a / rest + b) * u + c)
        if k < 0 or k > n:
            continue
        if rest >= 0.07 and v <= sure:
            return float(k)
        v = _log(v * alpha / (a / (rest * rest) + b))
        bound = (
            (m + 0.5) * math.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * math.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * math.log(r * (n - k + 1) / (k + 1))
            + _tail(m)
            + _tail(n - m)
            - _tail(k)
            - _tail(n - k)
        )
        if v <= bound:
            return float(k)


def _tail(k: float) -> float:
    if k < len(_TAILS):
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


# Gamma and Dirichlet ------------------------------------------------------------------

_NOT_FLOATING = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("uint16", "uint32", "uint64", "complex64", "complex128"),
)
# Constants of the C++ code that are rounded to float there.
_THIRD, _SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))


def standard_gamma(generator: MT19937, shape: np.ndarray) -> np.ndarray:
    """Gamma numbers with these shape parameters, as `torch._standard_gamma`.

    >>> standard_gamma(MT19937(0), np.float32([1, 3])).round(4)
    array([2.8824, 2.2156], dtype=float32)
    """
    if shape.size == 0:
        return shape.copy()
    check_kernel(shape.dtype, "gamma_cpu", (*_NOT_FLOATING, "float16", "bfloat16"))
    # In float32 what is derived from the shape alone is rounded to float32.
    rounded = _to_float32 if shape.dtype == np.float32 else float
    made = cast(_gammas(generator, shape, rounded), shape.dtype)
    return np.maximum(made, np.finfo(shape.dtype).tiny)


def _to_float32(value: float) -> float:
    return float(np.float32(value))


def _gammas(
    generator: MT19937, shape: np.ndarray, rounded: Callable[[float], float] = float
) -> np.ndarray:
    made = np.empty(shape.size)
    with _Stream(generator, 4 * shape.size) as uniform:
        normal = _normals(generator, uniform)
        for i, each in enumerate(shape.astype(np.float64).reshape(-1).tolist()):
            made[i] = _gamma_one(each, uniform, normal, rounded)
    return made.reshape(shape.shape)


def _normals(generator: MT19937, uniform: Uniform) -> Callable[[], float]:
    """Normal numbers in pairs; the second of a pair is kept in the generator."""

    def normal() -> float:
        kept = generator.next_double_normal_sample
        if kept is not None:
            generator.next_double_normal_sample = None
            return kept
        angle = 2.0 * math.pi * uniform()
        radius = math.sqrt(-2.0 * math.log1p(-uniform()))
        generator.next_double_normal_sample = radius * math.sin(angle)
        return radius * math.cos(angle)

    return normal


def _gamma_one(
    shape: float,
    uniform: Uniform,
    normal: Callable[[], float],
    rounded: Callable[[float], float],
) -> float:
    scale = 1.0
    if shape < 1:
        if shape == 0:
            return 0.0
        power = rounded(1.0 / shape)
        scale = math.pow(1 - uniform(), power) if power > 0 else math.nan
        shape = rounded(shape + 1.0)
    d = rounded(shape - _THIRD)
    if not d > 0:
        return math.nan
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal()
        y = 1.0 + c * x
        while y <= 0:
            x = normal()
            y = 1.0 + c * x
        v = y * y * y
        u = 1 - uniform()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if math.log(u) < 0.5 * square + d * (1.0 - v + math.log(v)):
            return scale * d * v


def dirichlet(generator: MT19937, shape: np.ndarray) -> np.ndarray:
    """Gamma numbers divided by their sum over the last dimension, strictly within
    0 and 1, as `torch._sample_dirichlet`."""
    if shape.size == 0:
        return shape.copy()
    check_kernel(shape.dtype, "dirichlet", (*_NOT_FLOATING, "float16", "bfloat16"))
    made = np.maximum(_gammas(generator, shape), np.finfo(np.float64).tiny)
    total = made.sum(-1, keepdims=True) if made.ndim else made
    parts = cast(made / total, shape.dtype)
    last = np.nextafter(shape.dtype.type(1), shape.dtype.type(0))
    return np.minimum(last, np.maximum(np.finfo(shape.dtype).tiny, parts))
