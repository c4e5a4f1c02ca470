"""The Mersenne Twister behind PyTorch's CPU generator, with PyTorch's state format.

Fills that turn its bits into distributions stand in `host_random`.
"""

from __future__ import annotations

import operator
import secrets
import threading
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence

DEFAULT_SEED = 67280421310721
"""The seed of a generator that nobody seeded (`torch.default_generator` too)."""

STATE_BYTES = 5056

_N = 624

# Up to so many draws of 64 bits are put together here, as NumPy's call takes longer.
_FEW = 256

# Seeding by `init_genrand`, the initialisation that PyTorch uses too, in C.
_seeder = np.random.RandomState(0)
_seeder_lock = threading.Lock()


class _Unseeded(ISeedSequence):
    """Spares a new bit generator the hashing of a seed that is replaced at once."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        return np.zeros(n_words, dtype)


def _new_engine() -> np.random.MT19937:
    unseeded: Any = _Unseeded()  # NumPy's stubs leave this class out
    return np.random.MT19937(unseeded)


# The layout of `torch.Generator.get_state()`: each 32-bit word of the engine takes
# eight bytes, and only `normal_y` of the three double fields carries a value.
_STATE = np.dtype(
    {
        "names": [
            "seed",
            "left",
            "seeded",
            "next",
            "words",
            "normal_y",
            "normal_valid",
            "float_normal",
            "float_normal_valid",
        ],
        "formats": [
            "<u8",
            "<i4",
            "<i4",
            "<u8",
            ("<u8", (_N,)),
            "<f8",
            "<i4",
            "<f4",
            "u1",
        ],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": STATE_BYTES,
    }
)


def checked_seed(seed: Any) -> int:
    """A seed in 0 … 2**64 - 1, out of any integer of 64 bits, signed or unsigned.

    RuntimeError for what is no integer, ValueError beyond 64 bits.

    >>> checked_seed(-1)
    18446744073709551615
    """
    number = hasattr(seed, "__index__") and not hasattr(seed, "_tmeta")  # no tensor
    if not number or isinstance(seed, (bool, np.bool_)):
        raise RuntimeError(
            f"manual_seed expected a long, but got {type(seed).__name__}"
        )
    seed = operator.index(seed)
    if not -(2**63) <= seed < 2**64:
        raise ValueError("Overflow when unpacking long long")
    return seed % 2**64


class MT19937:
    """A 32-bit Mersenne Twister that yields what `torch.Generator("cpu")` yields.

    Holds the engine, the seed it was given, and the second values of normal pairs
    that PyTorch keeps for later (`next_float_normal_sample`,
    `next_double_normal_sample`; None when there is none).
    Behaviour: https://docs.pytorch.org/docs/2.13/generated/torch.Generator.html

    >>> MT19937(0).random()
    2357136044
    """

    __slots__ = (
        "_bits",
        "_fresh",
        "_seed",
        "_wide",
        "next_double_normal_sample",
        "next_float_normal_sample",
    )

    next_float_normal_sample: float | None
    next_double_normal_sample: float | None

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        self._start()
        self.manual_seed(seed)

    def _start(self) -> None:
        self._bits = _new_engine()
        self._wide = np.random.Generator(self._bits)

    def manual_seed(self, seed: int) -> MT19937:
        """Restart the stream from `seed` and return the generator.

        Any integer of 64 bits is accepted, signed or unsigned; the engine sees its
        low 32 bits. RuntimeError for what is no integer, ValueError beyond 64 bits.

        >>> MT19937().manual_seed(-1).initial_seed()
        18446744073709551615
        """
        self._seed = seed = checked_seed(seed)
        with _seeder_lock:
            _seeder.seed(seed % 2**32)
            engine: Any = _seeder.get_state(legacy=False)
        self._load(engine["state"]["key"], _N)
        self._fresh = True
        self.next_float_normal_sample = None
        self.next_double_normal_sample = None
        return self

    def seed(self) -> int:
        """Reseed from the operating system's entropy and return the new seed.

        >>> 0 <= MT19937().seed() < 2**64
        True
        """
        seed = secrets.randbits(64)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that the stream started from, in 0 … 2**64 - 1.

        >>> MT19937().initial_seed()
        67280421310721
        """
        return self._seed

    def clone(self) -> MT19937:
        """An independent generator at the same place of the same stream.

        >>> generator = MT19937(7)
        >>> generator.clone().random() == generator.random()
        True
        """
        twin = MT19937.__new__(MT19937)
        twin._start()
        twin.copy_from(self)
        return twin

    def copy_from(self, other: MT19937) -> None:
        """Move to the place where `other` is, without going through bytes.

        >>> generator = MT19937(1)
        >>> generator.copy_from(MT19937(2))
        >>> generator.initial_seed()
        2
        """
        self._bits.state = other._bits.state
        self._fresh = other._fresh
        self._seed = other._seed
        self.next_float_normal_sample = other.next_float_normal_sample
        self.next_double_normal_sample = other.next_double_normal_sample

    # ------------------------------------------------------------------ state bytes

    def get_state(self) -> np.ndarray:
        """The 5056 bytes that `torch.Generator.get_state()` has at this place.

        >>> MT19937(5).get_state().shape
        (5056,)
        """
        words, position = self._engine()
        record = np.zeros((), _STATE)
        record["seed"] = self._seed
        record["seeded"] = 1
        record["words"] = words
        # A generator just seeded stands before its first twist: `next` is still 0.
        record["left"] = 1 if self._fresh else _N + 1 - position
        record["next"] = 0 if self._fresh else position
        if self.next_double_normal_sample is not None:
            record["normal_y"] = self.next_double_normal_sample
            record["normal_valid"] = 1
        if self.next_float_normal_sample is not None:
            record["float_normal"] = self.next_float_normal_sample
            record["float_normal_valid"] = 1
        return np.frombuffer(record.tobytes(), np.uint8).copy()

    def set_state(self, state: np.ndarray) -> None:
        """Continue from bytes of `get_state()`, PyTorch's own included.

        TypeError for an array that isn't uint8, RuntimeError for a wrong size or
        for bytes that are no engine state; the generator is then unchanged.

        >>> ahead, behind = MT19937(1), MT19937(2)
        >>> behind.set_state(ahead.get_state())
        >>> behind.random() == ahead.random()
        True
        """
        state = np.asarray(state)
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found "
                f"the input RNG state size to be {state.size}"
            )
        record: Any = np.frombuffer(state.tobytes(), _STATE)[0]
        left, position = int(record["left"]), int(record["next"])
        # With one word left the engine twists before it reads, wherever it stands.
        consistent = left == 1 or left + position == _N + 1
        if not record["seeded"] or not 0 < left <= _N or position > _N:
            raise RuntimeError("Invalid mt19937 state")
        if not consistent:
            raise RuntimeError("Invalid mt19937 state")
        self._load(record["words"].astype(np.uint32), _N if left == 1 else position)
        self._fresh = left == 1 and position == 0
        self._seed = int(record["seed"])
        self.next_double_normal_sample = (
            float(record["normal_y"]) if record["normal_valid"] else None
        )
        self.next_float_normal_sample = (
            float(record["float_normal"]) if record["float_normal_valid"] else None
        )

    def _engine(self) -> tuple[np.ndarray, int]:
        engine: Any = self._bits.state["state"]
        return engine["key"], int(engine["pos"])

    def _load(self, words: np.ndarray, position: int) -> None:
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": words, "pos": position},
        }

    # ------------------------------------------------------------------------- draws

    def random(self) -> int:
        """The next 32 bits.

        >>> MT19937(0).random()
        2357136044
        """
        self._fresh = False
        return int(self._bits.random_raw())

    def draw32(self, count: int) -> np.ndarray:
        """`count` calls of `random()` as a uint64 array.

        >>> MT19937(0).draw32(2)
        array([2357136044, 2546248239], dtype=uint64)
        """
        if count == 0:
            return np.empty(0, np.uint64)
        self._fresh = False
        return self._bits.random_raw(count)

    def draw64(self, count: int) -> np.ndarray:
        """Pairs of calls of `random()` as a uint64 array, the first on top.

        >>> int(MT19937(0).draw64(1)[0]) >> 32
        2357136044
        """
        if count == 0:
            return np.empty(0, np.uint64)
        self._fresh = False
        if count <= _FEW:
            halves = self._bits.random_raw(2 * count)
            return halves[::2] << np.uint64(32) | halves[1::2]
        # NumPy's 64-bit draws put the first half on top, too.
        return self._wide.integers(
            0, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True
        )
