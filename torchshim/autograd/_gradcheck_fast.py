"""gradcheck's fast mode: each Jacobian between two random vectors.

The vectors are PyTorch's: of a generator of their own, in its order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.random import Generator
from torchshim._functions.creation import placed
from torchshim._tensor import from_array
from torchshim.autograd._gradcheck_forward import (
    GradcheckError,
    drawn,
    forward_message,
    passes,
    pushed,
    tangents,
)

_RECOMPUTED = (
    "\nThe above quantities relating the numerical and analytical jacobians are "
    "computed \nin fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for "
    "more background \nabout fast mode. Below, we recompute numerical and analytical "
    "jacobians in slow mode:\n\nNumerical:\n {}\nAnalytical:\n{}\n\n"
    "The max per-element difference (slow mode) is: {}.\n"
)
_SMALL = (
    "Fast gradcheck failed but element-wise differences are small. This means that "
    "the\ntest might've passed in slow_mode!\n\nIf you are adding a new operator, "
    "please file an issue and then use one of the\nworkarounds. The workaround depends "
    "on how your test invokes gradcheck/gradgradcheck:\n\nIf the test\n- manually "
    "invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck\n  with "
    "`fast_mode=False` as a keyword argument.\n- is OpInfo-based (e.g., in "
    "test_ops_gradients.py), then modify the OpInfo for the test\n  to have "
    "`gradcheck_fast_mode=False`\n- is a Module test (e.g., in common_nn.py), then "
    "modify the corresponding\n  module_test entry to have `gradcheck_fast_mode=False`"
)


def compare_fast(check: Any) -> None:
    """Compares the gradients between random vectors with finite differences."""
    generator = Generator()
    inputs = [check.inputs[i] for i in check.where]
    us = [[drawn(x, generator) for _ in range(1 + x.is_complex())] for x in inputs]
    vs = [drawn(o, generator) for o in check.outputs]
    # For each input, its directions and each output.
    moves = [
        [
            check.moved(i, u * unit, check.chosen)
            for u, unit in zip(pair, (1, 1j), strict=False)
        ]
        for i, pair in zip(check.where, us, strict=True)
    ]
    if not check.outputs:
        for move in (m for found in moves for direction in found for m in direction):
            if move.size and np.abs(move).max() > check.nondet_tol:
                raise GradcheckError(
                    "Numerical gradient for function expected to be zero"
                )
        return
    for imaginary in passes(check.all_outputs):
        analytical = [
            _pulled(check, o, v, us, imaginary)
            for o, v in zip(check.outputs, vs, strict=True)
        ]
        for j, (pair, found) in enumerate(zip(us, moves, strict=True)):
            for k, (output, v) in enumerate(zip(check.outputs, vs, strict=True)):
                unit = imaginary and output.is_complex()
                parts = [np.sum(v * _part(move[k], unit)) for move in found]
                n = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
                a = analytical[k][j]
                atol = check.atol * float(sum(u.sum() for u in pair)) * float(v.sum())
                if not np.allclose(a, n, check.rtol, atol):
                    raise GradcheckError(
                        check.message(
                            *(a.item(), n.item(), k, j, output.is_complex(), imaginary)
                        )
                        + _slowly(check, j, k, unit)
                    )


def _part(value: np.ndarray, imaginary: bool) -> np.ndarray:
    return np.imag(value) if imaginary else np.real(value)


def _pulled(
    check: Any, output: Any, v: np.ndarray, us: Any, imaginary: bool
) -> list[Any]:
    """The gradients of an output along `v`, each along the directions of its input."""
    unit = 1j if imaginary and output.is_complex() else 1
    vector = (v * unit).astype(output.dtype.np).reshape(tuple(output.shape))
    rows = check.pulled_twice(output, placed(vector, output.device))
    found: list[Any] = []
    for row, pair in zip(rows, us, strict=True):
        flat = row.reshape(-1)
        if len(pair) == 2:
            found.append(flat.real @ pair[0] + 1j * (flat.imag @ pair[1]))
        else:
            found.append(flat @ pair[0])
    return found


def _slowly(check: Any, j: int, k: int, imaginary: bool) -> str:
    """What slow mode has to say of one input and one output."""
    n = check.flat(check.numerical(check.where[j], check.chosen)[k], imaginary)
    tolerance, check.nondet_tol = check.nondet_tol, float("inf")
    a = check.analytical(check.outputs[k], 1j if imaginary else 1.0)[j]
    check.nondet_tol = tolerance
    return _recomputed(check, n, a)


def _recomputed(check: Any, n: np.ndarray, a: np.ndarray) -> str:
    n = np.ascontiguousarray(n.astype(a.dtype))
    text = _RECOMPUTED.format(from_array(n), from_array(a), np.abs(n - a).max())
    return text + _SMALL if np.allclose(a, n, check.rtol, check.atol) else text


def compare_forward_fast(check: Any) -> None:
    """Compares the tangents along random vectors with finite differences."""
    for imaginary in passes(check.inputs):
        generator = Generator()
        us = [drawn(check.inputs[i], generator) for i in check.where]
        for j, (i, u) in enumerate(zip(check.where, us, strict=True)):
            x = check.inputs[i]
            unit = 1j if imaginary and x.is_complex() else 1
            direction = (u * unit).astype(x.dtype.np).reshape(tuple(x.shape))
            pushes = pushed(check, i, placed(direction, x.device))
            for k, (n, moved) in enumerate(
                zip(check.moved(i, u * unit, check.smooth), pushes, strict=True)
            ):
                a = np.array(moved.detach()._host()).reshape(-1)
                if not np.allclose(a, n, check.rtol, check.atol * float(u.sum())):
                    raise GradcheckError(
                        forward_message(
                            *(from_array(a), from_array(n), k, j),
                            *(x.is_complex(), imaginary),
                        )
                        + _forward_slowly(check, i, k, unit)
                    )


def _forward_slowly(check: Any, i: int, k: int, unit: complex) -> str:
    n = check.numerical(i, check.smooth)[k][1 if unit == 1j else 0]
    return _recomputed(check, n, tangents(check, i, unit)[k])
