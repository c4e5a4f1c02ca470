"""Every operator has samples, so that it is compared with PyTorch."""

from tests.ops import driver
from tests.ops.samples import SAMPLES


def test_every_operator_has_samples() -> None:
    assert driver.without_samples() == []


def test_samples_are_of_operators() -> None:
    driver.without_samples()  # loads them all
    assert sorted(SAMPLES.keys() - driver.registry().keys()) == []
