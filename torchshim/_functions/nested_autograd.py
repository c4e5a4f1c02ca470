"""Backward passes from and to nested tensors: what passes is their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from torchshim._functions.composed import Composed
from torchshim._functions.nested_tensor import handles


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (tuple, list)) else [given]


def _values(given: Any) -> Any:
    """Tensors with the values of nested ones in their place."""
    if given is None:
        return None
    return [t._v if isinstance(t, Composed) else t for t in _listed(given)]


def _vectors(given: Any, outputs: Sequence[Any]) -> Any:
    """The gradients of outputs, of nested ones those of their values."""
    if given is None:
        return None
    pairs = zip(_listed(given), outputs, strict=True)
    return [
        out._values_of(v) if isinstance(out, Composed) and v is not None else v
        for v, out in pairs
    ]


@handles("_vmap_enter")
def vmap_enter(func: Any, *args: Any) -> NoReturn:
    """Refused: `vmap` maps over dense tensors."""
    raise NotImplementedError("vmap is not supported for nested tensors")


@handles("_recompute_input")
def recompute_input(func: Any, input: Any, after: Any) -> Any:
    """As the operator of that name, which checkpointing uses, of the values."""
    after = _values(after)
    if not isinstance(input, Composed):
        return func(input, after)
    return input._like(func(input._v, after))


@handles("grad")
def grad(
    func: Any, outputs: Any, inputs: Any, grad_outputs: Any = None, **options: Any
) -> Any:
    """As `torch.autograd.grad`."""
    wanted = _listed(inputs)
    vectors = _vectors(grad_outputs, _listed(outputs))
    found = func(_values(outputs), _values(inputs), grad_outputs=vectors, **options)
    return tuple(
        t._gradient(g) if isinstance(t, Composed) and g is not None else g
        for t, g in zip(wanted, found, strict=True)
    )


@handles("backward")
def backward(
    func: Any, tensors: Any, grad_tensors: Any = None, *args: Any, **options: Any
) -> None:
    """As `torch.autograd.backward`."""
    inputs = options.pop("inputs", None)
    if inputs is not None:
        options["inputs"] = _values(inputs)
    vectors = _vectors(grad_tensors, _listed(tensors))
    func(_values(tensors), vectors, *args, **options)
