"""The features of autograd in the report: their tests exist, and none is forgotten."""

from __future__ import annotations

import fnmatch
from pathlib import Path

import pytest

from compat_suite.features import running
from tests import oracle

#: Where each module must be named by a feature.
COVERED = ("autograd", "func")


@pytest.mark.parametrize("feature", running.features(), ids=lambda f: f.name)
def test_what_a_feature_names_is_there(feature: running.Feature) -> None:
    assert feature.tests
    for selector in feature.tests:
        module, pattern = running.parts(selector)
        assert fnmatch.filter(running.functions(module), pattern), selector


def test_every_module_of_autograd_is_named() -> None:
    named = {running.parts(s)[0] for f in running.features() for s in f.tests}
    there = {
        f"{package}.{path.stem}"
        for package in COVERED
        for path in (oracle.ROOT / package).glob("test_*.py")
    }
    assert there <= named


def test_results_are_chosen_by_feature(tmp_path: Path) -> None:
    tests = {
        "a.test_b": {"one[1]": "passed", "two": "failed"},
        "a.test_c": {"x": "passed"},
    }
    sampler = running.Sampler("torch.rand", 3)
    run = running.Run("2.13.0", tests, [sampler])
    run.write(tmp_path / "run.json.gz")
    assert running.Run.read(tmp_path / "run.json.gz") == run
    found = run.of(running.Feature("f", ["a.test_b::one", "a.test_c"]))
    assert found == {"a.test_b::one[1]": "passed", "a.test_c::x": "passed"}


def test_every_sampler_has_cases() -> None:
    names = running.sampler_names()
    assert {
        "torch.rand",
        "Tensor.cauchy_",
        "torch.poisson",
        "nn.init.xavier_normal_",
    } <= {*names}
    texts = [text for _, _, text in running._drawing()]
    for name in names:
        assert any(running._mentions(text, name) for text in texts), name


def test_bits_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SAMPLED", ("distributions.test_samplers",))
    found = {s.name: s for s in running.samplers()}
    assert found["torch.poisson"].exact and found["torch.poisson"].cases
    assert not found["torch.rand_like"].cases
