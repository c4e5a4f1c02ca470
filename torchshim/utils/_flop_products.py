"""The products that PyTorch would call for in the place of a recorded event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import jax
import numpy as np

from torchshim._core.avals import abstract
from torchshim._core.batching import BatchedCall
from torchshim._core.call import Call, PythonCall, VjpCall
from torchshim._core.forward import JvpCall
from torchshim._errors import Unsupported

# PyTorch's operator, the shapes that its formula takes, the shape of its result.
Product = tuple[str, tuple[Any, ...], Any]
# A product of matrices: its operator, the positions of its factors among an event's
# operands (several, where a factor is made of several), and their shapes.
Factors = tuple[str, tuple[int, ...], tuple[int, ...], Any, Any]

# PyTorch makes these of no product that it counts: kernels of their own, or sums of
# what is multiplied element by element.
_UNCOUNTED = frozenset({"dot", "vdot", "mv", "addmv", "fused_attention", "bilinear"})
_UNCOUNTED |= {"upsample_smooth"}


def products(event: Any) -> list[Product]:
    """Those of an event itself; gradients count where a backward comes to them."""
    call = event.call
    if isinstance(call, (VjpCall, PythonCall)):
        return []
    _refuse_transformed(call)
    name = _name(call)
    if name in _CONVOLUTIONS:
        return [_convolution(event, name)]
    found = _factors(event)
    if found is None:
        return _none(event, call)
    if call.op.name.endswith("_"):
        return []  # PyTorch has no formula for what writes its sum in place
    return [_product(*each) for each in found if each[0] != "addbmm"]


def backward_products(event: Any, wrt: Sequence[int]) -> list[Product]:
    """Those of the gradient of an event by some of its operands."""
    call = event.call
    if isinstance(call, PythonCall):
        return []
    _refuse_transformed(call)
    name = _name(call)
    if name in _CONVOLUTIONS:
        return [_convolution_backward(event, name, wrt)]
    found = _factors(event)
    if found is None:
        return _none(event, call, tuple(wrt))
    made: list[Product] = []
    for _, left, right, a, b in reversed(found):
        plain = "bmm" if len(a) == 3 else "mm"
        out = (*a[:-1], b[-1])
        if any(i in wrt for i in left):
            made.append(_product(plain, left, right, out, _t(b)))
        if any(i in wrt for i in right):
            made.append(_product(plain, left, right, _t(a), out))
    return made


def _refuse_transformed(call: Any) -> None:
    if isinstance(call, (BatchedCall, JvpCall)):
        raise Unsupported(
            f"FlopCounterMode: {call} cannot be counted: vmap and forward mode are not "
            "supported"
        )


def _name(call: Any) -> str:
    return call.op.name.removesuffix("_") if isinstance(call, Call) else ""


def _t(shape: Sequence[int]) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


def _product(name: str, left: Any, right: Any, a: Any, b: Any) -> Product:
    out = (*a[:-1], b[-1])
    return name, (out, a, b) if name in ("addmm", "baddbmm") else (a, b), out


# Products of matrices -----------------------------------------------------------------


def _factors(event: Any) -> list[Factors] | None:
    """The products that an event is made of; None where it is none that is known."""
    name = _name(event.call)
    if name in _UNCOUNTED:
        return []
    find = _FACTORS.get(name)
    return None if find is None else find(event)


def _shapes(event: Any) -> list[tuple[int, ...]]:
    return [tuple(meta.shape) for meta in event.given]


def _plain(event: Any) -> list[Factors]:
    """mm, bmm, and those that add the product to their first operand."""
    at = event.call.op.name.startswith(("add", "badd"))
    shapes = _shapes(event)
    return [(_name(event.call), (at,), (at + 1,), shapes[at], shapes[at + 1])]


def _is_foldable(meta: Any) -> bool:
    """Whether all dimensions but the last are one, in memory."""
    shape, strides = meta.shape, meta.strides
    return all(
        strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2)
    )


def _matmul(event: Any) -> list[Factors]:
    left, right = event.given
    return _matmul_of(left, tuple(right.shape), right.requires_grad, right.strides)


def _matmul_of(
    left: Any, b: tuple[int, ...], needs: bool, strides: Sequence[int]
) -> list[Factors]:
    a = tuple(left.shape)
    if len(b) == 1 and len(a) <= 2:
        return []
    if len(a) <= 2 and len(b) == 2:
        return [("mm", (0,), (1,), (1, *a) if len(a) == 1 else a, b)]
    if len(a) >= 3 and len(b) <= 2:
        if needs or 0 in a or _is_foldable(left):
            if len(b) == 1:
                return []
            return [("mm", (0,), (1,), (prod(a[:-1]), a[-1]), b)]
    elif len(b) >= 3 and len(a) <= 2:
        swapped = _Laid(_t(b), (*strides[:-2], strides[-1], strides[-2]))
        # A matrix is no folded factor of a transposed one, unless a gradient is wanted.
        if left.requires_grad or (len(a) == 1 and (0 in b or _is_foldable(swapped))):
            if len(a) == 1:
                return []
            t = swapped.shape
            return [("mm", (1,), (0,), (prod(t[:-1]), t[-1]), _t(a))]
    a = (1, *a) if len(a) == 1 else a
    b = (*b, 1) if len(b) == 1 else b
    count = prod(np.broadcast_shapes(a[:-2], b[:-2]))
    return [("bmm", (0,), (1,), (count, *a[-2:]), (count, *b[-2:]))]


class _Laid:
    """A shape and strides."""

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
        self.shape, self.strides = shape, strides


def _linear(event: Any) -> list[Factors]:
    x, weight = event.given[:2]
    shape = list(x.shape)
    if len(weight.shape) == 1:
        return []
    w = _t(weight.shape)
    if len(event.given) > 2 and (len(shape) < 3 or _is_contiguous(x)):
        return [("addmm", (0,), (1,), (prod(shape[:-1]), shape[-1]), w)]
    return _matmul_of(x, w, weight.requires_grad, ())


def _is_contiguous(meta: Any) -> bool:
    expected = 1
    if 0 in meta.shape:
        return True
    for size, stride in zip(reversed(meta.shape), reversed(meta.strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _inner(event: Any) -> list[Factors]:
    a, b = map(list, _shapes(event))
    if len(a) < 2 and len(b) < 2:
        return []
    rows, columns = prod(a[:-1]), prod(b[:-1])
    return [("mm", (0,), (1,), (rows, a[-1]), (a[-1], columns))]


def _tensordot(event: Any) -> list[Factors]:
    a, b = _shapes(event)
    one, two = event.call.template[2:4]
    contracted = prod(a[i] for i in one)
    sizes = [
        prod(size for i, size in enumerate(shape) if i not in _places(at, shape))
        for shape, at in ((a, one), (b, two))
    ]
    return [("mm", (0,), (1,), (sizes[0], contracted), (contracted, sizes[1]))]


def _places(dims: Sequence[int], shape: Sequence[int]) -> set[int]:
    return {d % len(shape) for d in dims}


def _einsum(event: Any) -> list[Factors]:
    """Of two operands: one product of the dimensions, gathered by where they occur."""
    shapes = _shapes(event)
    if len(shapes) == 1:
        return []
    equation = event.call.template[0]
    if len(shapes) > 2:
        raise Unsupported(
            f"FlopCounterMode: einsum('{equation}') of more than two operands is not "
            "supported: the order of its products is JAX's"
        )
    terms, right = equation.split("->")
    a, b = (
        {c for c, size in zip(term, shape, strict=True) if size != 1}
        for term, shape in zip(terms.split(","), shapes, strict=True)
    )
    sizes: dict[str, int] = {}
    for term, shape in zip(terms.split(","), shapes, strict=True):
        for c, size in zip(term, shape, strict=True):
            sizes[c] = size if sizes.get(c, 1) == 1 else sizes[c]
    out = set(right)
    if not (a & b) - out:
        return []  # multiplied element by element
    count, m, n, k = (
        prod(sizes[c] for c in group)
        for group in (a & b & out, (a - b) & out, (b - a) & out, (a & b) - out)
    )
    return [("bmm", (0,), (1,), (count, m, k), (count, k, n))]


def _attention(event: Any) -> list[Factors]:
    """Scores, then their average of the values."""
    owners = event.call.owners
    shapes = dict(zip(owners, _shapes(event), strict=True))
    q, k, v = (shapes[name] for name in ("query", "key", "value"))
    if not len(q) == len(k) == len(v):
        raise Unsupported(
            "FlopCounterMode: attention of operands with different numbers of "
            "dimensions is not supported"
        )
    scores = tuple(i for i, name in enumerate(owners) if name != "value")
    places = {name: (i,) for i, name in enumerate(owners)}
    count, made = prod(q[:-2]), "bmm"
    lead: tuple[int, ...] = (count,)
    if len(q) == 2:
        made, lead = "mm", ()
    weights = (*lead, q[-2], k[-2])
    return [
        (made, places["query"], places["key"], (*lead, *q[-2:]), (*lead, *_t(k)[-2:])),
        (made, scores, places["value"], weights, (*lead, *v[-2:])),
    ]


_FACTORS: dict[str, Callable[[Any], list[Factors]]] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "addbmm"), _plain),
    "matmul": _matmul,
    "linear": _linear,
    "inner": _inner,
    "_tensordot": _tensordot,
    "_einsum": _einsum,
    "attention": _attention,
}


# Convolutions -------------------------------------------------------------------------

_CONVOLUTIONS = {
    f"{name}{n}d": n for name in ("conv", "conv_transpose") for n in (1, 2, 3)
}


def _sizes(event: Any, name: str) -> list[tuple[int, ...]]:
    """The shapes of the input, the weight and the result, with examples."""
    x, w, out = (tuple(m.shape) for m in (*event.given[:2], event.metas[0]))
    if event.given[0].dtype.is_complex:
        raise Unsupported("FlopCounterMode: convolutions of complex numbers")
    if len(x) == _CONVOLUTIONS[name] + 1:
        x, out = (1, *x), (1, *out)
    return [x, w, out]


def _convolution(event: Any, name: str) -> Product:
    x, w, out = _sizes(event, name)
    transposed = name.startswith("conv_transpose")
    return "convolution", (x, w, None, None, None, None, transposed), out


def _convolution_backward(event: Any, name: str, wrt: Sequence[int]) -> Product:
    x, w, out = _sizes(event, name)
    transposed = name.startswith("conv_transpose")
    mask = [i in wrt for i in range(3)]
    given = (out, x, w, None, None, None, None, transposed, None, None, mask)
    return "convolution_backward", given, (x, w, None)


# Anything else ------------------------------------------------------------------------

_PRODUCTS = ("dot_general", "conv_general_dilated")
_searched: dict[Any, bool] = {}


def _none(event: Any, call: Any, wrt: tuple[int, ...] | None = None) -> list[Product]:
    """Nothing to count: raises if there is a product in it after all."""
    avals = tuple((tuple(m.shape), m.dtype) for m in event.given)
    key = call, avals, wrt
    if key not in _searched:
        if len(_searched) > 4096:
            _searched.clear()
        _searched[key] = _multiplies(call, avals, wrt)
    if _searched[key]:
        what = f"the gradient of {call}" if wrt is not None else f"{call}"
        raise Unsupported(
            f"FlopCounterMode: {what} has products in it, but not those of PyTorch's "
            "kernel: it cannot be counted"
        )
    return []


def _multiplies(call: Any, avals: Any, wrt: tuple[int, ...] | None) -> bool:
    def run(arrays: Any, numbers: Any) -> Any:
        if wrt is None:
            return call.apply(arrays, numbers)
        outs, pull = call.linearize(arrays, numbers, wrt)
        return pull(list(outs))

    with jax.enable_x64(True):
        text = str(jax.make_jaxpr(run)(*abstract(call, avals)))
    return any(name in text for name in _PRODUCTS)
