"""Normal numbers in rows of 16, by NumPy or, where many are drawn, by programs.

Both run `host_math.box_muller` and give the same bits, the programs in a fourth of the
time (`docs/random.md`). Compiling one takes as long as NumPy takes for three million
numbers: it is done when NumPy would have spent that on fills of its size.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core.device import device
from torchshim._core.host_math import Careful, Fused, Traced, box_muller
from torchshim._core.mt19937 import MT19937
from torchshim._core.placement import computing_on, place_of

# Rows of the blocks that programs make; NumPy's doubles for its blocks stay in the
# processor's cache.
_SIZES: tuple[int, ...] = 64, 1024, 8192
_BLOCK = 1024
# NumPy's time for a call and for a row, and the time to compile, in nanoseconds.
_CALL, _ROW, _COMPILING = 250_000, 600, 150_000_000

# NumPy's time for all fills that the program of each size is for.
_spent: dict[int, int] = dict.fromkeys(_SIZES, 0)
# False in a forked child, which has none of XLA's threads.
_usable = [True]

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _usable.__setitem__(0, False))

# Rows of 16, and for each of them the bits of 8 radii and of 8 angles.
_Block = tuple[np.ndarray, np.ndarray]

# What marks a pair, two floats in one number, in which a sum was rounded twice.
_MARK = np.uint64(2**64 - 1)


def fill(
    generator: MT19937, values: np.ndarray, mean: float, std: float, skipped: int
) -> None:
    """Draws float32 numbers for rows of 16, as PyTorch's AVX2 code fills memory.

    Before the last row so many draws are skipped.
    """
    factors = float(np.float32(std)), float(np.float32(mean))
    size = next((size for size in _SIZES if size >= len(values)), _SIZES[-1])
    _spent[size] += _CALL + _ROW * len(values)
    compiled = _spent[size] >= _COMPILING and _usable[0]
    if compiled:
        blocks = _drawn(generator, values, size, skipped)
        _by_program(_program(size), blocks, size, factors)
    else:
        size = min(len(values), _BLOCK)
        _by_numpy(_drawn(generator, values, size, skipped), size, factors)
    values += np.float32(0)  # as the multiply-add with mean 0: no negative zero


def _drawn(
    generator: MT19937, values: np.ndarray, size: int, skipped: int
) -> Iterator[_Block]:
    """Blocks of so many rows at most, each with its bits."""
    for start in range(0, len(values), size):
        rows = values[start : start + size]
        last = rows.size - 16 if start + size >= len(values) else rows.size
        bits = generator.draw32(last)
        if last < rows.size:
            further = generator.draw32(skipped + 16)
            bits = np.concatenate([bits, further[skipped:]])
        yield rows, bits.reshape(-1, 2, 8)


def _by_numpy(
    blocks: Iterator[_Block], size: int, factors: tuple[float, float]
) -> None:
    fused = Fused(8 * size)
    for rows, bits in blocks:
        radii, angles = given = _operands(bits, len(rows))
        pairs = np.stack(box_muller(radii, angles, *factors, fused), 1)
        _store(rows, given, pairs, fused.half_way(len(pairs)), factors)


def _by_program(
    program: Callable[..., Any],
    blocks: Iterator[_Block],
    size: int,
    factors: tuple[float, float],
) -> None:
    with jax.enable_x64(True), computing_on(place_of(device("cpu"))):
        waiting: list[Any] = []
        for rows, bits in blocks:
            # The program computes while the bits of the next block are drawn.
            given = _operands(bits, size)
            waiting.append((rows, given, program(*given, *factors)))
            if len(waiting) > 1:
                _unpack(waiting.pop(0), factors)
        for last in waiting:
            _unpack(last, factors)


def _unpack(running: tuple[Any, ...], factors: tuple[float, float]) -> None:
    rows, given, made = running
    packed = np.asarray(made)[: rows.size // 2]
    pairs = packed.view(np.float32).reshape(-1, 2)
    _store(rows, given, pairs, np.flatnonzero(packed == _MARK), factors)


def _operands(bits: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The bits for radii and those for angles, with zeros up to a block's rows."""
    operands = np.zeros((2, size, 8), np.uint32)
    operands[:, : len(bits)] = bits.swapaxes(0, 1)
    return operands[0].ravel(), operands[1].ravel()


def _store(
    rows: np.ndarray,
    given: tuple[np.ndarray, np.ndarray],
    pairs: np.ndarray,
    doubtful: np.ndarray,
    factors: tuple[float, float],
) -> None:
    """Puts pairs into rows; those in doubt are made again, with care."""
    if len(doubtful):
        pairs = pairs.copy()
        radii, angles = (bits[doubtful] for bits in given)
        pairs[doubtful] = np.stack(box_muller(radii, angles, *factors, Careful()), 1)
    rows.reshape(-1, 2, 8)[:] = pairs.reshape(-1, 8, 2).swapaxes(1, 2)


@functools.cache
def _program(size: int) -> Callable[..., Any]:
    """From the bits of `size` rows to pairs of floats, each pair as one number."""

    def normal(radii: Any, angles: Any, std: Any, mean: Any) -> Any:
        fused = Traced()
        pair = box_muller(radii, angles, std, mean, fused)
        first, second = (half.view(np.uint32).astype(np.uint64) for half in pair)
        # As numbers of one array they are made in one loop.
        packed = first | second << np.uint64(32)
        return jnp.where(fused.half_way, _MARK, packed)

    return jax.jit(normal)
