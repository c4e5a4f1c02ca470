"""Every operator has samples, so that it is compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.ops import driver
from tests.ops.samples import SAMPLES
from torchshim._core.op import op


def test_every_operator_has_samples() -> None:
    assert driver.without_samples() == []


def test_samples_are_of_operators() -> None:
    driver.without_samples()  # loads them all
    assert sorted(SAMPLES.keys() - driver.registry().keys()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"saves": ("inptu",)},
        {"saves": {"input": ("otehr",)}},
        {"differentiable": ("input", "inptu")},
        {"passes": ("inptu",)},
        {"varies": {"inptu": (0.0, 1.0)}},
        {"operands": ("inptu",)},
        {"fits": ("inptu",)},
        {"apart": ("other",)},
        {"curved": {"input": ("other",)}},
        {"promote": "int_to_flaot"},
        {"layout": "preseve"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_a_declaration_names_is_there(wrong) -> None:
    def misdeclared(input):
        return input

    misdeclared.__annotations__ = {"input": "Array", "return": "Array"}

    before = set(driver.registry())
    with pytest.raises(ValueError, match="operator 'misdeclared'"):
        op(**wrong)(misdeclared)
    assert set(driver.registry()) == before
