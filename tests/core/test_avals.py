"""A call is traced once for operands of some shapes and dtypes."""

from __future__ import annotations

from collections import OrderedDict

import jax
import numpy as np
import pytest

import torchshim as torch
from tests.compiling import compiling_nothing
from torchshim._core import host_kernels
from torchshim._core.avals import evaluated, trace_of
from torchshim._core.call import Call
from torchshim._core.record import local


@pytest.fixture
def applied(monkeypatch):
    """Names of the operators whose functions were called, to be traced."""
    monkeypatch.setattr(host_kernels, "FORMS", OrderedDict())
    names = []
    usual = Call.apply

    def noted(call, arrays, scalars):
        names.append(call.op.name)
        return usual(call, arrays, scalars)

    monkeypatch.setattr(Call, "apply", noted)
    return names


def test_shapes_and_programs_come_of_one_trace(applied):
    x = torch.ones(13, 17)
    assert torch.logsumexp(x, (0, 1)).shape == ()
    assert torch.logsumexp(x, (0, 1)).item() == pytest.approx(1 + np.log(221))
    assert applied.count("logsumexp") == 1


def test_what_numpy_computes_comes_of_it_too(applied):
    x = torch.ones(13, 19)
    with compiling_nothing():
        found = torch.logsumexp(x, (0, 1)).item()
    assert found == pytest.approx(1 + np.log(247))
    assert applied.count("logsumexp") == 1


def recorded(make):
    """The call that was recorded last."""
    made = make()
    call = local.rec.state.call
    assert made is not None and call is not None
    return call


def test_another_precision_is_another_trace():
    x = torch.ones(3, 3)
    call = recorded(lambda: x @ x)
    avals = (((3, 3), torch.float32),) * 2
    exact = trace_of(call, avals)
    assert trace_of(call, avals) is exact
    torch.set_float32_matmul_precision("high")
    try:
        assert str(trace_of(call, avals)) != str(exact)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert trace_of(call, avals) is exact


def test_a_trace_is_evaluated():
    x = torch.ones(2, 3)
    call = recorded(lambda: x + 2.5)
    with jax.enable_x64(True):
        (found,) = evaluated(call, [np.ones((2, 3), np.float32)], [np.float64(1.5)])
    assert found.dtype == np.float32
    assert found.tolist() == [[2.5] * 3] * 2


def test_what_an_operator_refuses_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(RuntimeError, match="only supports 2D tensors"):
            torch.nn.functional.pdist(torch.ones(2))
