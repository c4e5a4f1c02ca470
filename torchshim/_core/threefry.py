"""The generator of an accelerator: where it is in its stream of numbers.

Programs make the numbers, by JAX's counter-based generator (`_ops/drawing.py`), from
the seed and from how many draws were made before. The state has the bytes of PyTorch's
CUDA generator, which is such a one, too.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from torchshim._core.mt19937 import DEFAULT_SEED, checked_seed

#: Bytes of `torch.cuda.get_rng_state()`: the seed and the offset.
STATE_BYTES = 16
#: PyTorch's offsets are multiples of that; here a draw takes so much.
_STEP = 4


class Threefry:
    """A seed and an offset, with the methods that `MT19937` has for generators.

    >>> generator = Threefry(3)
    >>> generator.advance(), generator.advance(), generator.initial_seed()
    (0, 1, 3)
    """

    __slots__ = ("_offset", "_seed", "key")

    # The seed as a tensor on the device, see `_functions/draws.py`.
    key: Any

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Threefry:
        """Restart the stream from `seed`; errors as `MT19937.manual_seed`."""
        self._seed = checked_seed(seed)
        self._offset = 0
        self.key = None
        return self

    def seed(self) -> int:
        """Reseed from the operating system's entropy and return the new seed."""
        self.manual_seed(secrets.randbits(64))
        return self._seed

    def initial_seed(self) -> int:
        """The seed that the stream started from."""
        return self._seed

    def words(self) -> np.ndarray:
        """The seed as the key of JAX's generator: two words, the high one first."""
        return np.array([self._seed >> 32, self._seed % 2**32], np.uint32)

    def advance(self) -> int:
        """The number of the next draw."""
        number = self._offset // _STEP
        self._offset += _STEP
        return number % 2**32

    def clone(self) -> Threefry:
        """An independent generator at the same place of the same stream."""
        twin = Threefry()
        twin.copy_from(self)
        return twin

    def copy_from(self, other: Threefry) -> None:
        """Move to the place where `other` is."""
        self._seed, self._offset, self.key = other._seed, other._offset, other.key

    def get_state(self) -> np.ndarray:
        """Sixteen bytes: the seed, the offset.

        >>> Threefry(5).get_state()[:9].tolist()
        [5, 0, 0, 0, 0, 0, 0, 0, 0]
        """
        return np.array([self._seed, self._offset], "<u8").view(np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Continue from bytes of `get_state()`; those of the seed alone will do.

        RuntimeError for a wrong size or an offset that is no multiple of four.
        """
        if state.size not in (STATE_BYTES, STATE_BYTES // 2):
            raise RuntimeError("RNG state is wrong size")
        held = np.ascontiguousarray(state, np.uint8).view("<u8").tolist()
        offset = held[1] if len(held) == 2 else 0
        if offset % _STEP:
            raise RuntimeError("offset must be a multiple of 4")
        self.manual_seed(held[0])
        self._offset = offset
