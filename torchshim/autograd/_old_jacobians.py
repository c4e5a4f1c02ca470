"""Jacobians of `gradcheck` under the names that it once had in public."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from torchshim import _warnings as warnings
from torchshim._derived import fns
from torchshim._functions.backward import grad as _grad
from torchshim._functions.func_reverse import standard_basis
from torchshim._tensor import Tensor
from torchshim.autograd.grad_mode import no_grad


def _old(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We "
        "are deprecating it and it will be removed in a future version of PyTorch. If "
        "you have a specific use for this or feature request for this to be a stable "
        "API, please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of "
            "grad_out != 1.0."
        )


def _tracked(values: Any) -> list[Any]:
    if isinstance(values, Tensor):
        return [values] if values.requires_grad else []
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [t for value in values for t in _tracked(value)]
    return []


def _outputs(values: Any) -> list[Any]:
    return [values] if isinstance(values, Tensor) else list(values)


def _get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    outputs: Any = None,
    target: Any = None,
    eps: float = 1e-3,
    is_forward_ad: bool = False,
) -> list[tuple[Any, ...]]:
    """For each tracked tensor of `target` the Jacobians of all outputs by it.

    The tensors are changed in place for the differences, and put back.
    """
    outputs = _outputs(fn(*inputs) if outputs is None else outputs)
    found = []
    for x in _tracked(inputs if target is None else target):
        rows: list[list[Any]] = [[] for _ in outputs]
        steps = (eps, 1j * eps) if x.is_complex() else (eps,)
        for place in itertools.product(*(range(n) for n in x.shape)):
            ways = [_differences(fn, inputs, x, place, step) for step in steps]
            for row, parts in zip(rows, zip(*ways, strict=True), strict=True):
                real, *imaginary = parts
                row.append(real + 1j * imaginary[0] if imaginary else real)
        found.append(
            tuple(
                fns.stack(row)
                if row
                else x.new_zeros(0, output.numel(), dtype=output.dtype)
                for row, output in zip(rows, outputs, strict=True)
            )
        )
    return found


def _differences(
    fn: Callable[..., Any], inputs: Sequence[Any], x: Any, place: Any, step: complex
) -> list[Any]:
    ends = []
    before = x.detach()[place].item()
    for value in (before - step, before + step):
        with no_grad():
            x[place] = value
        ends.append([out.detach().clone() for out in _outputs(fn(*inputs))])
    with no_grad():
        x[place] = before
    pairs = zip(*ends, strict=True)
    return [((b - a) / (2 * abs(step))).reshape(-1) for a, b in pairs]


def get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Sequence[Any],
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Any, ...]:
    """The Jacobians of a function's first output; it takes a tuple of inputs."""
    _old("get_numerical_jacobian", grad_out)
    found = _get_numerical_jacobian(
        lambda *given: fn(given), inputs, target=target, eps=eps
    )
    return tuple(each[0] for each in found)


def get_analytical_jacobian(
    inputs: Sequence[Any], output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[Any, bool, bool, bool]:
    """(Jacobians by the inputs, whether twice the same, right sizes, right types)."""
    _old("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer "
            "supports functions that return complex outputs."
        )
    targets = _tracked(inputs)
    found = []
    sizes = types = True
    for _ in range(2):
        columns: list[list[Any]] = [[] for _ in targets]
        (basis,) = standard_basis([output], 0, output.numel())
        for vector in basis:
            grads = _grad(
                output,
                targets,
                vector,
                retain_graph=True,
                allow_unused=True,
            )
            for x, column, each in zip(targets, columns, grads, strict=True):
                each = x.new_zeros(x.shape) if each is None else each
                sizes = sizes and each.shape == x.shape
                types = types and each.dtype == x.dtype
                column.append(each.reshape(-1))
        found.append(tuple(fns.stack(column, dim=1) for column in columns))
    same = all(
        bool(((a - b).abs() <= nondet_tol).all()) for a, b in zip(*found, strict=True)
    )
    return found[0], same, sizes, types
