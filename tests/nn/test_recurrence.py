"""Tangents of recurrent layers by their own rule against JAX's, to the second order."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from torchshim._ops import _recurrence as recurrence

CELLS = {"lstm": recurrence.LSTM, "gru": recurrence.GRU, **recurrence.ELMAN}
STEPS, BATCH, HIDDEN = 4, 3, 2


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def _operands(cell: recurrence.Cell, bias: bool, packed: bool, length: int) -> Any:
    rng = np.random.default_rng(0)
    width = cell.gates * HIDDEN
    states = 2 if cell is recurrence.LSTM else 1
    given = (
        rng.normal(size=(length, BATCH, width)),
        rng.normal(size=(width, HIDDEN)),
        rng.normal(size=width) if bias else None,
        tuple(rng.normal(size=(states, BATCH, HIDDEN))),
    )
    running = (np.array([3, 3, 2, 1])[:length, None] > np.arange(BATCH))[..., None]
    return jax.tree.map(jnp.asarray, given), jnp.asarray(running) if packed else None


def _compiled(function: Any, *args: Any) -> Any:
    quickly = {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
    }
    return jax.jit(functools.partial(function, *args), compiler_options=quickly)


def _loss(run: Any, cell: Any, reverse: bool, running: Any) -> Any:
    def function(given: Any) -> Any:
        states, outputs = run(cell, reverse, *given, running)
        return sum(jnp.sin(k * x).sum() for k, x in enumerate((outputs, *states), 1))

    return function


def _derivatives(function: Any, given: Any) -> Any:
    direction = jax.tree.map(jnp.cos, given)

    def along(x: Any) -> Any:
        return jax.jvp(function, (x,), (direction,))

    return {
        "tangent": along(given),
        "gradient": jax.grad(function)(given),
        "gradient of the tangent": jax.grad(lambda x: along(x)[1])(given),
    }


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "packed") for name in CELLS),
        *(("lstm", form) for form in ("dense reverse", "one step")),
        *(("gru", form) for form in ("dense", "one step")),
    ],
)
def test_derivatives(name: str, form: str) -> None:
    cell, reverse, packed = CELLS[name], "reverse" in form, form == "packed"
    length = 1 if form == "one step" else STEPS
    given, running = _operands(cell, not reverse, packed, length)
    ours, plain = (
        _compiled(_derivatives, _loss(run, cell, reverse, running))(given)
        for run in (recurrence.steps, recurrence.plain_steps)
    )
    for key, found in ours.items():
        for a, b in zip(
            jax.tree.leaves(found), jax.tree.leaves(plain[key]), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("wrt", range(4), ids=["gates", "weight", "bias", "states"])
@pytest.mark.parametrize("name", CELLS)
def test_derivatives_by_one_operand(name: str, wrt: int) -> None:
    cell = CELLS[name]
    given, _ = _operands(cell, True, False, STEPS)

    def gradient(run: Any) -> Any:
        def function(x: Any) -> Any:
            return _loss(run, cell, False, None)((*given[:wrt], x, *given[wrt + 1 :]))

        return jax.tree.leaves(_compiled(jax.grad(function))(given[wrt]))

    found, expected = gradient(recurrence.steps), gradient(recurrence.plain_steps)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_the_weights_gradient_is_one_product() -> None:
    given, _ = _operands(recurrence.LSTM, False, False, STEPS)
    loss = _loss(recurrence.steps, recurrence.LSTM, False, None)
    text = str(jax.make_jaxpr(jax.grad(loss))(given))
    width = recurrence.LSTM.gates * HIDDEN
    # Within a loop it would be of this shape, and added to a carry.
    assert text.count("scan[") == 2
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert sum(f"f64[{width},{HIDDEN}] = dot" in line for line in products) == 1
