"""Random programs whose results under PyTorch are recorded, see `tests.fuzz_core`."""

from __future__ import annotations

import json
import warnings

import pytest

import torchshim
from tests import fuzz_core, fuzz_numbers, fuzz_steps, fuzz_training, fuzz_transforms
from tests.compiling import compiling_nothing, running_operators

PARTS = 6
GROUPS = 80
# Programs that differ, by their seeds: what is known not to be as in PyTorch.
KNOWN: dict[int, str] = {}


@pytest.fixture
def default_dtype():
    """Programs choose it; the other tests' is there again."""
    before = torchshim.get_default_dtype()
    yield
    torchshim.set_default_dtype(before)


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_programs(part, default_dtype):
    """No XLA program for each recording: that takes fifty times as long."""
    programs = fuzz_core.recorded()[part::PARTS]
    assert len(programs) > 20
    running = running_operators if part % 2 else compiling_nothing
    with running(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, dtype, lines, expected in programs:
            text = fuzz_core.check(torchshim, dtype, lines, expected, seed % 3 == 0)
            script = "\n".join(lines)
            if seed in KNOWN:
                assert text is not None, f"seed {seed} agrees: take it out of KNOWN"
                continue
            assert text is None, f"seed {seed} ({dtype}), {text}\n{script}"


def test_recorded_programs_with_other_numbers():
    """As programs are computed that are compiled: a gradient of what went forward."""
    programs = fuzz_numbers.recorded()
    assert len(programs) > 70
    with running_operators(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, made, expected in programs:
            text = fuzz_numbers.compare(expected, fuzz_numbers.run(torchshim, made))
            assert text is None, f"seed {seed}, {text}\n{made.script()}"


def test_recorded_transforms():
    programs = fuzz_transforms.recorded()
    assert len(programs) > 30
    with compiling_nothing(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, lines, expected in programs:
            found = json.loads(json.dumps(fuzz_transforms.run(torchshim, lines)))
            text = fuzz_transforms.compare(expected, found)
            assert text is None, f"seed {seed}, {text}\n" + "\n".join(lines)


def test_recorded_training():
    """Scripts whose loops run nine times; each twice."""
    scripts = fuzz_training.recorded()
    assert len(scripts) > 5
    with compiling_nothing(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, parts, expected in scripts * 2:
            found = fuzz_training.run(torchshim, parts)
            text = fuzz_training.difference(expected, found)
            assert text is None, f"seed {seed}, {text}\n{fuzz_training.source(parts)}"


def test_steps_after_others_like_them():
    """What is remembered of a step is not taken for what another one does."""
    with compiling_nothing(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not [*fuzz_steps.fuzz(torchshim, range(GROUPS))]


def test_a_difference_is_found(default_dtype):
    _, dtype, lines, expected = fuzz_core.recorded()[0]
    expected.snapshots[len(lines) - 1]["no such tensor"] = {"value": 1}
    with compiling_nothing():
        assert fuzz_core.check(torchshim, dtype, lines, expected) is not None
