"""gradcheck's look at forward mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._derived import fns
from torchshim._functions.backward import zeros_of
from torchshim._functions.vmap import vmap
from torchshim._tensor import Tensor, from_array
from torchshim.autograd.forward_ad import dual_level, make_dual, unpack_dual


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` where gradients are wrong."""

    __module__ = "torch.autograd.gradcheck"


def pushed(check: Any, i: int, tangent: Any) -> list[Any]:
    """The tangents of the outputs for one of input `i`."""
    with dual_level():
        args = list(check.inputs)
        args[i] = make_dual(args[i].detach(), tangent)
        outs = check.func(*args)
        found: list[Any] = []
        for out in outs if isinstance(outs, (tuple, list)) else (outs,):
            if isinstance(out, Tensor) and (
                out.is_floating_point() or out.is_complex()
            ):
                primal, moved = unpack_dual(out)
                found.append(zeros_of(primal) if moved is None else moved)
        return found


def check_forward(check: Any, batched: bool) -> None:
    """Compares the Jacobians of forward mode with finite differences."""
    for j, i in enumerate(check.where):
        numerical = check.numerical(i)
        x = check.inputs[i]
        steps = [1.0, 1j] if x.is_complex() else [1.0]
        for s, step in enumerate(steps):
            columns: list[list[np.ndarray]] = []
            for at in range(x.numel()):
                unit = np.zeros(x.numel(), x.dtype.np)
                unit[at] = step
                moved = pushed(check, i, from_array(unit.reshape(tuple(x.shape))))
                columns.append([np.array(m.detach()._host()).ravel() for m in moved])
            for k, table in enumerate(numerical):
                if not columns:
                    continue
                analytical = np.stack([column[k] for column in columns])
                if not np.allclose(analytical, table[s], check.rtol, check.atol):
                    expected = np.ascontiguousarray(table[s].astype(analytical.dtype))
                    raise GradcheckError(
                        f"Jacobian computed with forward mode mismatch for output {k} "
                        f"with respect to input {j},\n"
                        f"numerical:{from_array(expected)}\n"
                        f"analytical:{from_array(analytical)}\n"
                    )
        if batched:
            _check_batched(check, j, i)


def _check_batched(check: Any, j: int, i: int) -> None:
    """Tangents in a `vmap` have to be those of one after the other."""
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
