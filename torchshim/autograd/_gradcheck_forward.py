"""gradcheck's look at forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._derived import fns
from torchshim._functions.backward import zeros_of
from torchshim._functions.creation import placed
from torchshim._functions.vmap import vmap
from torchshim._tensor import Tensor, from_array
from torchshim.autograd.forward_ad import dual_level, make_dual, unpack_dual


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where gradients are wrong."""

    __module__ = "torch.autograd.gradcheck"


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
    with dual_level():
        args = list(check.inputs)
        for each in check.where:  # as PyTorch, the others with tangents of zeros
            x = args[each].detach()
            args[each] = make_dual(x, tangent if each == i else zeros_of(x))
        outs = check.func(*args)
        outs = outs if isinstance(outs, (tuple, list)) else (outs,)
        found: list[Any] = []
        for primal, moved in (unpack_dual(outs[k]) for k in check.smooth):
            found.append(zeros_of(primal) if moved is None else moved)
        return found


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


def check_batched(check: Any) -> None:
    """Tangents in a `vmap` have to be those of one after the other."""
    for j, i in enumerate(check.where):
        _check_batched(check, j, i)


def _check_batched(check: Any, j: int, i: int) -> None:
    x = check.inputs[i].detach()
    rows = [fns.ones_like(x) * (0.5 + 0.25 * row) for row in range(2)]
    alone = [pushed(check, i, row) for row in rows]
    together = vmap(lambda row: tuple(pushed(check, i, row)))(fns.stack(rows))
    for k, both in enumerate(together):
        expected = np.stack([row[k].detach()._host() for row in alone])
        if not np.allclose(expected, both.detach()._host()):
            raise GradcheckError(
                f"For output {k} and input {j}: batched forward gradients differ"
            )
