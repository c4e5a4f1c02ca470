"""Tensors out of storages: what pickles and checkpoints of tensors are made of.

The functions have PyTorch's names and arguments (`torch._utils`), as files name them.
"""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from typing import Any

import numpy as np

from torchshim import _tensor
from torchshim._core import dtypes
from torchshim._core.device import device
from torchshim._core.layout import is_dense
from torchshim._core.meta import meta_of
from torchshim._core.no_data import NoData
from torchshim._core.op import REGISTRY
from torchshim._core.record import untracked
from torchshim._core.storage import BITS, TensorBase, bits_of, placement
from torchshim._functions._arguments import check_size
from torchshim._functions.resizing import alias_of, set_bits
from torchshim._functions.storage import (
    UntypedStorage,
    held_by,
)
from torchshim._functions.typed_storage import TypedStorage, _typed_storage
from torchshim._hooks import warn_if_has_hooks
from torchshim._tensor import Tensor, check_storage, from_array

_new = object.__new__
_BOUND = 1 << 63
_PIECE = REGISTRY["strided_view"]


def refuse_history(tensor: Tensor) -> None:
    """Raises for a tensor that cannot go to another process, as its history cannot."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
            "autograd does not support crossing process boundaries.  If you just want "
            "to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )


def in_slots(tensor: Tensor) -> dict[str, Any]:
    """What an instance of a subclass has in slots that the subclass declares."""
    kind = type(tensor)
    if kind is Tensor:
        return {}
    names: Any = copyreg._slotnames  # type: ignore[attr-defined]
    own = [name for name in names(kind) if name not in names(Tensor)]
    return {name: getattr(tensor, name) for name in own if hasattr(tensor, name)}


def user_state(tensor: Tensor) -> Any:
    """What a program put on a tensor: its `__dict__`, with slots a pair of the two.

    Or whatever a `__getstate__` of a subclass gives.
    """
    own: Any = getattr(type(tensor), "__getstate__", None)
    if own is not getattr(object, "__getstate__", None):
        return own(tensor)
    slots = in_slots(tensor)
    return (dict(vars(tensor)), slots) if slots else dict(vars(tensor))


def set_user_state(tensor: Tensor, state: Any) -> None:
    """Puts such attributes on a tensor.

    PyTorch writes the `__dict__`, or a pair of it and what is in slots. RuntimeError
    for names that would change what the tensor is.
    """
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            if hasattr(TensorBase, name):
                raise RuntimeError(f"a tensor's attribute {name!r} cannot be loaded")
            setattr(tensor, name, value)


# Taking apart -------------------------------------------------------------------------


def tensor_args(
    tensor: Tensor, storage: Any, requires_grad: bool | None = None
) -> tuple[Any, ...]:
    """The arguments that `_rebuild_tensor_v2` makes a tensor of again."""
    check_storage(tensor)
    meta = tensor._tmeta
    shape, strides = tuple(meta.shape), tuple(meta.strides)
    offset = placement(tensor)[2]
    if tensor._storage is not None:
        root = tensor._storage.meta
        offset -= root.offset * root.dtype.itemsize // meta.dtype.itemsize
    elif not is_dense(shape, strides):
        # Alone on its memory, which holds its elements and nothing else.
        strides = meta_of(shape, meta.dtype, meta.device).strides
    grad = meta.requires_grad if requires_grad is None else requires_grad
    args = storage, offset, shape, strides, grad, OrderedDict()
    bits = bits_of(tensor)
    return (*args, dict.fromkeys(bits, True)) if bits else args


def reduced(tensor: Tensor, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What pickle writes of a tensor that `func(*args)` makes again."""
    state = user_state(tensor)
    if type(tensor) is Tensor and not state:
        return func, args
    return _rebuild_from_type_v2, (func, type(tensor), args, state)


def _reduce_ex(self: Tensor, proto: Any) -> Any:
    warn_if_has_hooks(self)
    meta = self._tmeta
    if meta.device.type == "meta":
        found = reduced(self, _rebuild_meta_tensor_no_storage, meta_args(self))
    else:
        args = tensor_args(self, _typed_storage(self))
        found = reduced(self, _rebuild_tensor_v2, args)
    if found[0] is _rebuild_from_type_v2 and type(self) is Tensor:
        # Tensor is named by nothing, so that pickles need no module "torch".
        func, _, args, state = found[1]
        return _rebuild_from_type_v2, (func, None, args, state)
    return found


# Putting together ---------------------------------------------------------------------


