"""`x[index]`, and what an index means.

Integers, slices, None and Ellipsis make one view event; their starts may become runtime
scalars, so an index that changes from step to step compiles nothing. Integer tensors
make one gather; a boolean mask is read on the host.

https://docs.pytorch.org/docs/2.13/tensor_view.html and
https://numpy.org/doc/stable/user/basics.indexing.html, with PyTorch's deviations.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._core.state import INPUT
from torchshim._core.storage import TensorBase
from torchshim._core.template import INT_HOLE
from torchshim._derived import fns
from torchshim._errors import triggered, warn
from torchshim._function_modes import mode_enabled, modes, skips
from torchshim._functions._values import inferred, values_of
from torchshim._ops.view_geometry import KEEP, NEW, PICK, size_at
from torchshim._overrides import dispatch, overriding
from torchshim._tensor import Tensor, host_value, on_cpu

BASIC_INDEX = REGISTRY["basic_index"]
_new = object.__new__
_ref = weakref.ref
_size = tuple.__getitem__
_PICK = (PICK,)
_HOLES = tuple((INT_HOLE,) * n for n in range(64))

_SEQUENCE = triggered(
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will "
    "be changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 "
    "this will be interpreted as tensor index, x[torch.tensor(seq)], which will result "
    "either in an error or a different result",
    "torch/csrc/autograd/python_variable_indexing.cpp:349",
)
BYTE_MASK = triggered(
    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
    "instead.",
    "aten/src/ATen/native/IndexingUtils.h:37",
)
_BATCHED_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. "
    "Attempting to batch over indexing with a boolean mask."
)
ZERO_DIM = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
)


# -- reading -----------------------------------------------------------------------


def basic(self: Tensor, starts: tuple[int, ...], plan: tuple[Any, ...]) -> Tensor:
    """The view of basic indexing. Starts lie within the tensor: nothing checks them."""
    rec = local.rec
    state = rec.state
    slot, storage = self._slot, self._storage
    if storage is not None and storage.shared is not None and rec.mode is not None:
        made = rec.shared_views(BASIC_INDEX, (self, starts, plan))
        if made is not None:
            return made[0]
    if (
        slot < 0
        and (INPUT, self._tmeta) in state.next
        and not self._tmeta.requires_grad
    ):
        if storage is None or not (storage.slot >= 0 or storage.shared or self._path):
            slot = rec.slot_of(self)  # as it entered before
            state = rec.state
    if state.call is not None and state.call.op is BASIC_INDEX:
        if _goes_on(state, slot, plan) and rec.may_be_unrecorded(self):
            made = rec.unrecorded(BASIC_INDEX, (self, starts, plan))
            if made is not None:
                return made[0]
    try:
        if state.learnt is None:
            found = state.next[BASIC_INDEX, rec.mode, slot, starts, plan]
        else:
            place = (BASIC_INDEX, rec.mode, slot, _HOLES[len(starts)], plan)
            mask = state.learnt.get(place)
            if mask is None:
                found = state.next[BASIC_INDEX, rec.mode, slot, starts, plan]
            else:
                key = [INT_HOLE if m else s for m, s in zip(mask, starts, strict=True)]
                found = state.next[BASIC_INDEX, rec.mode, slot, tuple(key), plan]
                at = found.scalar
                for learnt, start in zip(mask, starts, strict=True):
                    if learnt:
                        rec.scalars[at] = start
                        at += 1
    except (KeyError, TypeError):
        return fns.basic_index(self, starts, plan)
    rec.state = found
    tensor = _new(Tensor)
    tensor._slot = found.slot
    tensor._tmeta = found.meta
    tensor._array = None
    rec.live.append(_ref(tensor))
    rec.link(tensor, self, BASIC_INDEX, (starts, plan))
    return tensor


# Pieces of one tensor that a recording may begin with, or have in a row.
_IN_A_ROW = 8


def _goes_on(state: Any, slot: int, plan: Any) -> bool:
    """Whether the last events are all such pieces of a tensor.

    As in a loop that reads one after the other: to record each takes 15 times as long.
    What uses pieces later takes them in the order in which they were made.
    """
    for _ in range(_IN_A_ROW):
        key = state.key
        if not key or key[0] is not BASIC_INDEX or key[2] != slot or key[4] != plan:
            return False
        state = state.parent
    return True


def getitem(self: Tensor, index: Any) -> Tensor:
    """The elements that an index chooses: a view of basic indices, else a copy."""
    if modes and mode_enabled() and not skips():
        return dispatch(getitem, [], (self, index), None)
    kind = index.__class__
    shape = self._tmeta.shape
    if kind is int:
        if not shape:
            raise IndexError(ZERO_DIM)
        n = _size(shape, 0)
        if not -n <= index < n:
            raise out_of_bounds(index, 0, n)
        return basic(self, (index + n if index < 0 else index,), _PICK)
    if kind is tuple:
        found = plan_of(shape, index)
        if found is not None:
            return basic(self, *found)
    elif kind is slice:
        if not shape:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        start, entry = slice_of(index, _size(shape, 0))
        return basic(self, (start,), (entry,))
    found = overriding((index,))
    if found is not None:
        return dispatch(getitem, found, (self, index), None)
    view, indices, _ = resolve(self, index)
    if indices is None:
        return view
    return take_tensors(view, indices)


def out_of_bounds(index: int, place: int, n: int) -> Exception:
    """The error about an integer that a dimension of size `n` lacks.

    The dimension it tells is the integer's place in the index as it was written, with
    what takes no dimension (None) and what takes several (Ellipsis) counted as one.
    """
    if not -(2**63) <= index < 2**63:
        return ValueError("Overflow when unpacking long long")
    return IndexError(
        f"index {index} is out of bounds for dimension {place} with size {n}"
    )


def _place(index: tuple[Any, ...], before: int) -> int:
    """Where the integer stands that comes after so many others."""
    return [i for i, item in enumerate(index) if item.__class__ is int][before]


def slice_of(index: slice, n: int) -> tuple[int, tuple[int, int]]:
    """A slice of a dimension as (start, (length, step))."""
    start, stop, step = index.indices(n)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    length = stop - start
    if step != 1:
        length = -(-length // step)
    return start, (length if length > 0 else 0, step)


def is_whole(item: slice, n: int) -> bool:
    """Whether a slice that keeps all of a dimension is none to PyTorch.

    It asks for the numbers as they were given: `x[:, -n:]` is one.
    """
    return (item.start is None or item.start == 0) and (
        item.stop is None or item.stop >= n
    )


def plan_of(
    shape: tuple[int, ...], index: tuple[Any, ...]
) -> tuple[tuple[int, ...], tuple[Any, ...]] | None:
    """Starts and plan of an index that is all basic; None if it is not."""
    starts: list[int] = []
    plan: list[Any] = []
    dim = 0
    for item in index:
        kind = item.__class__
        if kind is int:
            try:
                n = _size(shape, dim)
            except IndexError:
                raise too_many(shape) from None
            if not -n <= item < n:
                if len(index) > len(shape):
                    return None
                raise out_of_bounds(item, _place(index, plan.count(PICK)), n)
            starts.append(item + n if item < 0 else item)
            plan.append(PICK)
            dim += 1
        elif kind is slice:
            if item.start is item.stop is item.step is None and dim < len(shape):
                plan.append(KEEP)
                dim += 1
                continue
            try:
                n = _size(shape, dim)
            except IndexError:
                raise too_many(shape) from None
            start, entry = slice_of(item, n)
            if entry == (n, 1) and is_whole(item, n):
                plan.append(KEEP)
            else:
                starts.append(start)
                plan.append(entry)
            dim += 1
        elif item is None:
            plan.append(NEW)
        elif item is Ellipsis:
            named = 0
            for other in index:
                kind = other.__class__
                if kind is int or kind is slice:
                    named += 1
                elif other is not None and other is not Ellipsis:
                    return None
            gap = len(shape) - named
            if gap < 0:
                raise too_many(shape)
            if dim + gap > len(shape):
                gap = 0
            plan += [KEEP] * gap
            dim += gap
        else:
            return None
    return tuple(starts), tuple(plan)


def too_many(shape: Sequence[int]) -> IndexError:
    return IndexError(f"too many indices for tensor of dimension {len(shape)}")


# -- any index ---------------------------------------------------------------------


def is_sequence(value: Any) -> bool:
    """What Python's C interface calls a sequence."""
    return hasattr(type(value), "__getitem__") and not isinstance(value, dict)


