"""gradcheck's look at forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.random import Generator
from torchshim._derived import fns
from torchshim._functions.backward import zeros_of
from torchshim._functions.creation import placed
from torchshim._functions.elementwise import allclose
from torchshim._functions.random import rand
from torchshim._functions.vmap import plain_vmap
from torchshim._tensor import Tensor, from_array
from torchshim.autograd.forward_ad import dual_level, make_dual, unpack_dual


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where gradients are wrong."""

    __module__ = "torch.autograd.gradcheck"


def drawn(x: Any, generator: Generator) -> np.ndarray:
    """A random unit vector with an entry for each element."""
    vector = np.array(rand(x.numel(), generator=generator, device="cpu")._host())
    vector = vector.astype(x.dtype.to_real().np)
    return vector / np.linalg.norm(vector)


def passes(tensors: Any) -> tuple[bool, ...]:
    """Whether the imaginary part is looked at: where some are complex, that first."""
    complex_ones = [t for t in tensors if isinstance(t, Tensor) and t.is_complex()]
    return (True, False) if complex_ones else (False,)


def forward_message(
    a: Any, n: Any, k: int, j: int, is_complex: bool, imaginary: bool
) -> str:
    """What is said of an output whose tangents are wrong."""
    part = "imaginary" if imaginary else "real"
    return (
        f"While considering the {part} part of complex inputs only, "
        if is_complex
        else ""
    ) + (
        f"Jacobian computed with forward mode mismatch for output {k} with respect to "
        f"input {j},\nnumerical:{n}\nanalytical:{a}\n"
    )


def pushed(check: Any, i: int, tangent: Any) -> list[Any]:
    """The tangents of the outputs for one of input `i`."""
    # As PyTorch, the others with tangents of zeros.
    zeros = {each: zeros_of(check.inputs[each].detach()) for each in check.where}
    pairs = _pushed(check, zeros | {i: tangent})
    return [zeros_of(primal) if moved is None else moved for primal, moved in pairs]


def _pushed(check: Any, tangents: dict[int, Any]) -> list[Any]:
    """The outputs and their tangents, for those of the inputs; None: an input has none.

    An output without a tangent has None.
    """
    with dual_level():
        args = list(check.inputs)
        for i, tangent in tangents.items():
            x = args[i].detach()
            args[i] = x if tangent is None else make_dual(x, tangent)
        outs = check.func(*args)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        return [unpack_dual(outs[k]) for k in check.smooth]


def tangents(check: Any, i: int, unit: complex) -> list[np.ndarray]:
    """The Jacobians of the outputs by input `i`, in steps of `unit`."""
    x = check.inputs[i]
    columns: list[list[np.ndarray]] = []
    for at in range(x.numel()):
        step = np.zeros(x.numel(), x.dtype.np)
        step[at] = unit
        moved = pushed(check, i, placed(step.reshape(tuple(x.shape)), x.device))
        columns.append([np.array(m.detach()._host()).ravel() for m in moved])
    return [np.stack(rows) for rows in zip(*columns, strict=True)]


def check_forward(check: Any) -> None:
    """Compares the Jacobians of forward mode with finite differences."""
    for imaginary in passes(check.inputs):
        for j, i in enumerate(check.where):
            x = check.inputs[i]
            turned = imaginary and x.is_complex()
            found = tangents(check, i, 1j if turned else 1.0)
            tables = check.numerical(i, check.smooth) if found else ()
            for k, (a, table) in enumerate(zip(found, tables, strict=True)):
                n = table[int(turned)]
                if not np.allclose(a, n, check.rtol, check.atol):
                    n = np.ascontiguousarray(n.astype(a.dtype))
                    raise GradcheckError(
                        forward_message(
                            *(from_array(a), from_array(n), k, j),
                            *(x.is_complex(), imaginary),
                        )
                    )


def check_undefined_tangents(check: Any) -> None:
    """A tangent that an input has not has to be taken for zeros."""
    for imaginary in passes(check.inputs):
        generator = Generator()
        given: dict[int, Any] = {}
        for i in check.where:
            x = check.inputs[i]
            unit = 1j if imaginary and x.is_complex() else 1
            tangent = (drawn(x, generator) * unit).astype(x.dtype.np)
            given[i] = placed(tangent.reshape(tuple(x.shape)), x.device)
        for i in check.where:
            x = check.inputs[i]
            zeros = _pushed(check, given | {i: zeros_of(x.detach())})
            without = _pushed(check, given | {i: None})
            for k, ((_, a), (_, b)) in enumerate(zip(zeros, without, strict=True)):
                if a is None or b is None:
                    continue
                if not allclose(a, b):
                    raise GradcheckError(
                        *("Mismatch in tangent values for output with index: ", k),
                        *(" when input: ", x, " has an undefined tangent value. "),
                        *(" Got: ", a, " but expected: ", b),
                    )


def check_batched(check: Any) -> None:
    """Tangents in a `vmap` have to be those of one after the other."""
    for j, i in enumerate(check.where):
        _check_batched(check, j, i)


def _check_batched(check: Any, j: int, i: int) -> None:
    x = check.inputs[i].detach()

    def pushed(row: Any) -> tuple[Any, ...]:  # the others without tangents, as PyTorch
        pairs = _pushed(check, dict.fromkeys(check.where) | {i: row})
        return tuple(zeros_of(p) if moved is None else moved for p, moved in pairs)

    rows = [fns.ones_like(x) * (0.5 + 0.25 * row) for row in range(2)]
    alone = [pushed(row) for row in rows]
    together = plain_vmap(pushed)(fns.stack(rows))
    for k, both in enumerate(together):
        expected = np.stack([row[k].detach()._host() for row in alone])
        if not np.allclose(expected, both.detach()._host()):
            raise GradcheckError(
                f"For output {k} and input {j}: batched forward gradients differ"
            )
