"""Trigonometric functions against double precision, and within JAX's transforms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from torchshim._ops import _trigonometric, transcendental

NAMES = ("sin", "cos", "tan", "arcsin", "arccos", "arctan")
LARGE = 2 * _trigonometric._SMALL


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def _arguments(name: str, kind: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    if name in ("arcsin", "arccos"):
        found = rng.uniform(-1, 1, LARGE)
    elif kind == "every float":
        bits = rng.integers(0, 2**32, LARGE, np.uint64).astype(np.uint32)
        found = bits.view(np.float32)
        found = found[np.abs(found) >= np.finfo(np.float32).tiny]  # XLA has no smaller
    else:
        found = rng.normal(size=LARGE) * 10.0 ** rng.uniform(-3, 7, LARGE)
    return found.astype(np.float32)


def _ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """How many units in the last place of float32 numbers are off."""
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return float((np.abs(found.astype(np.float64) - exact) / unit).max())


@pytest.mark.parametrize("name", NAMES)
def test_they_are_rounded_once(name: str) -> None:
    x = _arguments(name, "near")
    exact = getattr(np, name)(x.astype(np.float64))
    found = np.asarray(jax.jit(getattr(_trigonometric, name))(x))
    assert found.dtype == np.float32
    assert _ulps(found, exact) < 0.505


@pytest.mark.parametrize("name", NAMES)
def test_of_every_float(name: str) -> None:
    x = _arguments(name, "every float")
    exact = getattr(np, name)(x.astype(np.float64))
    found = np.asarray(jax.jit(getattr(_trigonometric, name))(x))
    known = ~np.isnan(exact)
    np.testing.assert_array_equal(np.isnan(found), ~known)
    assert _ulps(found[known], exact[known]) < 1  # some are the C library's


@pytest.mark.parametrize("repeat", [1, LARGE])
@pytest.mark.parametrize("name", NAMES)
def test_zeros_infinities_and_nan(name: str, repeat: int) -> None:
    x = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1, -1])
    found = np.asarray(jax.jit(getattr(_trigonometric, name))(np.tile(x, repeat)))
    with np.errstate(invalid="ignore"):
        exact = getattr(np, name)(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(found[: len(x)], exact, rtol=1.2e-7)
    known = ~np.isnan(exact)
    signs = np.signbit(found[: len(x)]) == np.signbit(exact)
    assert signs[known].all()


def test_atan2_in_every_direction() -> None:
    one = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 2, -3, 1e30, 1e-30])
    y, x = np.meshgrid(one, one)
    exact = np.arctan2(y.astype(np.float64), x).astype(np.float32)
    found = np.asarray(_trigonometric.arctan2(jnp.asarray(y), jnp.asarray(x)))
    np.testing.assert_array_equal(found, exact)
    assert (np.signbit(found) == np.signbit(exact))[~np.isnan(exact)].all()
    rng = np.random.default_rng(1)
    y, x = rng.normal(size=(2, LARGE)).astype(np.float32)
    found = np.asarray(jax.jit(_trigonometric.arctan2)(y, x))
    assert _ulps(found, np.arctan2(y.astype(np.float64), x)) < 0.505


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", NAMES)
def test_of_16_bits(name: str, dtype: Any) -> None:
    x = _arguments(name, "near").clip(-6e4, 6e4).astype(dtype)
    found = np.asarray(jax.jit(getattr(_trigonometric, name))(x))
    assert found.dtype == dtype
    exact = getattr(np, name)(x.astype(np.float64)).astype(np.float32)
    with np.errstate(over="ignore"):
        exact = exact.astype(dtype)
    assert (found == exact).all()


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str) -> None:
    x = np.linspace(-0.9, 0.9, 7)
    plain = getattr(jnp, name)
    ours = getattr(_trigonometric, name)
    if name == "arctan":
        ours = transcendental._atan
    for derivative in (jax.grad, lambda f: jax.grad(jax.grad(f))):
        found = jax.vmap(derivative(ours))(x.astype(np.float32))
        np.testing.assert_allclose(found, jax.vmap(derivative(plain))(x), rtol=1e-5)


def test_atan2_transformed() -> None:
    rng = np.random.default_rng(0)
    y, x = rng.normal(size=(2, 4, 3)).astype(np.float32)
    exact = np.arctan2(y, x)
    for axes, other in (((0, 0), x), ((1, 1), x), ((0, None), x[0]), ((None, 1), x)):
        function = jax.vmap(_trigonometric.arctan2, axes)
        mapped, expected = (y, exact)
        if axes == (0, None):
            expected = np.arctan2(y, x[0])
        if axes == (None, 1):
            mapped, expected = y[:, 0], np.arctan2(y[:, 0], x.T)
        if axes == (1, 1):
            expected = exact.T
        np.testing.assert_allclose(function(mapped, other), expected, rtol=1e-6)
    both = jax.grad(lambda y, x: transcendental._atan2(y, x).sum(), (0, 1))(y, x)
    square = x * x + y * y
    np.testing.assert_allclose(both[0], x / square, rtol=1e-5)
    np.testing.assert_allclose(both[1], -y / square, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_other_dtypes_are_jaxs(dtype: Any) -> None:
    x = np.linspace(-0.9, 0.9, 5).astype(dtype)
    for name in NAMES:
        found = getattr(_trigonometric, name)(jnp.asarray(x))
        np.testing.assert_array_equal(found, getattr(jnp, name)(x))


def test_elsewhere_they_are_jaxs() -> None:
    x = jax.ShapeDtypeStruct((LARGE,), np.float32)
    lowered = jax.jit(_trigonometric.sin).trace(x).lower(lowering_platforms=("cuda",))
    assert "stablehlo.sine" in lowered.as_text()
    assert "f64" not in lowered.as_text()
