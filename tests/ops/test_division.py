"""Quotients are rounded once, also where a program divides by what is broadcast."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import torchshim as torch

FIRST = np.arange(1, 600, dtype=np.float32)
ROWS = FIRST[:598].reshape(2, 299)


def compiled(function, *arrays):
    """The result of a function that was called until its program was compiled."""
    given = [torch.tensor(array) for array in arrays]
    for _ in range(6):
        found = function(*given)
        found.tolist()
    return found.detach().numpy()


@pytest.mark.parametrize("number", [3, 7, 40, 41, 1797, 0.3])
def test_by_a_number(number):
    wanted = FIRST / np.float32(number)
    pending = torch.tensor(float(number))
    for function in (
        lambda x: x / number,
        lambda x: x / pending,
        lambda x: x.div(number),
        lambda x: x / pending.expand_as(x),
        lambda x: torch.zeros(()).addcdiv(x, pending),
    ):
        assert np.array_equal(compiled(function, FIRST), wanted)
    again = compiled(lambda x: x / number / 7, FIRST)
    assert np.array_equal(again, wanted / np.float32(7))
    cut = compiled(lambda x: x.div(number, rounding_mode="trunc"), FIRST)
    assert np.array_equal(cut, np.trunc(wanted))
    assert np.array_equal(cut[(FIRST == number)], FIRST[FIRST == number] * 0 + 1)


def test_by_rows_and_roots():
    wanted = ROWS / ROWS.sum(1, keepdims=True)
    found = compiled(lambda x: x / x.sum(1, keepdim=True), ROWS)
    assert np.array_equal(found, wanted)
    found = compiled(lambda x: x / x.flip(1).sqrt(), ROWS)
    assert np.array_equal(found, ROWS / np.sqrt(ROWS[:, ::-1]))
    for function in (torch.rsqrt, lambda x: x**-0.5):
        assert np.array_equal(compiled(function, FIRST), 1 / np.sqrt(FIRST))


@pytest.mark.parametrize("count", [3, 7, 40, 41])
def test_means(count):
    hits = (FIRST[:count] > count / 3).astype(np.float32)
    wanted = hits.sum() / np.float32(count)
    functional = torch.nn.functional
    for function in (
        lambda x: x.mean(),
        lambda x: x.mean(0),
        lambda x: (x > 0).float().mean(),
        lambda x: x.nanmean(),
        lambda x: functional.mse_loss(x, torch.zeros_like(x)),
        lambda x: functional.avg_pool1d(x[None], count)[0],
    ):
        assert (compiled(function, hits) == wanted).all()


def test_gradients():
    def gradient(x):
        x.requires_grad_()
        (found,) = torch.autograd.grad((x / 41).mean(), x)
        return found

    wanted = np.float32(1) / np.float32(len(FIRST)) / np.float32(41)
    assert (compiled(gradient, FIRST) == wanted).all()


def test_powers_are_products():
    wanted = {
        2: FIRST * FIRST,
        3: FIRST * FIRST * FIRST,
        -1: 1 / FIRST,
        -2: 1 / (FIRST * FIRST),
    }
    for _ in range(2):  # the second time the exponent is a runtime scalar
        for exponent, result in wanted.items():
            found = compiled(lambda x, n=exponent: x**n, FIRST)
            assert np.array_equal(found, result.astype(np.float32))


def test_within_operators():
    functional = torch.nn.functional
    found = compiled(functional.hardsigmoid, FIRST / 100 - 3)
    assert np.array_equal(found, np.clip(FIRST / 100 - 3 + 3, 0, 6) / np.float32(6))
    found = compiled(lambda x: torch.round(x, decimals=2), FIRST / 7)
    assert np.array_equal(found, np.round(FIRST / 7 * 100) / np.float32(100))


# In a process of its own, which XLA's compiler used to end.
BY_ZERO = """
import jax, numpy as np
from torchshim._ops import arithmetic

functions = (
    arithmetic._floor_quotient,
    arithmetic._truncated_quotient,
    arithmetic._remainder,
    arithmetic.fmod,
)
for dtype in np.uint8, np.int32:
    one, zero = jax.numpy.ones(2, dtype), jax.numpy.zeros(2, dtype)
    for function in functions:
        jax.jit(lambda: function(jax.numpy.ones_like(one), jax.numpy.zeros_like(one)))()
"""


def test_by_zeros_that_the_compiler_knows():
    command = [sys.executable, "-c", BY_ZERO]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
