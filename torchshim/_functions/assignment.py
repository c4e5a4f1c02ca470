"""`x[index] = value`.

A basic index is one in-place event, whose starts may become runtime scalars. A boolean
mask alone is written through without reading it: the number of values is checked when
the program runs.

https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.index_put_.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.promotion import real_number
from torchshim._core.record import local
from torchshim._core.storage import TensorBase, check_piece, placement
from torchshim._core.write import WRITTEN_VIEW
from torchshim._derived import fns
from torchshim._errors import warn
from torchshim._function_modes import modes
from torchshim._functions._values import fitting
from torchshim._functions.indexing import (
    BASIC_INDEX,
    BYTE_MASK,
    SKIP,
    ZERO_DIM,
    basic,
    beside,
    check_known,
    check_mask,
    is_mask,
    out_of_bounds,
    plan_of,
    resolve,
    slice_of,
    without_masks,
)
from torchshim._ops.view_geometry import KEEP, NEW, PICK, indexed
from torchshim._overrides import ORDINARY, dispatch, overriding
from torchshim._tensor import Tensor, host_value, on_cpu

_size = tuple.__getitem__
_PICK = (PICK,)


def setitem(self: Tensor, index: Any, value: Any) -> None:
    """Writes a value, broadcast, where an index points."""
    kind = index.__class__
    meta = self._tmeta
    found = None
    if modes or value.__class__ not in ORDINARY or kind not in ORDINARY:
        asked = overriding((index, value))
        if asked is not None:
            return dispatch(setitem, asked, (self, index, value), None)
    if kind is int:
        shape = meta.shape
        if not shape:
            raise IndexError(ZERO_DIM)
        n = _size(shape, 0)
        if not -n <= index < n:
            raise out_of_bounds(index, 0, n)
        found = (index + n if index < 0 else index,), _PICK
    elif kind is tuple:
        found = plan_of(meta.shape, index)
    elif kind is slice:
        if not meta.shape:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        start, entry = slice_of(index, _size(meta.shape, 0))
        whole = entry == (_size(meta.shape, 0), 1)
        found = ((), ()) if whole else ((start,), (entry,))
    elif index is Ellipsis:
        found = (), ()
    elif index is None:
        found = (), (NEW,)
    elif index is True:
        found = (), (NEW,)
    if found is None:
        write_any(self, index, value)
    else:
        write_basic(self, *found, value)


def write_basic(
    self: Tensor, starts: tuple[int, ...], plan: tuple[Any, ...], value: Any
) -> None:
    """`copy_` to the view of a basic index, as one event."""
    kind = value.__class__
    if kind is not float and kind is not Tensor and kind is not int:
        value = check_value(self, value)
    meta = self._tmeta
    if kind is not Tensor:
        check_number(value, meta.dtype)
    piece = any(entry != KEEP for entry in plan)
    if piece:
        if self._unaware and local.rec.grad:
            self._unaware = False  # PyTorch takes the piece, which asks for its node
        noted = self._view_note is not None
        if noted or (0 in meta.strides and expanded(meta)):
            view = basic(self, starts, plan)
            write_basic(view, (), (), value)
            return
        if meta.requires_grad and meta.leaf and local.rec.grad:
            if isinstance(value, TensorBase):  # that it fits is asked first
                broadcast_value(value, target_shape(meta.shape, plan))
            raise RuntimeError(WRITTEN_VIEW)
    if isinstance(value, TensorBase):
        its = value._tmeta
        if its.device is not meta.device and its.shape:
            value = value.to(meta.device)  # type: ignore[attr-defined]
        if its.dtype is not meta.dtype and its.dtype.is_complex:
            value = value.to(meta.dtype)  # type: ignore[attr-defined]
        shape = target_shape(meta.shape, plan)
        if value._tmeta.shape and value._tmeta.shape != shape:
            value = broadcast_value(value, shape)
        # (A number of no dimensions fills the piece, in PyTorch too.)
        memory = self._storage if its.shape and shape else None
        if memory is not None and value._storage is memory:
            check_piece(indexed(*placement(self), starts, plan), value)
    if self._path:
        found = through_rows(self, starts, plan, value)
        if found is not None:
            base, starts, plan = found
            fns.put_piece_(base, value, starts, plan)
            return
    fns.put_piece_(self, value, starts, plan)
    if piece and meta.leaf and not self._tmeta.leaf and self._view_of is not None:
        self._unaware = True  # it is the piece that PyTorch writes to


def through_rows(
    self: Tensor, starts: tuple[int, ...], plan: tuple[Any, ...], value: Any
) -> tuple[Any, tuple[int, ...], tuple[Any, ...]] | None:
    """A row of rows of a tensor (`x[i][j]`), as that tensor and an index in it.

    So `x[i][j][k] = 1` is one event, not one for each level. None where the row is
    another view, or where it matters to autograd which tensor was written to.
    """
    rec, base, storage = local.rec, self._view_of, self._storage
    if base is None or storage is None or base._path or base._storage is not storage:
        return None
    if storage.shared is not None or rec.levels or rec.mode is None:
        return None
    if self._tmeta.requires_grad or base._tmeta.requires_grad:
        return None
    if isinstance(value, TensorBase) and value._tmeta.requires_grad:
        return None
    if self._own_version is not None or base._own_version is not None:
        return None
    rows: list[int] = []
    for op, args, _ in self._path:
        if op is not BASIC_INDEX or any(entry != PICK for entry in args[1]):
            return None
        rows += args[0]
    return base, (*rows, *starts), (*_PICK * len(rows), *plan)


def expanded(meta: Any) -> bool:
    pairs = zip(meta.shape, meta.strides, strict=True)
    return any(n > 1 and s == 0 for n, s in pairs)


def target_shape(shape: tuple[int, ...], plan: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of what a plan reads."""
    sizes: list[int] = []
    dim = 0
    for entry in plan:
        if entry is None:
            sizes.append(1)
            continue
        if entry == KEEP:
            sizes.append(_size(shape, dim))
        elif entry != PICK:
            sizes.append(entry[0])
        dim += 1
    return (*sizes, *tuple(shape)[dim:])


