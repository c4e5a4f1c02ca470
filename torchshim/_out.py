"""`out=`: what is refused before anything is computed.

How a result gets into the tensors given: `_bind.write_out`, `_functions/memory.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torchshim._arguments import type_name
from torchshim._core.levels import FORWARD
from torchshim._core.storage import TensorBase

# Functions that are another one's where PyTorch writes to `out=`.
_OUT_OF = {
    "hstack": "cat",
    "linalg_inv": "linalg_inv_ex",
    "linalg_svd": "_linalg_svd",
    "matmul": "mm",
    "outer": "mul",
    "special_erf": "erf",
    "vstack": "cat",
}
# Functions whose result PyTorch copies to `out=`, tangent and all.
_COPIED = frozenset({"linalg_matrix_norm"})
_TRACKED = (
    "{}(): functions with out=... arguments don't support automatic "
    "differentiation, but one of the arguments requires grad."
)


def check_outs(name: str, out: Any, count: int, place: int) -> None:
    """Raises PyTorch's errors for an `out=` that is not a tuple of `count` tensors.

    `place`: the argument's number in PyTorch's signature, from 0.
    """
    if not isinstance(out, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'out' must be tuple of Tensors, not {type_name(out)}"
        )
    for i, each in enumerate(out):
        if not isinstance(each, TensorBase):
            raise TypeError(
                f"expected Tensor as element {i} in argument {place}, but got "
                f"{type_name(each)}"
            )
    if len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")


def refuse_tracked(rec: Any, name: str, given: Sequence[Any]) -> None:
    """Raises where autograd would have to follow a call with `out=`."""
    if rec.grad and any(each._tmeta.requires_grad for each in _tensors(given)):
        raise RuntimeError(_TRACKED.format(name))


def refuse_leaf(rec: Any, name: str, out: TensorBase) -> None:
    """Raises for a leaf that takes a result which autograd does not follow."""
    if rec.grad and out._tmeta.requires_grad and out.is_leaf:  # type: ignore[attr-defined]
        raise RuntimeError(_TRACKED.format(f"aten::{name}"))


def refuse_dual(rec: Any, name: str, given: Sequence[Any]) -> None:
    """Raises where forward mode would have to follow a call with `out=`."""
    if (
        rec.forward
        and name not in _COPIED
        and any(level.kind in FORWARD for level in rec.levels)
    ):
        for each in _tensors(given):
            if rec.recording.duals.get(rec.slot_of(each)):
                raise NotImplementedError(_without_out(name))


def refuse_followed(rec: Any, name: str, given: Sequence[Any]) -> None:
    """Raises where either of the two would have to."""
    refuse_tracked(rec, name, given)
    refuse_dual(rec, name, given)


def _tensors(given: Sequence[Any]) -> Iterator[TensorBase]:
    for each in given:
        if isinstance(each, (tuple, list)):
            yield from _tensors(each)
        elif isinstance(each, TensorBase):
            yield each


def _without_out(name: str) -> str:
    """What PyTorch says of a function with `out=` in forward mode."""
    if name.startswith("aten::"):
        return f"Trying to use forward AD with {name} that does not support it."
    return (
        f"Trying to use forward AD with {_OUT_OF.get(name, name)}_out that does not "
        "support it because it is an out= function"
    )
