"""Convolutions as products of matrices: small images, pointwise kernels."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import torchshim as torch
from torchshim._core import convolutions, image_products, program
from torchshim._core.convolutions import in_fast_layout, in_windows

LETTERS = {1: "W", 2: "HW"}


@pytest.fixture
def used(monkeypatch):
    """The ways in which convolutions were computed, in order."""
    found = []

    def noting(module, name):
        usual = getattr(module, name)

        def noted(*given):
            out = usual(*given)
            if out is not None:
                found.append(name)
            return out

        return noted

    for name in ("_spread", "_tiled", "_gathered", "pointwise", "whole"):
        monkeypatch.setattr(image_products, name, noting(image_products, name))
    monkeypatch.setattr(convolutions, "_in_phases", noting(convolutions, "_in_phases"))
    return found


@pytest.fixture
def from_the_first(monkeypatch):
    """No size is too small."""
    monkeypatch.setattr(image_products, "_PLACES", 1)
    monkeypatch.setattr(image_products, "_WEIGHTS", 1)


def settings(n, **how):
    """The parameters of a convolution in `n` dimensions, each given for all of them."""
    usual = {
        "window_strides": 1,
        "padding": (0, 0),
        "lhs_dilation": 1,
        "rhs_dilation": 1,
    }
    return {name: (value,) * n for name, value in (usual | how).items()}


def with_gradients(convolution):
    def both(x, w):
        out, pull = jax.vjp(convolution, x, w)
        return out, *pull(jnp.cos(out))

    return both


def both_of(n, **how):
    """A convolution without groups, and its gradients."""
    letters = LETTERS[n]
    numbers = (f"NC{letters}", f"OI{letters}", f"NC{letters}")
    params = settings(n, **how)

    def convolution(x, w):
        return lax.conv_general_dilated(x, w, dimension_numbers=numbers, **params)

    return with_gradients(convolution)


def by_hand(n, **how):
    """The same of single products (XLA fails at some of these convolutions)."""
    params = settings(n, **how)

    def convolution(x, w):
        around = zip(params["padding"], params["lhs_dilation"], strict=True)
        around = [(0, 0, 0)] * 2 + [(*p, t - 1) for p, t in around]
        x = lax.pad(x, x.dtype.type(0), around)
        steps, spans = params["window_strides"], params["rhs_dilation"]
        reach = [s * (k - 1) for s, k in zip(spans, w.shape[2:], strict=True)]
        out = 0.0
        for k in itertools.product(*map(range, w.shape[2:])):
            place = [
                slice(i * s, i * s + size - r, t)
                for i, s, size, r, t in zip(
                    k, spans, x.shape[2:], reach, steps, strict=True
                )
            ]
            met = x[(slice(None), slice(None), *place)]
            weight = w[(slice(None), slice(None), *k)]
            out = out + jnp.einsum("bc...,oc->bo...", met, weight)
        return out

    return with_gradients(convolution)


def operands(space, kernel, examples=3, channels=4, outputs=5):
    random = np.random.default_rng(0)
    x = random.normal(size=(examples, channels, *space))
    return x, random.normal(size=(outputs, channels, *kernel))


def compared(how, *sizes, **more):
    compare_all([(how, *operands(*sizes, **more))])


def compare_all(cases):
    """Compares in float64, all in one program."""

    def each(args):
        found = []
        for (how, *_), (x, w) in zip(cases, args, strict=True):
            n = x.ndim - 2
            both = both_of(n, **how)
            ways = by_hand(n, **how), in_windows(both), in_fast_layout(both)
            found.append([way(x, w) for way in ways])
        return found

    with jax.enable_x64(True):
        given = [tuple(map(jnp.asarray, args)) for _, *args in cases]
        made = jax.jit(each, compiler_options=program.fast_options())(given)
    for wanted, *found in made:
        for way in found:
            for a, b in zip(way, wanted, strict=True):
                assert a.dtype == b.dtype
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_every_way(n, size, window):
    """Strides, dilations and paddings around the sizes at which the way changes."""
    kernel = (window, max(1, window - 1))[:n]
    space = (size, size + 1)[:n]
    hows = itertools.product((1, 2), (1, 2), (1, 2), ((0, 0), (1, 2), (window, -1)))
    cases = []
    for step, span, between, padding in hows:
        dilated = between * (size - 1) + 1 + sum(padding)
        if dilated < span * (window - 1) + 1:
            continue
        how = {"window_strides": step, "rhs_dilation": span, "padding": padding}
        how["lhs_dilation"] = between
        cases.append((how, *operands(space, kernel)))
    compare_all(cases)


@pytest.mark.parametrize("how", [{}, {"window_strides": 2}, {"padding": (1, 0)}])
def test_every_way_of_any_size(how, from_the_first):
    kernels = (1, 1), (2, 1), (3, 3)
    compare_all([(how, *operands((4, 3), k)) for k in kernels])


def test_the_gradient_of_a_small_image_is_spread(used):
    compared({"padding": (1, 1)}, (2, 2), (3, 3))
    assert used == ["_gathered", "_spread"] * 2


def test_more_images_are_swapped(used):
    compared({"padding": (1, 1)}, (2, 2), (3, 3), examples=40)
    assert used == ["_spread"] * 2


def test_too_much_between_is_swapped(used, monkeypatch):
    monkeypatch.setattr(image_products, "_INTERMEDIATE", 1)
    compared({"padding": (1, 1)}, (2, 2), (3, 3))
    assert used == []


def test_many_places_of_pointwise_ones(used):
    compared({}, (23, 23), (1, 1), channels=2, outputs=3)
    assert used == ["pointwise", "whole", "pointwise"] * 2


def test_a_sum_that_is_larger_than_its_parts(used):
    compared({}, (512,), (1,), channels=1100, outputs=1100, examples=1)
    assert used == ["pointwise", "pointwise"] * 2


def test_patches_of_an_image(used):
    compared({"window_strides": 4}, (9, 8), (4, 4))
    assert used == ["_tiled"] * 2


def test_gaps_between_patches(used):
    compared({"window_strides": 3, "padding": (1, 0)}, (8, 8), (2, 1))
    assert used == ["_tiled"] * 2


def test_the_gradient_of_a_single_place(used):
    compared({}, (3, 4), (3, 4))
    assert used == ["_tiled"] * 2


@pytest.mark.parametrize("kernel", [(3, 3), (4, 5)])
def test_zeros_between_the_elements_of_an_image_are_left_out(used, kernel):
    compared({"window_strides": 2, "padding": (1, 2)}, (9, 11), kernel, examples=80)
    assert used == ["_in_phases"] * 2


def test_large_weights_of_few_places(used):
    compared({}, (2, 2), (1, 1), channels=512, outputs=256)
    assert used == ["_gathered", "_spread"] * 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_layers_of_small_images(dtype):
    """As by taking the image apart."""
    kind = getattr(torch, dtype)
    torch.manual_seed(0)
    x = torch.randn(2, 3, 2, 2, dtype=kind, requires_grad=True)
    w = torch.randn(4, 3, 3, 3, dtype=kind, requires_grad=True)
    out = torch.nn.functional.conv2d(x, w, padding=1)
    grads = torch.autograd.grad(out.abs().square().sum(), (x, w))
    wide = torch.complex128 if kind.is_complex else torch.float64
    X, W = (t.detach().to(wide).requires_grad_() for t in (x, w))
    padded = torch.nn.functional.pad(X, (1, 1, 1, 1))
    rows = padded.unfold(2, 3, 1).unfold(3, 3, 1)
    wanted = torch.einsum("bcijkl,ockl->boij", rows, W)
    theirs = torch.autograd.grad(wanted.abs().square().sum(), (X, W))
    rough = 3e-2 if kind is torch.bfloat16 else 1e-4
    for a, b in ((out, wanted), *zip(grads, theirs, strict=True)):
        torch.testing.assert_close(a.to(wide), b, rtol=rough, atol=rough * 10)


@pytest.mark.parametrize("space", [(1, 2, 2), (2, 1, 3)])
def test_three_dimensions_of_small_images(space):
    torch.manual_seed(0)
    x = torch.randn(2, 3, *space, dtype=torch.float64, requires_grad=True)
    layer = torch.nn.ConvTranspose3d(3, 4, 3, stride=2, dtype=torch.float64)
    assert torch.autograd.gradcheck(layer, (x,), fast_mode=True)
    assert torch.autograd.gradcheck(
        lambda w: torch.nn.functional.conv3d(x.detach(), w, padding=2),
        (torch.randn(2, 3, 3, 3, 3, dtype=torch.float64, requires_grad=True),),
        fast_mode=True,
    )
