"""Sparse tensors: an index tensor and a values tensor that act as one tensor.

What is done with one is recorded as operators on its values (`_ops/sparse.py`), so that
autograd, programs and devices need to know nothing of it. Which elements a result has
is found on the host, once for each index tensor, and kept on it (`planned`).
Functions and methods come to `HANDLERS`; what is not there is refused.
https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.record import local, untracked
from torchshim._derived import fns
from torchshim._function_modes import SUBCLASSES_DISABLED, disabled
from torchshim._functions.composed import (
    FACTS,
    Composed,
    knows_facts,
    meta_with,
    planned,
    set_meta,
)
from torchshim._functions.creation import placed
from torchshim._printing import format_values, join_suffixes
from torchshim._tensor import Tensor, host_value

HANDLERS: dict[str, Callable[..., Any]] = {}
COO = LAYOUTS["sparse_coo"]


def refuse(name: str, tensor: Any = None) -> NoReturn:
    """Raises for what sparse tensors do not support."""
    layout = "" if tensor is None else f" (layout {tensor.layout})"
    raise NotImplementedError(
        f"{name}() is not supported for sparse tensors{layout}: use to_dense()"
    )


class SparseTensor(Composed):
    """A tensor that is a pattern of indices and the values there."""

    __slots__ = ()
    __module__ = "torch"

    # `_v` are the values that are not said to be zero.
    layout: Any = COO
    _coalesced = False
    is_sparse = True
    is_sparse_csr = False

    def __init_subclass__(cls) -> None:
        cls.__name__ = cls.__qualname__ = "Tensor"

    def _refused(self) -> NoReturn:
        refuse("this operation", self)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if isinstance(getattr(func, "__self__", None), property):
            return func(*args)
        space = getattr(func, "__overrides__", "torch")
        if space == "torch.sparse":
            name = f"sparse.{name}"
        handler = HANDLERS.get(name)
        if handler is None and name in FACTS:
            with disabled(SUBCLASSES_DISABLED):
                return getattr(SparseTensor, name)(*args, **(kwargs or {}))
        if handler is None and name.startswith("_foreach_"):
            handler = func.__wrapped__  # a loop over functions of single tensors
        if handler is None or space not in _SPACES:
            refuse(name)
        return handler(*args, **_not_defaults(func, kwargs or {}))

    def _values_of(self, gradient: Any) -> Any:
        return values_at(self, gradient)

    def _parts(self) -> Sequence[tuple[str, Any]]:
        """The names and tensors of all parts, as they are printed."""
        raise NotImplementedError

    def _places(self) -> Any:
        """The coordinates of the elements that have values."""
        raise NotImplementedError

    def _shaped(self, elements: Any) -> Any:
        """Values of those elements, arranged as this tensor's values are."""
        return elements

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return _text(self, tensor_contents)


