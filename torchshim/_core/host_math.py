"""Host arithmetic to the bit: what C++ and AVX2 code computes, in NumPy.

NumPy's own functions may differ from the C library in the last bit, and NumPy has no
fused multiply-add; PyTorch's CPU random kernels use both. Where many numbers are drawn,
`normal_program` compiles what stands here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = (np.dtype(np.float16), BFLOAT16)


def cast(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """As a C++ conversion to PyTorch's scalar type: the 16-bit ones go by float."""
    if values.dtype == dtype:
        return values
    if dtype in HALVES:
        values = values.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype, copy=False)


def libm(function: Callable[[float], float], values: np.ndarray) -> np.ndarray:
    """The platform's libm: NumPy's own SIMD versions differ in the last bit."""
    return np.fromiter(map(function, values.tolist()), np.float64, values.size)


def sincos(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """libm's sine and cosine, both at once through its complex exponential."""
    turned: Any = np.zeros(angle.shape, np.complex128)
    turned.imag = angle
    turned = np.exp(turned)
    return turned.imag, turned.real


def log(values: np.ndarray) -> np.ndarray:
    zero = values == 0  # math.log raises where the C function gives -inf
    if zero.any():
        result = libm(math.log, np.where(zero, 1.0, values))
        result[zero] = -np.inf
        return result
    return libm(math.log, values)


def _round_to_odd(total: np.ndarray, error: np.ndarray) -> np.ndarray:
    """The double next to total + error whose last bit is set, unless it is exact."""
    bits = total.view(np.int64).copy()
    step = np.where((error > 0) == (total > 0), 1, -1)
    # An odd `total` is already one of the two neighbours that rounding to odd wants.
    bits += np.where((error != 0) & (bits & 1 == 0), step, 0)
    return bits.view(np.float64)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def fma64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """a * b + c with one rounding, in double (Boldo and Melquiond's algorithm)."""
    if c == 0.0 or b == 1.0 or not (math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    split = 134217729.0
    a_high = a * split - (a * split - a)
    a_low = a - a_high
    b_high = b * split - (b * split - b)
    b_low = b - b_high
    product = a * b
    error = a_low * b_low - (
        ((product - a_high * b_high) - a_low * b_high) - a_high * b_low
    )
    low_sum, low_error = _two_sum(np.full_like(a, c), error)
    high_sum, high_error = _two_sum(product, low_sum)
    result = high_sum + _round_to_odd(*_two_sum(high_error, low_error))
    # Splitting overflows on huge numbers; there the last bit is not worth a branch.
    return np.where(np.isfinite(result), result, product + c)


def fma32(a: np.ndarray, b: Any, c: Any) -> np.ndarray:
    """a * b + c with one rounding to float32; operands are float32 held as doubles.

    The product is exact in double, so that only a sum which lands exactly half way
    between two floats can be rounded twice: those few are moved off the middle.
    """
    product = a * b
    total = product + c
    middle = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    if middle.any():
        where = np.flatnonzero(middle)
        addend = np.broadcast_to(c, total.shape)[where]
        total[where] = _round_to_odd(*_two_sum(product[where], addend))
    return float32(total)


def float32(values: np.ndarray) -> np.ndarray:
    """Rounded to float32, held as doubles."""
    return values.astype(np.float32).astype(np.float64)


def _as_float32(*values: float) -> list[float]:
    return [float(np.float32(value)) for value in values]


# The Cephes polynomials of the AVX2 code, as float32 numbers.
_LOG = _as_float32(
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1),
    *(1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1),
    3.3333331174e-1,
)
_SIN = _as_float32(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COS = _as_float32(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_PI_OVER_4 = _as_float32(
    -0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8
)
_LN2_LOW, _LN2_HIGH = _as_float32(-2.12194440e-4, 0.693359375)
_SQRT_HALF = np.float32(0.707106781186547524)
_FOUR_OVER_PI = np.float32(1.27323954473516)
TWO_PI = np.float32(2 * math.pi)


# The multiply-adds of `box_muller` whose sum may not be exact in double.
_STEPS = len(_LOG) + len(_SIN) + len(_COS) + 2


class Fused:
    """Multiply-adds of float32 arrays of up to some size, with one rounding each.

    Sums in double are kept, and looked at together at the end, `Careful` looks at each:
    one that lands half way between two floats may have been rounded before.
    """

    arrays: Any = np

    def __init__(self, size: int) -> None:
        self._totals = np.empty((_STEPS, size))
        self._used = 0

    def __call__(self, a: np.ndarray, b: Any, c: Any) -> np.ndarray:
        total = self._totals[self._used, : len(a)]
        self._used += 1
        np.multiply(a, b, out=total, dtype=np.float64)
        total += c
        return total.astype(np.float32)

    @staticmethod
    def exact(a: np.ndarray, b: Any, c: Any) -> np.ndarray:
        """One whose sum is exact in double."""
        total = np.multiply(a, b, dtype=np.float64)
        total += c
        return total.astype(np.float32)

    def half_way(self, size: int) -> np.ndarray:
        """Where a sum of so many lay half way between two floats; begins anew."""
        bits = self._totals[: self._used, :size].view(np.int64)
        self._used = 0
        bits &= 0x1FFFFFFF
        found = bits == 0x10000000
        return np.unique(found.nonzero()[1]) if found.any() else np.empty(0, np.intp)


class Careful:
    """Multiply-adds like `Fused`'s, each looked at at once."""

    arrays: Any = np
    exact = staticmethod(Fused.exact)

    def __call__(self, a: np.ndarray, b: Any, c: Any) -> np.ndarray:
        return fma32(np.asarray(a, np.float64), b, c).astype(np.float32)


class Traced:
    """Multiply-adds like `Fused`'s in a function of JAX, for 64 bits.

    `half_way` says of each element whether a sum of it lay half way between two floats.
    """

    arrays: Any = jnp

    def __init__(self) -> None:
        self.half_way: Any = False

    def __call__(self, a: Any, b: Any, c: Any) -> Any:
        total = _wide(a) * _wide(b) + _wide(c)
        self.half_way |= total.view(np.int64) & 0x1FFFFFFF == 0x10000000
        return total.astype(np.float32)

    @staticmethod
    def exact(a: Any, b: Any, c: Any) -> Any:
        """One whose sum is exact in double."""
        return (_wide(a) * _wide(b) + _wide(c)).astype(np.float32)


def _wide(value: Any) -> Any:
    return value if isinstance(value, float) else value.astype(np.float64)


def units(bits: Any) -> Any:
    """float32 numbers in [0, 1) out of the low 24 of 32 bits, as NumPy's or JAX's."""
    return (bits & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(2.0**-24)


def box_muller(
    radii: Any, angles: Any, std: Any, mean: Any, fma: Any
) -> tuple[Any, Any]:
    """Pairs of normal float32 numbers of 32 bits for each, as the AVX2 code has them.

    `fma` makes the multiply-adds, of NumPy's arrays or JAX's.
    """
    log = log_avx(np.float32(1) - units(radii), fma)
    radius = fma.arrays.sqrt(np.float32(-2) * log)
    sine, cosine = sincos_avx(TWO_PI * units(angles), fma)
    cosine *= radius
    sine *= radius
    if fma.arrays is np and (std, mean) == (1, 0):
        return cosine, sine
    return fma(cosine, std, mean), fma(sine, std, mean)


def log_avx(x: Any, fma: Any) -> Any:
    """ln of positive float32 multiples of 2**-24 up to 1."""
    bits = x.view(np.int32)
    exponent = ((bits >> 23) - 126).astype(np.float32)
    mantissa = ((bits & 0x007FFFFF) | 0x3F000000).view(np.float32)
    small = mantissa < _SQRT_HALF
    exponent -= small
    x = (mantissa - np.float32(1)) + fma.arrays.where(small, mantissa, np.float32(0))
    square = x * x
    y = fma(x, _LOG[0], _LOG[1])
    for coefficient in _LOG[2:]:
        y = fma(y, x, coefficient)
    y *= x
    y = fma(y, square, exponent * np.float32(_LN2_LOW))
    y = fma.exact(square, -0.5, y)
    return fma.exact(exponent, _LN2_HIGH, x + y)


def sincos_avx(x: Any, fma: Any) -> tuple[Any, Any]:
    """Sine and cosine of float32 angles: 2 pi times multiples of 2**-24 below 1."""
    octant = ((x * _FOUR_OVER_PI).astype(np.int32) + 1) & ~1
    count = octant.astype(np.float32)
    angle = x
    for part in _PI_OVER_4:
        angle = fma.exact(count, part, angle)
    square = angle * angle
    even = fma(square, _COS[0], _COS[1])
    even = fma(even, square, _COS[2])
    even *= square
    even = fma(even, square, np.float32(-0.5) * square)
    even += np.float32(1)
    odd = fma(square, _SIN[0], _SIN[1])
    odd = fma(odd, square, _SIN[2])
    odd *= square
    odd = fma(odd, angle, angle)
    where = fma.arrays.where
    straight = octant & 2 == 0
    sine, cosine = where(straight, odd, even), where(straight, even, odd)
    sine = where(octant & 4 != 0, -sine, sine)
    return sine, where((octant - 2) & 4 == 0, -cosine, cosine)