def as_items(index: Any) -> tuple[Any, ...]:
    """The index as a tuple. A sequence of sequences counts as one, with a warning."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, TensorBase) or isinstance(index, np.ndarray):
        return (index,)
    if not is_sequence(index) or not hasattr(index, "__len__"):
        return (index,)
    if len(index) >= 32:
        return (index,)
    for item in index:
        if (
            isinstance(item, (TensorBase, slice))
            or item is None
            or item is Ellipsis
            or (is_sequence(item) and not isinstance(item, np.generic))
        ):
            warn(_SEQUENCE)
            return tuple(index)
    return (index,)


def resolve(
    self: Tensor, index: Any
) -> tuple[Tensor, list[Tensor | None] | None, bool]:
    """An index as (view by its basic part, index tensors, whether a view was made).

    The index tensors stand at the dimensions of the view that they index: integers,
    or boolean masks (which take as many places as they have dimensions: their first
    place holds the mask, the others `SKIP`).
    """
    shape = self._tmeta.shape
    written = as_items(index)
    # Too many are told of before what no index is.
    if written is not index or len(written) > len(shape):
        given = [i for i in written if i.__class__ is not bool]
        given = [i for i in given if i is not None and i is not Ellipsis]
        one = len(written) == 1 and index.__class__ is int
        if not one and sum(_width(item) for item in given) > len(shape):
            raise too_many(shape)
    items = [convert(item) for item in written]
    named = sum(specified(item) for item in items)
    if named > len(shape):
        if not shape and len(items) == 1 and index.__class__ is int:
            raise IndexError(ZERO_DIM)
        raise too_many(shape)
    starts: list[int] = []
    plan: list[Any] = []
    tensors: dict[int, Any] = {}
    dim = place = 0
    changed = False
    for at, item in enumerate(items):
        kind = item.__class__
        if kind is int:
            n = _size(shape, dim)
            if not -n <= item < n:
                raise out_of_bounds(item, at, n)
            starts.append(item + n if item < 0 else item)
            plan.append(PICK)
            dim += 1
            changed = True
        elif kind is slice:
            if not shape:
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            n = _size(shape, dim)
            start, entry = slice_of(item, n)
            if entry == (n, 1) and is_whole(item, n):
                plan.append(KEEP)
            else:
                starts.append(start)
                plan.append(entry)
                changed = True
            dim += 1
            place += 1
        elif item is None:
            plan.append(NEW)
            place += 1
            changed = True
        elif item is Ellipsis:
            gap = len(shape) - named
            plan += [KEEP] * gap
            dim += gap
            place += gap
        elif kind is bool:
            plan.append(NEW)
            tensors[place] = host_index(np.zeros(int(item), np.int64))
            place += 1
            changed = True
        else:
            width = specified(item)
            plan += [KEEP] * width
            tensors[place] = item
            for extra in range(1, width):
                tensors[place + extra] = SKIP
            dim += width
            place += width
    if not tensors:
        return basic(self, tuple(starts), tuple(plan)), None, changed
    view = basic(self, tuple(starts), tuple(plan)) if changed else self
    last = max(tensors)
    return view, [tensors.get(d) for d in range(last + 1)], changed


class Skip:
    """Stands at the further dimensions of a mask."""


SKIP: Any = Skip()


def _width(item: Any) -> int:
    """How many dimensions an item takes as it was written."""
    return specified(item) if isinstance(item, TensorBase) else 1


def specified(item: Any) -> int:
    """How many dimensions of the input an item of an index takes."""
    kind = item.__class__
    if kind is int or kind is slice:
        return 1
    if item is None or item is Ellipsis or kind is bool:
        return 0
    meta = item._tmeta
    if meta.dtype is dtypes.bool_ or meta.dtype is dtypes.uint8:
        return len(meta.shape)
    return 1


def convert(item: Any) -> Any:
    """An item as int, bool, slice, None, Ellipsis or a tensor of indices or a mask."""
    kind = item.__class__
    if kind is int or kind is slice or kind is bool or item is None or item is Ellipsis:
        return item
    if isinstance(item, np.ndarray):
        item = host_index(item)
    elif isinstance(item, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if isinstance(item, TensorBase):
        dtype, zero_dim = item._tmeta.dtype, not item._tmeta.shape
        if dtype.is_floating_point or dtype.is_complex:
            raise index_dtype()
        mask = dtype is dtypes.bool_ or dtype is dtypes.uint8
        if mask and item._tmeta.batch:
            raise RuntimeError(_BATCHED_MASK)
        # What vmap maps over is no number: it stays a tensor.
        if zero_dim and not item._tmeta.batch:
            value = host_value(item).item()
            return bool(value) if mask else value
        if dtype not in (dtypes.int64, dtypes.int32, dtypes.bool_, dtypes.uint8):
            raise index_dtype()
        return item
    if isinstance(item, np.bool_):
        raise wrong_index(item)
    if is_sequence(item) and hasattr(item, "__len__"):
        return sequence_index(item)
    if isinstance(item, (float, type)) or not hasattr(item, "__index__"):
        raise wrong_index(item)
    return item.__index__()


def index_dtype() -> IndexError:
    return IndexError("tensors used as indices must be long, int, byte or bool tensors")


def wrong_index(item: Any) -> IndexError:
    name = dtypes.type_name(type(item))
    return IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
        f"Variables are valid indices (got {name.rstrip('_')})"
    )


def host_index(array: np.ndarray) -> Tensor:
    """Indices known on the host: integers of any kind, or a mask."""
    if array.dtype.kind == "f":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iub" or array.dtype in (np.int8, np.int16):
        array = array.astype(np.int64)
    return on_cpu(array)


def sequence_index(items: Any) -> Any:
    """Indices in nested lists: a mask where they are all bools, else integers."""
    kind = inferred(items)
    if kind is not dtypes.bool_ and kind is not dtypes.uint8:
        kind = dtypes.int64
    return host_index(values_of(items, kind)[0])


def check_mask(mask: Tensor, shape: tuple[int, ...], dim: int) -> None:
    """A mask has the shape of the dimensions it stands for."""
    meta = mask._tmeta
    if meta.dtype is not dtypes.bool_ and meta.dtype is not dtypes.uint8:
        return
    for j, n in enumerate(tuple(meta.shape)):
        if n != size_at(shape, dim + j):
            raise IndexError(
                f"The shape of the mask {list(meta.shape)} at index {j} does not match "
                f"the shape of the indexed tensor {list(shape)} at index {dim + j}"
            )


def is_mask(item: Any) -> bool:
    return isinstance(item, TensorBase) and (
        item._tmeta.dtype is dtypes.bool_ or item._tmeta.dtype is dtypes.uint8
    )


def without_masks(view: Tensor, indices: Sequence[Any]) -> list[Any]:
    """Masks read on the host and replaced by the places of their True elements."""
    found: list[Any] = []
    for dim, item in enumerate(indices):
        if item is SKIP:
            continue
        if is_mask(item):
            if item._tmeta.dtype is dtypes.uint8:
                warn(BYTE_MASK)
            check_mask(item, view._tmeta.shape, dim)
            if item._tmeta.batch:
                raise RuntimeError(_BATCHED_MASK)
            if item._tmeta.shape:
                places = np.nonzero(host_value(item))
                found += [on_cpu(p) for p in places]
        else:
            found.append(item)
    while found and found[-1] is None:
        found.pop()
    return found


def take_tensors(view: Tensor, indices: Sequence[Any]) -> Tensor:
    """`view[indices]` for index tensors and masks."""
    places = [beside(view, item) for item in without_masks(view, indices)]
    check_known(view, places)
    return fns.index_tensors(view, places)


def beside(view: Tensor, index: Any) -> Any:
    """An index tensor on the device of what it indexes; from the CPU it may come."""
    where = view._tmeta.device
    if index is None or index is SKIP or index._tmeta.device is where:
        return index
    if index._tmeta.device.type not in ("cpu", "meta"):
        raise RuntimeError(
            "indices should be either on cpu or on the same device as the indexed "
            f"tensor ({where})"
        )
    return index.to(where) if index._tmeta.device.type == "cpu" else index


def check_known(view: Tensor, indices: Sequence[Any]) -> None:
    """Raises at once for indices out of range that the host holds."""
    if len(indices) > len(view._tmeta.shape):
        raise IndexError(
            f"too many indices for tensor of dimension {len(view._tmeta.shape)} "
            f"(got {len(indices)})"
        )
    given = [(dim, item) for dim, item in enumerate(indices) if item is not None]
    for place, (dim, item) in enumerate(given):
        if not isinstance(item._array, np.ndarray):
            continue
        array, n = item._array, _size(view._tmeta.shape, dim)
        bad = (array < -n) | (array >= n)
        if bad.any():
            if not n:
                raise IndexError("index is out of bounds for dimension with size 0")
            indexed = {d for d, _ in given}
            if 0 in (s for d, s in enumerate(view._tmeta.shape) if d not in indexed):
                continue  # PyTorch looks at no index where there is no element.
            raise out_of_bounds(int(array[bad].reshape(-1)[0]), place, n)


Tensor.__getitem__ = getitem
