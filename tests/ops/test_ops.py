"""Every operator has samples, so that it is compared with PyTorch."""

from tests.ops import driver
from tests.ops.samples import SAMPLES
from torchshim._core.op import COMPUTED, DERIVED


def test_every_operator_has_samples() -> None:
    assert driver.without_samples() == []


def test_samples_are_of_operators() -> None:
    driver.without_samples()  # loads them all
    assert sorted(SAMPLES.keys() - driver.registry().keys()) == []


def test_what_operators_save_are_parameters_of_theirs() -> None:
    # A name that is none would be forgotten when the tensors it means are read.
    wrong = {}
    for name, op in driver.registry().items():
        known = {COMPUTED, *DERIVED, *(p.name for p in op.params)}
        saved = set(op.saved(tuple(op.saves)))
        if isinstance(op.saves, dict):
            saved |= set(op.saves)
        if op.results == "tensor":
            known -= {"result0", "result1"}
        if saved - known:
            wrong[name] = saved - known
    assert wrong == {}
