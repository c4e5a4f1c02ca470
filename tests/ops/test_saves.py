"""What every operator saves for its backward, compared with PyTorch.

Each operand and each result of a sample is overwritten before the backward, which is an
error then where PyTorch saved it. (Texts of errors: `tests/autograd/test_saving.py`.)
"""

from __future__ import annotations

from typing import Any

from tests.ops import driver
from tests.ops.samples import SAMPLES, Sample
from tests.oracle import Family, case

#: Known differences: see "Saved values" in `docs/differences.md`.
_LEFT_OUT = frozenset({"native_group_norm"})


def _sample(key: str) -> Sample | None:
    """The first sample that has gradients."""
    each = (s for s in SAMPLES[key].make() if not s.fails and "grad" in s.forms)
    return next(each, None)


def _keys() -> list[str]:
    driver.without_samples()  # loads them all
    known = driver.registry()
    return [
        key
        for key in SAMPLES
        if key in known
        and known[key].differentiable
        and key not in _LEFT_OUT
        and _sample(key) is not None
    ]


def _called(torch: Any, key: str) -> tuple[list[Any], list[Any], list[Any]]:
    """The leaves, the tensors that the operator is called with, and its results."""
    each = _sample(key)
    assert each is not None
    leaves, given = [], []

    def used(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: used(v) for name, v in value.items()}
        if type(value) in (list, tuple):
            return type(value)([used(v) for v in value])
        if not driver.is_tensor(value):
            return value
        if value.requires_grad:
            leaves.append(value)
            value = value * 1  # what may be written to in place
        given.append(value)
        return value

    args, kwargs = used(driver.arguments(torch, each, True))
    function = driver.function_of(torch, driver.registry()[key])
    return leaves, given, driver.plain(function(*args, **kwargs))


def _overwrite(tensor: Any) -> None:
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        tensor.mul_(1)
    else:
        tensor.fill_(0)


def what_is_saved(torch: Any, key: str) -> Any:
    leaves, given, results = _called(torch, key)
    if not any(r.requires_grad for r in results):
        return None
    found = []
    for at in range(len(given) + len(results)):
        leaves, given, results = _called(torch, key)
        outs = [r for r in results if r.requires_grad]
        sums = [r * 1 for r in outs]
        try:
            _overwrite([*given, *results][at])
        except RuntimeError:
            found.append("not written to")
            continue
        try:
            grads = [torch.ones_like(s) for s in sums]
            torch.autograd.grad(sums, leaves, grads, allow_unused=True)
            found.append("free")
        except RuntimeError as error:
            inplace = "modified by an inplace operation" in str(error)
            found.append("saved" if inplace else str(error))
    return found[: len(given)], found[len(given) :]


saved = case.over({key: key for key in _keys()})(what_is_saved)
assert isinstance(saved, Family)
