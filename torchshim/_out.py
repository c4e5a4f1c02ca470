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
# What PyTorch calls the form with `out=`, where it is not just `out`.
_FORMS = {
    "_linalg_svd": "U",
    "all": "all_out",
    "any": "all_out",
    "kthvalue": "values",
    "linalg_svd": "U",
    "max": "dim_max",
    "mean": "dtype_out",
    "median": "dim_values",
    "min": "dim_min",
    "mode": "values",
    "nanmedian": "dim_values",
    "prod": "int_out",
    "sort": "values",
    "sum": "IntList_out",
    "topk": "values",
    "where": "self_out",
}
_COMPARING = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})
# Operators of lists, and random ones.
_OF_LISTS = frozenset("cat dstack hstack stack vstack".split())
_RANDOM = frozenset("bernoulli multinomial normal rand randint randn randperm".split())
# What PyTorch calls for some functions, whose `out=` that is then.
_CALLED = {
    **dict.fromkeys("column_stack dstack hstack vstack".split(), "cat"),
    **dict.fromkeys("kron outer".split(), "mul"),
    **dict.fromkeys("scatter_set scatter_value".split(), "scatter"),
    **dict.fromkeys("scatter_combine scatter_combine_value".split(), "aten::scatter"),
    "diff": "sub",
    "index_reduce_values": "index_reduce",
    "linalg_cholesky": "linalg_cholesky_ex",
    "linalg_det": "_linalg_det",
    "linalg_eigh": "_linalg_eigh",
    "linalg_eigvalsh": "_linalg_eigh",
    "linalg_inv": "linalg_inv_ex",
    "linalg_lu_factor": "linalg_lu_factor_ex",
    "linalg_slogdet": "_linalg_slogdet",
    "linalg_solve": "_linalg_solve_ex",
    "linalg_svd": "_linalg_svd",
    "linalg_svdvals": "_linalg_svd",
    "linalg_vecdot": "sum",
    "logsigmoid": "log_sigmoid_forward",
    "matrix_power": "matmul",
    "msort": "sort",
    "nanmean": "nansum",
    "norm": "linalg_vector_norm",
    "square": "pow",
}
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
        raise RuntimeError(_TRACKED.format(_CALLED.get(name, name)))


def refuse_leaf(rec: Any, name: str, out: Any) -> None:
    """Raises for a leaf, or a view of one, that takes what autograd does not follow."""
    if rec.grad and out._tmeta.requires_grad:
        base = out._base
        if (out if base is None else base).is_leaf:
            raise RuntimeError(_TRACKED.format(f"aten::{name}"))


def refuse_dual(rec: Any, name: str, given: Sequence[Any]) -> None:
    """Raises where forward mode would have to follow a call with `out=`."""
    if name not in _COPIED and _any_dual(rec, given):
        raise NotImplementedError(_without_out(name))


def _any_dual(rec: Any, given: Sequence[Any]) -> bool:
    """Whether forward mode follows what is made of these."""
    if not rec.forward or not any(level.kind in FORWARD for level in rec.levels):
        return False
    duals = rec.recording.duals
    return any(duals.get(rec.slot_of(each)) for each in _tensors(given))


def followed(rec: Any, given: Sequence[Any]) -> bool:
    """Whether autograd or forward mode follows what is made of these."""
    if rec.grad and any(each._tmeta.requires_grad for each in given):
        return True
    return _any_dual(rec, given)


def refuse_mapped(rec: Any, name: str, given: Sequence[Any]) -> None:
    """Raises where `vmap` would have to map a call; `given` ends with `out=`."""
    if not rec.levels or not any(each._tmeta.batch for each in _tensors(given)):
        return
    name = name.removeprefix("aten::")
    if name in _RANDOM:
        raise RuntimeError(
            "vmap: We do not support calling out variants of random operations inside "
            "of vmap. Please use non-out variants as a workaround"
        )
    why = "; the fallback path doesn't work on out= or view ops."
    if name in _OF_LISTS:
        why = ". We could not generate a fallback."
    form = _form(name, given)
    raise RuntimeError(f"Batching rule not implemented for aten::{name}.{form}{why}")


def _form(name: str, given: Sequence[Any]) -> str:
    """The form with `out=` that the arguments mean."""
    args = given[0] if isinstance(given[0], (tuple, list)) else given[:-1]
    whole = [isinstance(each, TensorBase) for each in args[:2]]
    if name in _COMPARING:
        return "Tensor_out" if all(whole) else "Scalar_out"
    if name == "pow":
        kinds = ["Tensor" if each else "Scalar" for each in whole]
        return "Scalar_out" if not whole[0] else "_".join([*kinds, "out"])
    if name == "div" and len(args) > 2 and args[2] is not None:
        return "out_mode"
    along = len(args) > 1 and isinstance(args[1], (int, tuple)) and args[1] != ()
    if name in ("mean", "all", "any") and along:
        return "out"
    if name in ("max", "min") and not along:
        return "out" if all(whole) else "unary_out"
    return _FORMS.get(name, "out")


def refuse_followed(rec: Any, name: str, given: Sequence[Any]) -> None:
    """Raises where either of the two would have to."""
    refuse_mapped(rec, name, given)
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