def _rebuild_tensor(
    storage: TypedStorage | UntypedStorage,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    dtype: dtypes.dtype | None = None,
) -> Tensor:
    """A tensor on a storage; RuntimeError where it would reach beyond it."""
    if isinstance(storage, TypedStorage):
        untyped, kind = storage._untyped, dtype or storage.dtype
    else:
        untyped, kind = storage, dtype or dtypes.uint8
    size, stride = _integers(size), _integers(stride)
    (offset,) = _integers((storage_offset,))
    _check_geometry(size, stride, offset, untyped.nbytes() // kind.itemsize)
    if untyped._core is None and untyped._tensor is None:
        found = _first_on(untyped, kind, offset, size, stride)
        if found is not None:
            return found
    core = untyped._storage
    if core.meta.dtype is not kind:
        with untracked():
            piece = untyped._as_tensor(kind).as_strided(size, stride, offset)
        return piece.detach()
    root = core.meta
    made = _new(Tensor)
    made._slot = -1
    made._array = None
    made._tmeta = meta_of(size, kind, root.device, stride, offset)
    core.add(made)
    whole = (tuple(root.shape), root.strides, root.offset)
    if whole != (size, stride, offset):
        place = root.strides, root.offset
        made._path = ((_PIECE, (size, stride, offset + root.offset, place), 0),)
    return made


def _first_on(
    untyped: UntypedStorage,
    kind: dtypes.dtype,
    offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
) -> Tensor | None:
    """The tensor that shows a storage nobody has used yet, where it shows all of it.

    It carries its value itself, which makes no program slower, unless others come.
    """
    assert untyped._raw is not None
    data = untyped._raw
    count = len(data) // kind.itemsize * kind.itemsize
    flat = data.view(np.uint8)[:count].view(dtypes.array_dtype(kind))
    untyped._raw = None
    if offset or len(flat) != int(np.prod(size)) or not is_dense(size, stride):
        untyped._tensor = held_by(flat, untyped.device)
        return None
    order = sorted(range(len(size)), key=lambda d: -stride[d])
    seen = flat.reshape([size[d] for d in order])
    array = seen.transpose([order.index(d) for d in range(len(size))])
    made = untyped._tensor = held_by(array, untyped.device, stride)
    return made


def _integers(values: Any) -> tuple[int, ...]:
    found = tuple(values)
    for value in found:
        if value.__class__ is not int:
            raise TypeError(
                "a tensor's size, stride and storage offset must be integers, but got "
                f"{found}"
            )
    return found


def _check_geometry(
    size: tuple[int, ...], stride: tuple[int, ...], offset: int, available: int
) -> None:
    if len(size) != len(stride):
        raise RuntimeError(
            f"unequal size length ({len(size)}) and stride length ({len(stride)})"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    count = 1
    for length in size:
        count *= length
        if length < 0 or count >= _BOUND:
            raise RuntimeError("numel: integer multiplication overflow")
    if any(step < 0 for step in stride):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    if count:
        pairs = zip(size, stride, strict=True)
        if offset + sum((n - 1) * step for n, step in pairs) >= available:
            raise RuntimeError("Trying to resize storage that is not resizable")


def meta_args(tensor: TensorBase) -> tuple[Any, ...]:
    """The arguments that `_rebuild_meta_tensor_no_storage` makes a tensor of again."""
    meta = tensor._tmeta
    return meta.dtype, tuple(meta.shape), meta.strides, meta.requires_grad


def _rebuild_meta_tensor_no_storage(
    dtype: dtypes.dtype,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
) -> Tensor:
    """A tensor on the device "meta"."""
    size = _integers(size)
    check_size("empty_strided", size)
    array = NoData(size, dtypes.array_dtype(dtype))
    return from_array(
        array, requires_grad, device=device("meta"), strides=_integers(stride)
    )


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    """A tensor on a storage, as pickles of tensors have it."""
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    return _finished(made, requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    requires_grad: bool,
    backward_hooks: Any,
    dtype: dtypes.dtype,
    metadata: Any = None,
) -> Tensor:
    """The same for dtypes that have no class of storages: the file names them."""
    made = _rebuild_tensor(storage, storage_offset, size, stride, dtype)
    return _finished(made, requires_grad, backward_hooks, metadata)


def _finished(
    made: Tensor, requires_grad: bool, backward_hooks: Any, metadata: Any
) -> Tensor:
    bits = tuple(bit for bit in BITS if metadata and metadata.get(bit))
    if bits:
        made = alias_of(made)
        set_bits(made, bits)
    if requires_grad:
        made.requires_grad_()
    if backward_hooks:
        made._backward_hooks = backward_hooks
    return made


def _rebuild_from_type_v2(func: Any, kind: Any, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or with attributes of its own."""
    made = func(*args)
    if kind is not None and type(made) is not kind:
        made = made.as_subclass(kind)
    if hasattr(kind, "__setstate__"):
        made.__setstate__(state)
    else:
        set_user_state(made, state)
    return made


Tensor.__reduce_ex__ = _reduce_ex
# Where pickles of PyTorch name it.
_tensor.__dict__["_rebuild_from_type_v2"] = _rebuild_from_type_v2