def stripped(value: Any) -> Tensor:
    """A value without the dimensions of size 1 that it begins with."""
    shape = tuple(value._tmeta.shape)
    lead = 0
    while lead < len(shape) and shape[lead] == 1:
        lead += 1
    return fns.view(value, shape[lead:]) if lead else value


def broadcast_value(value: Any, shape: tuple[int, ...]) -> Tensor:
    """A value that broadcasts to the shape; PyTorch's error where it does not."""
    value = stripped(value)
    return value if value._tmeta.shape == shape else fns.expand(value, shape)


def check_value(self: Tensor, value: Any) -> Any:
    """A value that can be assigned: a tensor or a Python number."""
    if isinstance(value, (TensorBase, bool, int, float, complex, np.integer)):
        if isinstance(value, np.generic):
            return value.item()
        return value
    name = self._tmeta.dtype.tensor_name
    raise TypeError(f"can't assign a {dtypes.type_name(type(value))} to a {name}")


def check_number(value: Any, dtype: dtypes.dtype) -> None:
    """Raises where a number cannot be an element."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    usual = value.__class__ is float or value.__class__ is int
    if usual and dtype.is_floating_point and -1e30 < value < 1e30:
        return
    if not isinstance(value, TensorBase):
        fitting(value, dtype, wide=True)


def write_any(self: Tensor, index: Any, value: Any) -> None:
    """Assignment through an index with tensors, masks, lists or bools."""
    value = check_value(self, value)
    if index is False:
        return
    view, indices, _changed = resolve(self, index)
    if indices is None:
        write_basic(view, (), (), value)
        return
    if not isinstance(value, TensorBase):
        check_number(value, self._tmeta.dtype)
        value = number_tensor(view, value)
    else:
        value = stripped(value)
    put_with(view, indices, value, False, "_")


def number_tensor(like: Tensor, value: Any) -> Tensor:
    """A number as a 0-dim tensor; it is an input, so its value is in no key."""
    kind = like._tmeta.dtype.np
    with np.errstate(over="ignore"):  # what is too large for half types is infinite
        array = np.asarray(real_number(value, kind)).astype(kind)
    return on_cpu(array)


def put_with(
    view: Tensor, indices: Sequence[Any], value: Tensor, accumulate: bool, form: str
) -> Tensor:
    """`index_put` in place (form "_") or not (form "")."""
    if form:
        # PyTorch looks at the history before it looks at indices and values.
        local.rec.check_history(view, (value,))
    indices = [beside(view, item) for item in indices]
    same = value._tmeta.dtype is view._tmeta.dtype
    masks = [d for d, i in enumerate(indices) if is_mask(i)]
    plain = any(i is not None and i is not SKIP and not is_mask(i) for i in indices)
    put = fns.put_tensors_ if form else fns.put_tensors
    if masks and not plain and not any(indices[d]._tmeta.shape for d in masks):
        # Masks without dimensions choose everything or nothing.
        if all(host_value(indices[d]) for d in masks):
            return put(view, (), value, accumulate)
        fns.put_tensors(view, (), value)  # for what it refuses
        return view if form else view.clone()
    if len(masks) == 1 and not plain:
        at = masks[0]
        mask = indices[at]
        check_mask(mask, view._tmeta.shape, at)
        one = value._tmeta.shape.numel() == 1 and not accumulate
        if mask._tmeta.dtype is dtypes.uint8:
            if one:
                raise RuntimeError(
                    "masked_fill_ only supports boolean masks, but got mask with dtype "
                    "unsigned char"
                )
            warn(BYTE_MASK)
            mask = fns.ne(mask, 0)
        # Of a wrong dtype PyTorch tells after a wrong number of values.
        if same or one:
            masked = fns.put_mask_ if form else fns.put_mask
            return masked(view, mask, value, at, accumulate)
    places = without_masks(view, indices)
    if same:
        check_known(view, places)
    return put(view, places, value, accumulate)


def delitem(self: Tensor, index: Any) -> None:
    """Refused: tensors keep their elements."""
    raise TypeError("Tensor does not support deleting items")


Tensor.__setitem__ = setitem
Tensor.__delitem__ = delitem
