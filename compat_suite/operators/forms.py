"""The ways a function is called: as it is, in place, with `out=`, for gradients.

A form makes of a library's function one whose result is compared. The same form is
applied in PyTorch and in torchshim. This needs no torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from compat_suite.operators.values import distinct, dtype_name, is_tensor, tensors

Call = Callable[..., Any]
#: The dtypes that results are judged by.
WIDER = {
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float64",
    "complex32": "complex64",
    "complex64": "complex128",
}


class Form:
    """What the forms have in common."""

    def wider(self) -> Any:
        """The form for arguments in higher precision."""
        return self


class Plain(Form):
    """The function as it is."""

    def told(self) -> dict[str, Any]:
        """The form as JSON, for `form`."""
        return {}

    def __call__(self, library: Any, function: Call) -> Call:
        """The function."""
        return function


class OnCopy(Form):
    """A function that changes its first argument, made to change a copy."""

    def told(self) -> dict[str, Any]:
        """The form as JSON, for `form`."""
        return {"copy": {}}

    def __call__(self, library: Any, function: Call) -> Call:
        """A function that gives the result and the copy."""

        def call(input: Any, *args: Any, **kwargs: Any) -> Any:
            own = input.clone() if hasattr(input, "clone") else input
            result = function(own, *args, **kwargs)
            return {"result": result, "self": own, "is self": result is own}

        return call


@dataclass(frozen=True)
class Into(Form):
    """`out=` of tensors like `outs`, or of size 0; results must be those tensors."""

    outs: tuple[tuple[tuple[int, ...], str], ...]  # shapes and dtypes
    single: bool
    resized: bool

    def told(self) -> dict[str, Any]:
        """The form as JSON, for `form`."""
        return {"out": asdict(self)}

    def wider(self) -> Into:
        """The form for arguments in higher precision."""
        outs = tuple((shape, WIDER.get(name, name)) for shape, name in self.outs)
        return replace(self, outs=outs)

    def __call__(self, library: Any, function: Call) -> Call:
        """A function that gives the result, and whether it is what was given."""

        def call(*args: Any, **kwargs: Any) -> Any:
            outs = [
                library.ones((0,) if self.resized else shape, dtype=kind)
                for shape, kind in (
                    (shape, getattr(library, name)) for shape, name in self.outs
                )
            ]
            out = outs[0] if self.single else tuple(outs)
            result = function(*args, **kwargs, out=out)
            given = [result] if self.single else list(result)
            same = [r is o for r, o in zip(given, outs, strict=False)]
            return {"result": result, "is out": same}

        return call


@dataclass(frozen=True)
class Gradients(Form):
    """First, second or third gradients of all arguments that require them."""

    second: bool
    seed: int
    third: bool = False

    def told(self) -> dict[str, Any]:
        """The form as JSON, for `form`."""
        return {"gradients": asdict(self)}

    def __call__(self, library: Any, function: Call) -> Call:
        """A function that gives gradients; None where there is nothing to give."""

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves = [t for t in tensors([args, kwargs]) if t.requires_grad]
            results = tensors(function(*args, **kwargs))
            order = 3 if self.third else 2 if self.second else 1
            shown = gradients(library, results, leaves, order, self.seed)
            if order > 1:
                return shown
            requires = {"requires_grad": [r.requires_grad for r in results]}
            return requires | (shown or {})

        return call


@dataclass(frozen=True)
class Tangents(Form):
    """Results in forward mode, and their tangents."""

    seed: int

    def __call__(self, library: Any, function: Call) -> Call:
        """A function that gives primals and tangents."""
        forward = library.autograd.forward_ad

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves = distinct([t for t in tensors([args, kwargs]) if t.requires_grad])
            with forward.dual_level():
                made = {
                    id(t): forward.make_dual(
                        t.detach(), cotangent(library, t, self.seed + i)
                    )
                    for i, t in enumerate(leaves)
                }
                given, named = replaced((args, kwargs), made)
                results = tensors(function(*given, **named))
                pairs = [forward.unpack_dual(r) for r in results]
                # A tangent that is constant may be None or zeros.
                return [
                    (p.detach(), library.zeros_like(p) if t is None else dense(t))
                    for p, t in pairs
                ]

        return call


@dataclass(frozen=True)
class Mapped(Form):
    """`vmap` over two calls in one: of all tensors, or of the first along its end."""

    first: bool

    def __call__(self, library: Any, function: Call) -> Call:
        """A function that gives what both calls give, stacked."""

        def call(*args: Any, **kwargs: Any) -> Any:
            found = distinct(tensors([args, kwargs]))
            count = 1 if self.first else len(found)
            places = [-1 if self.first else 0] * count + [None] * (len(found) - count)

            def one(*mapped: Any) -> Any:
                made = dict(zip(map(id, found), mapped, strict=True))
                given, named = replaced((args, kwargs), made)
                return tensors(function(*given, **named))

            twice = [
                t if at is None else library.stack([t, halved(t)], at)
                for t, at in zip(found, places, strict=True)
            ]
            return list(library.func.vmap(one, in_dims=tuple(places))(*twice))

        return call


def halved(tensor: Any) -> Any:
    """A tensor of other values that keeps what functions ask of them."""
    exact = not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
    return tensor if exact else tensor * 0.5


def replaced(value: Any, made: dict[int, Any]) -> Any:
    """A nest of arguments with other tensors in the place of those that it holds."""
    if is_tensor(value):
        return made.get(id(value), value)
    if type(value) in (list, tuple):
        return type(value)(replaced(v, made) for v in value)
    if isinstance(value, dict):
        return {k: replaced(v, made) for k, v in value.items()}
    return value


_FORMS: dict[str, Callable[..., Any]] = {
    "copy": OnCopy,
    "out": Into,
    "gradients": Gradients,
}


def form(told: dict[str, Any] | None) -> Any:
    """The form that a file tells of."""
    if not told:
        return Plain()
    ((name, fields),) = told.items()
    return _FORMS[name](**fields)


def gradients(
    library: Any, results: list[Any], leaves: list[Any], order: int, seed: int
) -> dict[str, Any] | None:
    """Gradients of results by leaves, for the same random cotangents everywhere.

    Those of a higher `order` are of all gradients of the order before.
    """
    leaves = distinct(leaves)
    outputs = list(enumerate(r for r in results if r.requires_grad))
    if not leaves or not outputs:
        return None
    found: list[Any] = []
    for made in range(order):
        cotangents = [cotangent(library, r, seed + i) for i, r in outputs]
        found = [None] * len(leaves)
        if outputs:
            found = library.autograd.grad(
                [r for _, r in outputs],
                leaves,
                cotangents,
                allow_unused=True,
                create_graph=made + 1 < order,
            )
        outputs = [
            (i, g) for i, g in enumerate(found) if g is not None and g.requires_grad
        ]
        seed += 7
    if order == 1:
        return {"gradients": [None if g is None else dense(g) for g in found]}
    # A gradient that is constant may be None or zeros, by how it was computed.
    return {
        "gradients": [
            library.zeros_like(x) if g is None else dense(g)
            for g, x in zip(found, leaves, strict=True)
        ]
    }


def dense(gradient: Any) -> Any:
    """A gradient with memory: PyTorch has zeros without any."""
    if getattr(gradient, "_is_zerotensor", lambda: False)():
        return gradient.clone()
    return gradient.detach()


def cotangent(library: Any, like: Any, seed: int) -> Any:
    """A random tensor of the shape and dtype of another, the same in both libraries."""
    # This generator's numbers are promised never to change.
    rng = np.random.RandomState(seed)
    shape = tuple(like.shape)
    values = rng.standard_normal(shape)
    if like.dtype.is_complex:
        values = values + 1j * rng.standard_normal(shape)
    wide = library.complex128 if like.dtype.is_complex else library.float64
    kind = getattr(library, dtype_name(like))
    return library.tensor(values, dtype=wide).to(kind)
