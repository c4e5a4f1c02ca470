"""Convolutions that XLA for the CPU is slow at, written in another way.

- Convolutions in groups become sums of windows. XLA has a loop nest for them that takes
  10 ns a product, and for the gradients of weights 40 to 190 (`python -m benchmarks
  conv` compares layers).
- Convolutions of three dimensions become such of two, for which XLA has a kernel: 2 to
  7 times faster, transposed ones 50 times.
- Gradients of the weights of transposed convolutions have zeros between the elements of
  the image, which XLA multiplies as any other. They lie in the kernel, where XLA leaves
  them out, when the two are swapped: 2 ms in place of 70.
- Kernels with more elements than the image, and pointwise convolutions of large images,
  are products of matrices (`image_products`), or swapped so that XLA does not do it.
- In functions that stay functions, all others come in the one order of XLA's fast
  kernel. XLA brings the dimensions of a convolution into the order that its kernel
  takes (batch, space, channels) only in a program's entry. In the body of a loop or in
  a function that is not inlined, one in another order becomes a plain loop nest: 15
  times slower, and 300 times where the program was compiled fast.

Functions are rewritten after they were differentiated, so that the convolutions of
gradients are rewritten, too, and no derivative needs a rule.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from torchshim._core import image_products
from torchshim._core.placement import platform

# Up to so many products an element are written out, one after the other; with more
# channels in a group, XLA's loops are as good.
_TERMS = 40
# Up to so many places are looked at one by one.
_PLACES = 128
# Windows and kernels of so many examples and outputs are multiplied as matrices.
_MATRIX = 16

Ints = tuple[int, ...]
# What is computed for a convolution with these parameters.
Convolve = Callable[[Any, Any, Mapping[str, Any]], Any]
# The same, with the kernel that the convolution's is the mirror image of, or None where
# that is not known.
Rewriting = Callable[[Any, Any, Mapping[str, Any], Any], Any]


def in_fast_layout(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, which stays a function, with all its convolutions as XLA wants them."""
    return _rewritten(fn, convolved)


