"""Sobol's sequences: points that fill the unit cube evenly (`torch.quasirandom`).

https://docs.pytorch.org/docs/2.13/generated/torch.quasirandom.SobolEngine.html
"""

from __future__ import annotations

import functools
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import torchshim
from torchshim._tensor import Tensor

__all__ = ["SobolEngine"]

_BITS = 30
_MOST = 21201


@functools.cache
def _data() -> tuple[np.ndarray, np.ndarray]:
    """The primitive polynomials in rising order, and the bits of the first numbers.

    `_sobol.bin` has the polynomials as a set of bits: of the n-th whether `2 n + 1` is
    one. Then come, for one dimension after the other, the k-th direction numbers up to
    the degree, k - 1 bits each: the last bit is 1. They are those of Joe and Kuo
    (https://web.maths.unsw.edu.au/~fkuo/sobol/).
    """
    data = (Path(__file__).parent / "_sobol.bin").read_bytes()
    begin = 4 + int.from_bytes(data[:4], "little")
    held = np.unpackbits(np.frombuffer(zlib.decompress(data[4:begin]), np.uint8))
    return 2 * np.flatnonzero(held) + 1, np.frombuffer(data[begin:], np.uint8)


def _direction_numbers(dimension: int) -> np.ndarray:
    """The direction numbers (dimension, 30), as integers of 30 bits."""
    found = np.ones((dimension, _BITS), np.int64)
    polynomials, packed = _data()
    polynomials = polynomials[: dimension - 1]
    degrees = np.frexp(polynomials)[1] - 1
    sizes = degrees * (degrees - 1) // 2
    begins = np.cumsum(sizes) - sizes
    bits = np.unpackbits(packed[: -(-int(sizes.sum()) // 8)])
    for degree in np.unique(degrees):
        rows = np.flatnonzero(degrees == degree)
        numbers = np.ones((len(rows), _BITS), np.int64)
        for k in range(1, degree):
            at = begins[rows] + k * (k - 1) // 2
            for i in range(k):
                numbers[:, k] += bits[at + i].astype(np.int64) << (k - i)
        for k in range(degree, _BITS):
            number = numbers[:, k - degree].copy()
            for i in range(1, degree + 1):
                chosen = polynomials[rows] >> (degree - i) & 1
                number ^= chosen * (numbers[:, k - i] << i)
            numbers[:, k] = number
        found[rows + 1] = numbers
    return found << np.arange(_BITS - 1, -1, -1)


def _gray(index: int, directions: np.ndarray) -> np.ndarray:
    """What the point of a number is, without a shift."""
    code = index ^ (index >> 1)
    chosen = [i for i in range(_BITS) if code >> i & 1]
    return np.bitwise_xor.reduce(directions[:, chosen], axis=1)


class SobolEngine:
    """Draws points of a Sobol sequence, by Gray code, in the order of their numbers.

    `dimension` is from 1 to 21201, otherwise ValueError; with `scramble` the sequence
    is scrambled, by `seed` or the default generator. The points are PyTorch's, bit for
    bit. Follows ``torch.quasirandom.SobolEngine``.

    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = _BITS
    MAXDIM = _MOST

    def __init__(
        self, dimension: int, scramble: bool = False, seed: int | None = None
    ) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is "
                f"[1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        directions = _direction_numbers(dimension)
        if scramble:
            shift, directions = self._scramble(directions)
        else:
            shift = np.zeros(dimension, np.int64)
        self.sobolstate = torchshim.from_numpy(directions)
        self.shift = torchshim.from_numpy(shift)
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**_BITS).reshape(1, -1)
        self.num_generated = 0

    def _scramble(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A random shift, and the direction numbers mixed by random matrices."""
        generator = None
        if self.seed is not None:
            generator = torchshim.Generator()
            generator.manual_seed(self.seed)

        def bits(*size: int) -> np.ndarray:
            return torchshim.randint(2, size, device="cpu", generator=generator).numpy()

        powers = 1 << np.arange(_BITS)
        shift = bits(self.dimension, _BITS) @ powers
        matrices = np.tril(bits(self.dimension, _BITS, _BITS))
        matrices |= np.eye(_BITS, dtype=np.int64)
        rows = matrices @ powers[::-1]
        ones = np.bitwise_count(rows[:, None, :] & directions[:, :, None])
        return shift, (ones & 1).astype(np.int64) @ powers[::-1]

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Tensor:
        """The next `n` points: a tensor of shape (n, dimension)."""
        dtype = torchshim.get_default_dtype() if dtype is None else dtype
        first = self.num_generated == 0
        count = n - 1 if first else n
        if count < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {count}: "
                f"[{count}, {self.dimension}]"
            )
        if not first:
            result = self._points(n, dtype)
        elif n == 1:
            result = self._first_point.to(dtype)
        else:
            rest = self._points(count, dtype)
            result = torchshim.cat((self._first_point.to(dtype), rest), dim=-2)
        self.num_generated += n
        if out is None:
            return result
        out.resize_as_(result).copy_(result)
        return out

    def _points(self, count: int, dtype: Any) -> Tensor:
        """Points after the last one drawn, which `quasi` is then."""
        if dtype not in (torchshim.float32, torchshim.float64):
            kind = f"'{dtype.scalar_name}'"
            raise NotImplementedError(
                f'"_sobol_engine_draw" not implemented for {kind}'
            )
        begin = max(self.num_generated - 1, 0)
        directions = self.sobolstate.numpy()
        numbers = np.arange(begin + 1, begin + count + 1)
        # From one point to the next, the direction of the lowest bit that is set.
        lowest = np.bitwise_count((numbers & -numbers) - 1)
        steps = np.concatenate([self.quasi.numpy()[None], directions[:, lowest].T])
        points = np.bitwise_xor.accumulate(steps)
        self.quasi = torchshim.from_numpy(points[-1].copy())
        return torchshim.from_numpy(points[1:]).to(dtype) * 2.0**-_BITS

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Tensor:
        """The next `2 ** m` points; ValueError where all would not be a power of 2."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, "
                "please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begins again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out `n` points."""
        begin = max(self.num_generated - 1, 0)
        end = begin + (n - 1 if self.num_generated == 0 else n)
        directions = self.sobolstate.numpy()
        if end > begin:
            between = _gray(begin, directions) ^ _gray(end, directions)
            self.quasi ^= torchshim.from_numpy(between)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(shown)})"
