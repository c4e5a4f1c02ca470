"""Programs for normal numbers against NumPy, to the bit."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from torchshim._core import host_random, normal_program
from torchshim._core.mt19937 import MT19937

# Below, at and beyond the blocks of each program, with a last block begun.
SIZES = (16, 17, 1000, 1024, 1030, 16_384, 20_000, 131_072, 131_075, 400_000)


def _normal(seed: int, size: int, spent: int, patch: pytest.MonkeyPatch) -> np.ndarray:
    known = dict.fromkeys(normal_program._SIZES, spent)
    patch.setattr(normal_program, "_spent", known)
    generator = MT19937(seed)
    values = host_random.normal(generator, size, "float32", 0.25, 1.5)
    following = np.frombuffer(generator.draw32(1).tobytes(), np.float32)
    return np.concatenate([values, following]).view(np.int32)


@pytest.mark.parametrize("size", SIZES)
def test_they_draw_what_numpy_draws(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    by_numpy = _normal(size, size, -(10**12), monkeypatch)
    by_program = _normal(size, size, 10**12, monkeypatch)
    np.testing.assert_array_equal(by_program, by_numpy)


def test_pairs_in_doubt_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    doubtful: list[int] = []
    store: Any = normal_program._store

    def watched(*args: Any) -> None:
        doubtful.append(len(args[3]))
        store(*args)

    monkeypatch.setattr(normal_program, "_store", watched)
    by_numpy = _normal(0, 1 << 20, -(10**12), monkeypatch)
    assert sum(doubtful) > 0
    of_numpy = sum(doubtful)
    by_program = _normal(0, 1 << 20, 10**12, monkeypatch)
    assert sum(doubtful) == 2 * of_numpy
    np.testing.assert_array_equal(by_program, by_numpy)


def test_a_program_is_made_when_numpy_would_have_taken_as_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        normal_program, "_spent", dict.fromkeys(normal_program._SIZES, 0)
    )
    made: list[int] = []
    program = normal_program._program
    monkeypatch.setattr(
        normal_program, "_program", lambda size: (made.append(size), program(size))[1]
    )
    generator = MT19937(0)
    calls = 0
    while not made:
        host_random.normal(generator, 1000)
        calls += 1
    assert made == [64]
    assert 450 < calls < 600
    host_random.normal(generator, 1 << 20)
    assert made == [64]
    host_random.normal(generator, 1 << 22)
    assert made == [64, 8192]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_child_leaves_them_alone() -> None:
    child = os.fork()
    if child == 0:
        os._exit(int(normal_program._usable[0]))
    assert os.waitpid(child, 0)[1] == 0
    assert normal_program._usable[0]