def _not_defaults(func: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments without those that functions in Python hand on as defaults."""
    if not kwargs or getattr(func, "__overrides__", None) != "torch.nn.functional":
        return kwargs
    known = inspect.signature(func).parameters
    return {k: v for k, v in kwargs.items() if v is not known[k].default}


_SPACES = (
    *("torch", "torch.Tensor", "torch.nn.functional", "torch.ops.aten"),
    "torch.sparse",
)


class _Late:
    """A part of a sum of terms: made when it is first asked for."""

    def __init__(self, at: int) -> None:
        self._at = at

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        return self if tensor is None else _settled(tensor)[self._at]


class Coo(SparseTensor):
    """Coordinates: the indices of each value, as columns of a matrix.

    A sum has its terms, until somebody asks which values it has (`_settled`).
    """

    __slots__ = ()
    __module__ = "torch"

    def _places(self) -> Any:
        """The coordinates of the values."""
        return self._i

    # What this is the sum of, and how PyTorch adds it up.
    _terms: Sequence[Term]
    _form: Form
    _i: Any = _Late(0)
    _v: Any = _Late(1)
    _coalesced: Any = _Late(2)

    def _like(self, values: Any, **changes: Any) -> Any:
        size = changes.get("size", self._tmeta.shape)
        return coo(changes.get("indices", self._i), values, size, self._coalesced)

    def _gradient(self, values: Any) -> Any:
        if self._coalesced:
            return self._like(values)
        # One gradient for each element, however many values there are for it.
        plan = coalescing(self)
        first = fns.index_select(values, 0, plan["first"])
        return coo(plan["indices"], first, self._tmeta.shape, True)

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        return coo(move(self._i), move(self._v), self._tmeta.shape, self._coalesced)

    def _parts(self) -> Sequence[tuple[str, Any]]:
        return (("indices", self._i), ("values", self._v))

    def _taken_apart(self) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
        """The tensors that it is made of, and what makes it of such ones."""
        terms, form = terms_of(self)
        wholes, size = [whole for _, _, whole in terms], tuple(self._tmeta.shape)

        def made(parts: Sequence[Any]) -> Any:
            again = zip(parts[::2], parts[1::2], wholes, strict=True)
            return sum_of_terms([*again], form, size)

        return [part for term in terms for part in term[:2]], made

    def _twin(self) -> Any:
        """The same tensor, of which nobody else has the parts."""
        parts, made = self._taken_apart()
        return made([local.rec.without_history(part) for part in parts])

    def _joined(self, gradient: Any) -> Any:
        """This gradient and one that came later, added in PyTorch's order."""
        return summed(gradient, self) if is_sparse(gradient) else gradient + self


def countable(size: Sequence[int]) -> tuple[int, ...]:
    """The size; RuntimeError if a length is negative."""
    if any(n < 0 for n in size) or math.prod(size) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    return tuple(size)


def coo(indices: Any, values: Any, size: Sequence[int], coalesced: bool) -> Any:
    """A tensor of coordinates, unchecked."""
    made = object.__new__(Coo)
    made._i = indices
    made._coalesced = coalesced
    return set_meta(made, tuple(size), values)


#: Indices, values, and whether these are coalesced.
Term = tuple[Any, Any, bool]
#: What is made of terms: one of them, by its number; what is left of it without the
#: indices that are beyond the size; the sum of two.
Form = int | tuple[int] | tuple[Any, Any]
_TERMS = 64


def sum_of_terms(terms: Sequence[Term], form: Form, size: Sequence[int]) -> Any:
    """A tensor that is made of terms once somebody asks for its values."""
    if form == 0:
        indices, values, whole = terms[0]
        return coo(indices, values, size, whole)
    made = object.__new__(Coo)
    made._terms, made._form = terms, form
    made._tmeta = meta_with(size, terms[0][1])
    if len(terms) > _TERMS or any(v._tmeta.requires_grad for _, v, _ in terms):
        indices, values, whole = _settled(made)
        return coo(indices, values, size, whole)
    return made


def terms_of(tensor: Any) -> tuple[Sequence[Term], Form]:
    """What a tensor is the sum of; indices beyond its size count for nothing."""
    known = vars(tensor)
    if "_v" in known:
        return [(tensor._i, tensor._v, tensor._coalesced)], 0
    return tensor._terms, tensor._form


def summed(a: Any, b: Any) -> Any:
    """The sum of two tensors, to be made when its values are asked for."""
    check_alike(a, b, "add")
    terms, form = terms_of(a)
    others, other = terms_of(b)
    both = form, _shifted(other, len(terms))
    return sum_of_terms([*terms, *others], both, a._tmeta.shape)


def flat(tensor: Any) -> tuple[Any, Any]:
    """Indices and values that add up to a tensor; those beyond its size do not count.

    Which values there are is not found out for that.
    """
    terms, _ = terms_of(tensor)
    if len(terms) == 1:
        return terms[0][:2]
    return fns.cat([t[0] for t in terms], 1), fns.cat([t[1] for t in terms])


def check_alike(a: Any, b: Any, name: str) -> None:
    """Raises where the indices of two tensors are of different dimensions."""
    mine, its = (terms_of(t)[0][0][0].shape[0] for t in (a, b))
    if mine != its:
        raise RuntimeError(
            f"{name}: expected 'self' and 'other' to have same density, but 'self' has "
            f"{mine} sparse dimensions while 'other' has {its} sparse dimensions"
        )


def _shifted(form: Any, by: int) -> Any:
    if isinstance(form, int):
        return form + by
    return tuple(_shifted(each, by) for each in form)


def _settled(tensor: Any) -> Term:
    """The indices and values of a sum of terms, and whether they are coalesced."""
    size = tuple(tensor._tmeta.shape)
    with untracked() if not tensor._tmeta.requires_grad else nullcontext():
        found = _made(tensor._terms, tensor._form, size)
    tensor._i, tensor._v, tensor._coalesced = found
    return found


def _made(terms: Sequence[Term], form: Any, size: tuple[int, ...]) -> Term:
    if isinstance(form, int):
        return terms[form]
    if len(form) == 1:
        return _within(terms[form[0]], size)
    return merged(_made(terms, form[0], size), _made(terms, form[1], size), size)


def _within(term: Term, size: tuple[int, ...]) -> Term:
    """What is left of a term without the indices that are beyond the size."""
    indices, values, _ = term
    device = indices.device
    limits = np.array(size[: indices.shape[0]])[:, None]

    def make(host: np.ndarray) -> Any:
        kept = np.nonzero((host < limits).all(0))[0]
        return placed(host[:, kept], device), placed(kept, device)

    indices, kept = planned(("within", size), make, indices)
    return indices, fns.index_select(values, 0, kept), kept.shape[0] < 2


def merged(a: Term, b: Term, size: tuple[int, ...]) -> Term:
    """The sum of two terms as PyTorch's CPU makes it, as if both were in order."""
    (left, mine, whole), (right, theirs, other) = a, b
    device = left.device

    def make(first: np.ndarray, second: np.ndarray) -> Any:
        both = np.concatenate([first, second], 1)
        limits = np.maximum(size[: len(both)], both.max(1, initial=-1) + 1)
        keys = keys_of(both, limits.tolist())
        at = _places(keys[: first.shape[1]], keys[first.shape[1] :])
        indices = np.empty((len(both), int(at.max(initial=-1)) + 1), both.dtype)
        indices[:, at] = both
        return placed(indices, device), placed(at, device)

    indices, at = planned(("sum", size), make, left, right)
    values = fns.sparse_merged_values(mine, theirs, at, indices.shape[1])
    return indices, values, whole and other


def _places(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where the elements of two sequences are once they are merged.

    The lesser of the two next ones comes first; equal ones share a place.
    """
    found = np.empty(len(left) + len(right), np.int64)
    mine, theirs = left.tolist(), right.tolist()
    i = j = at = 0
    while i < len(mine) and j < len(theirs):
        a, b = mine[i], theirs[j]
        if a <= b:
            found[i] = at
            i += 1
        if b <= a:
            found[len(mine) + j] = at
            j += 1
        at += 1
    rest = len(mine) - i + len(theirs) - j
    start = i if i < len(mine) else len(mine) + j
    found[start : start + rest] = np.arange(at, at + rest)
    return found


def named(values: Any, node: str) -> Any:
    """The values as the result of a node of autograd with PyTorch's name."""
    if values._tmeta.requires_grad and local.rec.grad:
        return getattr(fns, f"sparse_node_{node}")(values)
    return values


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse tensor of any layout."""
    return isinstance(value, SparseTensor)


def handles(*names: str) -> Callable[[Any], Any]:
    """Makes a function the one that these functions and methods come to."""

    def register(function: Any) -> Any:
        for name in names:
            HANDLERS[name] = function
            if hasattr(Tensor, name):
                setattr(SparseTensor, name, function)
        return function

    return register


knows_facts(SparseTensor)


# Plans --------------------------------------------------------------------------------


def keys_of(indices: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """One number for the place of each value, in the order of the elements."""
    keys = np.zeros(indices.shape[1], np.int64)
    for row, length in zip(indices, size, strict=True):
        keys = keys * length + row
    return keys


def coalescing(tensor: Any) -> dict[str, Any]:
    """How the values of a tensor are to be added up, and which elements it has then."""
    indices, device = tensor._i, tensor.device
    size = tuple(tensor.shape[: indices.shape[0]])

    def make(host: np.ndarray) -> dict[str, Any]:
        limits = [
            max(n, int(row.max(initial=-1)) + 1)
            for n, row in zip(size, host, strict=True)
        ]
        found, first, groups = np.unique(
            keys_of(host, limits), return_index=True, return_inverse=True
        )
        plan: dict[str, Any] = {
            "count": len(found),
            "first": placed(first, device),
            "indices": placed(host[:, first], device),
            "groups": placed(groups.reshape(-1), device),
            "sorted": bool((first == np.arange(host.shape[1])).all())
            if len(first) == host.shape[1]
            else False,
        }
        return plan

    return planned(("coalesce", size), make, indices)


def coalesced(tensor: Any) -> Any:
    """The tensor with one value for each element, in the order of the elements."""
    if tensor._coalesced:
        return tensor
    plan, values = coalescing(tensor), tensor._v
    if plan["count"] == values.shape[0]:
        values = fns.sparse_take_values(values, plan["first"])
    else:
        values = fns.sparse_sum_values(values, plan["groups"], plan["count"])
    return coo(plan["indices"], values, tensor.shape, True)


def values_at(tensor: Any, gradient: Any) -> Any:
    """The elements of a gradient at the places of a tensor's values."""
    places = tensor._places()
    if not is_sparse(gradient):
        return tensor._shaped(fns.sparse_mask_values(gradient, places))
    gradient = coalesced(gradient.to_sparse_coo())
    count = places.shape[0]
    if gradient._i.shape[0] != count:
        return values_at(tensor, gradient.to_dense())
    size, device = tuple(tensor.shape[:count]), tensor.device

    def make(mine: np.ndarray, its: np.ndarray) -> Any:
        """Where the gradient has them, zeros being behind its values."""
        if np.array_equal(mine, its):
            return None
        wanted, keys = keys_of(mine, size), keys_of(its, size)
        at = np.searchsorted(keys, wanted)
        found = np.append(keys, -1)[at] == wanted
        return placed(np.where(found, at, len(keys)), device)

    at = planned(("places", size), make, places, gradient._i)
    if at is None:
        return tensor._shaped(gradient._v)
    values = gradient._v
    one = 1, *values.shape[1:]
    nothing = fns.full(one, 0, values.dtype, values.device)
    return tensor._shaped(fns.cat([values, nothing]).index_select(0, at))


# Text ---------------------------------------------------------------------------------


def _text(tensor: Any, contents: str | None) -> str:
    indent, meta = len("tensor("), tensor._tmeta
    suffixes = [f"size={tuple(meta.shape)}", f"nnz={tensor._nnz()}"]
    if meta.device.type != "cpu":
        suffixes.insert(0, f"device='{meta.device}'")
    default = dtypes.get_default_dtype()
    complex_default = "complex128" if default.name == "float64" else "complex64"
    if meta.dtype.name not in (default.name, complex_default, "int64", "bool"):
        suffixes.append(f"dtype={meta.dtype}")
    suffixes.append(f"layout={tensor.layout}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
    elif meta.requires_grad:
        suffixes.append("requires_grad=True")
    if contents is None:
        lines = []
        for name, part in tensor._parts():
            begin = f"{name}=tensor("
            text = format_values(host_value(part), indent + len(begin))
            if not part.numel():
                text += f", size={tuple(part.shape)}"
            lines.append(f"{begin}{text})")
        contents = (",\n" + " " * indent).join(lines)
    return join_suffixes(
        f"tensor({contents}", suffixes, indent, new_line=tensor.is_sparse
    )