def in_windows(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with what XLA is slow at everywhere written in another way."""
    return _rewritten(fn, windowed)


def _rewritten(fn: Callable[..., Any], rewriting: Rewriting) -> Callable[..., Any]:
    if platform() != "cpu":
        return fn

    def run(*args: Any) -> Any:
        closed, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)
        results = evaluated(closed, jax.tree.leaves(args), rewriting)
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return run


def evaluated(closed: Any, args: Sequence[Any], rewriting: Rewriting) -> list[Any]:
    """The results of a traced function, its convolutions rewritten.

    `rewriting` gives None where a convolution stays as it is.
    """
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    # What was reversed, and along which dimensions.
    mirrored: dict[Any, tuple[Any, Any]] = {}

    def value(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else env[atom]  # a literal, a variable

    for eqn in jaxpr.eqns:
        operands = [value(v) for v in eqn.invars]
        found = None
        if eqn.primitive is lax.rev_p:
            mirrored[eqn.outvars[0]] = operands[0], eqn.params["dimensions"]
        if eqn.primitive is lax.conv_general_dilated_p:
            lhs, rhs = operands
            kernel, dimensions = mirrored.get(eqn.invars[1], (None, ()))
            _, _, *space = eqn.params["dimension_numbers"].rhs_spec
            if sorted(dimensions) != sorted(space):
                kernel = None
            found = rewriting(lhs, rhs, eqn.params, kernel)
        if found is not None:
            made = [found]
        elif eqn.primitive.name == "jit" and has_convolution(eqn.params["jaxpr"]):
            made = evaluated(eqn.params["jaxpr"], operands, rewriting)
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            with getattr(eqn.ctx, "manager", nullcontext()):
                made = eqn.primitive.bind(*operands, **params)
            made = made if eqn.primitive.multiple_results else [made]
        env.update(zip(eqn.outvars, made, strict=True))
    return [value(v) for v in jaxpr.outvars]


def has_convolution(jaxpr: Any) -> bool:
    """Whether a traced function has a convolution, at any depth."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return any(
        eqn.primitive is lax.conv_general_dilated_p
        or any(map(has_convolution, _functions_in(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _functions_in(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(each, "eqns"):
                yield each


def convolved(lhs: Any, rhs: Any, params: Mapping[str, Any], mirrored: Any) -> Any:
    """As sums of windows, or else in XLA's order.

    In groups that XLA is as good at, it is a loop nest in any order.
    """
    found = windowed(lhs, rhs, params, mirrored, _in_order)
    in_groups = params["feature_group_count"] > 1 or params["batch_group_count"] > 1
    if found is not None or in_groups:
        return found
    return _in_order(lhs, rhs, params)


def _in_order(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> Any:
    """A convolution with its dimensions in XLA's order."""
    numbers = params["dimension_numbers"]
    n = lhs.ndim - 2
    batch, features, *space = numbers.lhs_spec
    outputs, inputs, *window = numbers.rhs_spec
    data = (0, n + 1, *range(1, n + 1))
    wanted = lax.ConvDimensionNumbers(data, (n + 1, n, *range(n)), data)
    out = _as_it_is(
        jnp.transpose(lhs, (batch, *space, features)),
        jnp.transpose(rhs, (*window, inputs, outputs)),
        {**params, "dimension_numbers": wanted},
    )
    # Where each dimension of the result is in what was made.
    batch, features, *space = numbers.out_spec
    return jnp.moveaxis(out, range(n + 2), (batch, *space, features))


def _as_it_is(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> Any:
    return lax.conv_general_dilated_p.bind(lhs, rhs, **params)


def windowed(
    lhs: Any,
    rhs: Any,
    params: Mapping[str, Any],
    mirrored: Any = None,
    convolve: Convolve = _as_it_is,
) -> Any:
    """A convolution in another way; None where XLA is as good.

    It is a sum of windows, or, without groups, made of those that `convolve` makes.
    `mirrored`: the kernel that `rhs` is the mirror image of, if that is known.
    Groups of channels and groups of examples (gradients of weights) are one thing here:
    x of shape (examples, groups, channels, *space), w of (groups, outputs, channels,
    *kernel), and the result of (examples, groups, outputs, *places).
    """
    channel_groups = params["feature_group_count"]
    groups = max(channel_groups, params["batch_group_count"])
    kind = params["preferred_element_type"] or lhs.dtype
    if lhs.dtype != kind or rhs.dtype != kind or not (lhs.size and rhs.size):
        return None
    numbers = params["dimension_numbers"]
    steps, spans = params["window_strides"], params["rhs_dilation"]
    _, channels, *kernel = (rhs.shape[d] for d in numbers.rhs_spec)
    space = [lhs.shape[d] for d in numbers.lhs_spec[2:]]
    around = [
        (low, high, between - 1)
        for (low, high), between in zip(
            params["padding"], params["lhs_dilation"], strict=True
        )
    ]
    places = tuple(
        (low + high + size + between * (size - 1) - span * (k - 1) - 1) // step + 1
        for size, (low, high, between), k, step, span in zip(
            space, around, kernel, steps, spans, strict=True
        )
    )
    if min(places) < 1:
        return None
    if groups == 1:
        few = math.prod(places) < math.prod(kernel)
        dilated = max(params["lhs_dilation"]) > 1
        if few and dilated and max(*steps, *spans) == 1:
            return _swapped(lhs, rhs, params, places, convolve)
        if len(places) < 3:
            found = _in_products(lhs, rhs, params, places, mirrored, convolve)
            # XLA's kernel is good at gradients of weights of two dimensions.
            if found is not None or math.prod(places) > 1:
                return found
    if groups == 1 and len(places) == 3 and math.prod(places) > 1:
        return _by_depth(lhs, rhs, params, places, convolve)
    summed = _summed(groups, channels, kernel, places)
    if summed is None:
        return None
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(rhs, numbers.rhs_spec)
    w = w.reshape(groups, -1, channels, *kernel)
    if channel_groups == groups:
        x = x.reshape(x.shape[0], groups, -1, *space)
    else:
        x = jnp.moveaxis(x.reshape(groups, -1, *x.shape[1:]), 0, 1)
    x = lax.pad(x, x.dtype.type(0), [(0, 0, 0)] * 3 + around)
    out = summed(x, w, steps, spans, places)
    out = out.reshape(out.shape[0], -1, *places)
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def _in_products(
    lhs: Any,
    rhs: Any,
    params: Mapping[str, Any],
    places: Ints,
    mirrored: Any,
    convolve: Convolve,
) -> Any:
    """A convolution without groups, of at most two dimensions; None: XLA is as good."""
    numbers = params["dimension_numbers"]
    space = [lhs.shape[d] for d in numbers.lhs_spec[2:]]
    kernel = [rhs.shape[d] for d in numbers.rhs_spec[2:]]
    found = image_products.of_large_kernel(lhs, rhs, params, places, mirrored)
    if found is None and math.prod(kernel) == 1:
        found = image_products.pointwise(lhs, rhs, params, places)
    if found is None and math.prod(places) == 1:
        found = image_products.whole(lhs, rhs, params)
    if found is None and mirrored is not None:
        found = _in_phases(lhs, mirrored, params, places, convolve)
    if found is None and image_products.is_swapped(space, kernel):
        found = _swapped(lhs, rhs, params, places, convolve)
    return found


def _in_phases(
    lhs: Any,
    kernel: Any,
    params: Mapping[str, Any],
    places: Ints,
    convolve: Convolve,
) -> Any:
    """A convolution of an image with zeros between its elements, without the zeros.

    `kernel` is the mirror image of the convolution's. Of the places from t q on, with t
    the distance of two elements, each meets other elements of the kernel, every t-th of
    them. They are t channels at the place q; None where there are no zeros.
    """
    between = params["lhs_dilation"]
    steps, spans = params["window_strides"], params["rhs_dilation"]
    if max(between) == 1 or max(*steps, *spans) > 1:
        return None
    numbers, n = params["dimension_numbers"], len(places)
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(kernel, numbers.rhs_spec)
    outputs, channels, *sizes = w.shape
    met = [-(-k // t) for k, t in zip(sizes, between, strict=True)]
    rest = [m * t - k for m, t, k in zip(met, between, sizes, strict=True)]
    w = lax.pad(w, w.dtype.type(0), [(0, 0, 0)] * 2 + [(0, r, 0) for r in rest])
    split = itertools.chain.from_iterable(zip(met, between, strict=True))
    w = w.reshape(outputs, channels, *split)
    # (outputs, *phases, channels, *met)
    w = jnp.transpose(w, (0, *range(3, 2 * n + 2, 2), 1, *range(2, 2 * n + 2, 2)))
    w = lax.rev(w.reshape(-1, channels, *met), tuple(range(2, n + 2)))
    order, ones = tuple(range(n + 2)), (1,) * n
    plain = {
        **params,
        "padding": tuple((m - 1, m - 1) for m in met),
        "lhs_dilation": ones,
        "dimension_numbers": lax.ConvDimensionNumbers(order, order, order),
    }
    out = windowed(x, w, plain, None, convolve)
    if out is None:
        out = convolve(x, w, plain)
    out = out.reshape(len(x), outputs, *between, *out.shape[2:])
    woven = itertools.chain.from_iterable((n + 2 + d, 2 + d) for d in range(n))
    out = jnp.transpose(out, (0, 1, *woven))
    whole = [out.shape[2 + 2 * d] * between[d] for d in range(n)]
    out = out.reshape(len(x), outputs, *whole)
    out = image_products.at_places(out, sizes, params, places)
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def _by_depth(
    lhs: Any,
    rhs: Any,
    params: Mapping[str, Any],
    places: Ints,
    convolve: Convolve,
) -> Any:
    """Three dimensions as two: what the kernel meets along the first are channels."""
    numbers = params["dimension_numbers"]
    x, w = jnp.transpose(lhs, numbers.lhs_spec), jnp.transpose(rhs, numbers.rhs_spec)
    (low, high), between = params["padding"][0], params["lhs_dilation"][0] - 1
    around = [(0, 0, 0), (0, 0, 0), (low, high, between), (0, 0, 0), (0, 0, 0)]
    x = lax.pad(x, x.dtype.type(0), around)
    depth, step, span = (
        places[0],
        params["window_strides"][0],
        params["rhs_dilation"][0],
    )
    met = [
        lax.slice_in_dim(x, start, start + (depth - 1) * step + 1, step, 2)
        for start in range(0, w.shape[2] * span, span)
    ]
    x = jnp.moveaxis(jnp.concatenate(met, 1), 2, 1)
    w = jnp.moveaxis(w, 2, 1)
    order = tuple(range(4))
    each = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    flat = {
        **params,
        **{name: params[name][1:] for name in each},
        "dimension_numbers": lax.ConvDimensionNumbers(order, order, order),
    }
    given = (
        x.reshape(-1, *x.shape[2:]),
        w.reshape(w.shape[0], -1, *w.shape[3:]),
        flat,
    )
    out = windowed(*given, None, convolve)
    if out is None:
        out = convolve(*given)
    out = jnp.moveaxis(out.reshape(-1, depth, *out.shape[1:]), 1, 2)
    return jnp.moveaxis(out, range(out.ndim), numbers.out_spec)


def _swapped(
    lhs: Any,
    rhs: Any,
    params: Mapping[str, Any],
    places: Ints,
    convolve: Convolve,
) -> Any:
    """The kernel convolved with the image, which is smaller.

    The sum over k of x[s o + k - low] w[k], with x[t j] the elements of the image and
    w[d i] those of the kernel, is that over j of w[t j - s o + low] x[t j].
    """
    numbers, between = params["dimension_numbers"], params["lhs_dilation"]
    space = [lhs.shape[d] for d in numbers.lhs_spec[2:]]
    kernel = [rhs.shape[d] for d in numbers.rhs_spec[2:]]
    padding = []
    for d, place in enumerate(places):
        last = params["window_strides"][d] * (place - 1)
        low = last - params["padding"][d][0]
        size = (kernel[d] - 1) * params["rhs_dilation"][d] + 1
        padding.append((low, last + between[d] * (space[d] - 1) + 1 - size - low))
    batch, features, *where = numbers.out_spec
    numbers = lax.ConvDimensionNumbers(
        numbers.rhs_spec, numbers.lhs_spec, (features, batch, *where)
    )
    changed = {
        "padding": tuple(padding),
        "lhs_dilation": params["rhs_dilation"],
        "rhs_dilation": between,
        "dimension_numbers": numbers,
    }
    given = rhs, lhs, {**params, **changed}
    out = windowed(*given, None, convolve)
    if out is None:
        out = convolve(*given)
    return lax.rev(out, where)


def _summed(
    groups: int, channels: int, kernel: Sequence[int], places: Ints
) -> Callable[..., Any] | None:
    """How the windows are summed; None where XLA is as good."""
    size = math.prod(kernel)
    if math.prod(places) < min(size, _PLACES):
        return _place_by_place
    if groups == 1:
        return None
    if channels * size <= _TERMS:
        return _written_out
    return _element_by_element if channels == 1 else None


def _starts(sizes: Ints, steps: Ints) -> list[Ints]:
    """The first elements of windows `steps` apart."""
    spans = [
        range(0, size * step, step) for size, step in zip(sizes, steps, strict=True)
    ]
    return list(itertools.product(*spans))


def _written_out(x: Any, w: Any, steps: Ints, spans: Ints, places: Ints) -> Any:
    """Each element of the kernel times all that it meets: XLA makes one loop of it."""
    ones = (1,) * len(places)
    out: Any = None
    for k, start in enumerate(_starts(w.shape[3:], spans)):
        ends = [
            s + (p - 1) * t + 1 for s, p, t in zip(start, places, steps, strict=True)
        ]
        lead = x.shape[:3]
        met = lax.slice(x, (0, 0, 0, *start), (*lead, *ends), (1, 1, 1, *steps))
        for channel in range(x.shape[2]):
            weight = w[:, :, channel].reshape(*w.shape[:2], -1)[:, :, k]
            term = met[:, :, channel, None] * weight.reshape(1, *w.shape[:2], *ones)
            out = term if out is None else out + term
    return out


def _element_by_element(x: Any, w: Any, steps: Ints, spans: Ints, places: Ints) -> Any:
    """As `_written_out`, of one channel, in a loop over the kernel's elements."""
    ones = (1,) * len(places)
    starts = jnp.array(_starts(w.shape[3:], spans), jnp.int32)
    weights = jnp.moveaxis(w.reshape(*w.shape[:2], -1), 2, 0)
    met = partial(_window, x, places, steps)

    def add(out: Any, given: Any) -> tuple[Any, None]:
        start, weight = given
        return out + met(start) * weight.reshape(1, *weight.shape, *ones), None

    first = jnp.zeros((x.shape[0], *w.shape[:2], *places), x.dtype)
    return lax.scan(add, first, (starts, weights))[0]


def _place_by_place(x: Any, w: Any, steps: Ints, spans: Ints, places: Ints) -> Any:
    """Each place's window times the whole kernel, in a loop over the places."""
    starts = jnp.array(_starts(places, steps), jnp.int32)
    met = partial(_window, x, w.shape[3:], spans)
    flat = w.reshape(*w.shape[:2], -1)

    def product(start: Any) -> Any:
        rows = jnp.moveaxis(met(start), 1, 0).reshape(len(flat), len(x), -1)
        return lax.dot_general(rows, flat, (((2,), (2,)), ((0,), (0,))))

    def total(start: Any) -> Any:
        return jnp.sum(met(start)[:, :, None] * w, tuple(range(3, w.ndim + 1)))

    if len(x) * w.shape[1] < _MATRIX:
        return jnp.moveaxis(lax.map(total, starts), 0, -1)
    # (places, groups, examples, outputs)
    each = product(starts[0])[None] if len(starts) == 1 else lax.map(product, starts)
    return jnp.moveaxis(each, (2, 0), (0, -1))


def _window(x: Any, sizes: Ints, steps: Ints, start: Any) -> Any:
    """So many elements of each of the last dimensions from `start`, `steps` apart."""
    lead = x.shape[:3]
    extent = [(size - 1) * step + 1 for size, step in zip(sizes, steps, strict=True)]
    zero = jnp.zeros(3, start.dtype)
    found = lax.dynamic_slice(x, [*zero, *start], (*lead, *extent))
    return found[(slice(None),) * 3 + tuple(slice(None, None, step) for step in steps)]
