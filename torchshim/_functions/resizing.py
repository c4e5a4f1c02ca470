"""Tensors on other memory, or on another part of theirs: `resize_` and its kind.

https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.resize_.html
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import (
    contiguous_format,
    format_strides,
    preserve_format,
)
from torchshim._core.meta import meta_of
from torchshim._core.no_data import NoData
from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._core.storage import (
    BITS,
    CountOf,
    Placement,
    TensorBase,
    bits_of,
    dense,
    has_bit,
    leads_on,
    placed,
    placement,
    shown_version,
)
from torchshim._core.versions import keeps_no_slot
from torchshim._derived import public
from torchshim._functions._arguments import check_size, size_of, warn
from torchshim._functions.creation import place
from torchshim._functions.storage import lengthen, lengthened
from torchshim._ops._formats import suggested_format
from torchshim._ops.view_geometry import memory_size
from torchshim._ops.view_memory import positions
from torchshim._tensor import Tensor, from_array

_new = object.__new__
_DETACH = REGISTRY["detach"]
_PIECE, _REAL = REGISTRY["strided_view"], REGISTRY["view_as_real"]
_SEEN = {op.view.bit: op for op in REGISTRY.values() if op.view and op.view.bit}

RESIZED = (
    "An output with one or more elements was resized since it had shape {0}, which "
    "does not match the required output shape {1}. This behavior is deprecated, and in "
    "a future PyTorch release outputs will not be resized unless they have zero "
    "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to "
    "zero elements with t.resize_(0). (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/Resize.cpp:30.)"
)

RESIZED_ELSEWHERE = (
    "self_bdim == 0 INTERNAL ASSERT FAILED at "
    '"/__w/pytorch/pytorch/aten/src/ATen/functorch/BatchRulesViews.cpp":170, please '
    "report a bug to PyTorch. NYI: resize_ batch rule for batch dim != 0"
)


def _alone(self: Tensor) -> bool:
    """Whether no other tensor shares the memory."""
    storage = self._storage
    if storage is None:
        return True
    return storage.shared is None and storage.tensors() == [self] and not self._path


def keep_saved(self: Tensor) -> None:
    """Before a tensor gets another size: what gradients saved of it keeps its own."""
    storage, rec = self._storage, local.rec
    if rec.owns(self._slot if storage is None else storage.slot):
        rec.flush()


def _take_shape(
    self: Tensor,
    shape: tuple[int, ...],
    wanted: Any = contiguous_format,
    counted: bool = True,
) -> None:
    """Changes a tensor's size; what its memory holds stays where it is."""
    keep_saved(self)
    meta, storage = self._tmeta, self._storage
    strides, offset = format_strides(shape, wanted), placement(self)[2]
    whole = meta if storage is None else storage.meta
    have = memory_size(whole.shape, whole.strides, whole.offset)
    have = have * whole.dtype.itemsize // meta.dtype.itemsize
    need = memory_size(shape, strides, offset)
    if need > have and _alone(self):
        become(self, _longer(self, shape, strides))
        self._versions += counted
        return
    if need > have:
        lengthen(local.rec.storage_of(self), need, meta.dtype)
    show(self, (shape, strides, offset))
    if counted:
        local.rec.storage_of(self).count_write(self)


def _longer(self: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A tensor of more elements, which begin with those of this one, as in memory."""
    meta = self._tmeta
    before = np.zeros(0, dtypes.array_dtype(meta.dtype))
    if meta.device.type == "meta":
        array: Any = NoData(shape, dtypes.array_dtype(meta.dtype))
        return from_array(array, device=meta.device, strides=strides)
    if meta.shape.numel():
        host = self._host()
        order = sorted(range(host.ndim), key=lambda d: -meta.strides[d])
        before = host.transpose(order).reshape(-1)
    flat = lengthened(before, math.prod(shape), meta.dtype)
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    ordered = flat.reshape([shape[d] for d in order])
    back = [order.index(d) for d in range(len(shape))]
    # Not `ascontiguousarray`, which makes 0-dim arrays 1-dim.
    array = place(np.array(ordered.transpose(back), order="C"), meta.device)
    return from_array(array, device=meta.device, strides=strides)


def show(self: Tensor, at: Placement) -> None:
    """Has a tensor show another part of its memory; a view stays one of its base."""
    role = self._view_of, self._made_on, self._view_note, self._versions
    local.rec.storage_of(self)
    bits, made = bits_of(self), alias_of(self)
    meta, (shape, strides, offset) = self._tmeta, at
    new = meta_of(shape, meta.dtype, meta.device, strides, offset)
    made._tmeta = new.replace(inference=meta.inference)
    way = _way_to(self, at)
    if way is None:
        raise NotImplementedError(
            "resize_(): memory that no tensor shows is not supported"
        )
    made._path = way
    set_bits(made, bits)
    onto(self, made)
    if role[0] is not None or role[2] is not None:
        self._view_of, self._made_on, self._view_note, self._versions = role
    show_views(self)


def show_views(self: TensorBase) -> None:
    """Has the views of a tensor that shows other memory go on from there.

    Those that lie in it: see `steps_from`.
    """
    storage = self._storage
    assert storage is not None
    for view in storage.tensors():
        if view._view_of is self and not leads_on(self._path, view._path):
            path, bits = _way_to(view, placement(view)), bits_of(view)
            # None, or from elsewhere: not all of it is in the base's new memory.
            if path is not None and leads_on(self._path, path):
                view._path = path
                set_bits(view, bits)


def _way_to(tensor: TensorBase, at: Placement) -> tuple[Any, ...] | None:
    """The steps to some part of a tensor's memory: from its base on, if that has it."""
    storage, base = tensor._storage, tensor._view_of
    assert storage is not None
    root, dtype, way = storage.meta, tensor._tmeta.dtype, tensor._path
    if base is None and dtype is root.dtype and at == placed(root, ()):
        return ()
    while way and (way[-1][0] is _PIECE or way[-1][0].view.bit):
        way = way[:-1]
    ways = [((), root.dtype), (way, dtype)]
    if base is not None and base._storage is storage:
        ways.insert(0, (base._path, base._tmeta.dtype))
    for way, kind in ways:
        if kind.is_complex and kind.to_real() is dtype:
            way = (*way, (_REAL, (), 0))
        elif kind is not dtype:
            continue
        source = placed(root, way)
        if _reaches(source, at):
            return (*way, (_PIECE, (*at, source[1:]), 0))
    return None


def _reaches(source: Placement, at: Placement) -> bool:
    """Whether all of a part of memory is shown by what is at `source`."""
    if 0 in at[0]:
        return True
    if not dense(source):
        return positions(source, at) is not None
    first = source[2]
    return first <= at[2] and memory_size(*at) <= first + math.prod(source[0])


def become(self: Tensor, other: Tensor) -> None:
    """Gives a tensor the memory of a new one, which nobody else has."""
    _leave(self)
    self._slot = -1
    self._array = other._array
    self._tmeta = other._tmeta.replace(
        requires_grad=self._tmeta.requires_grad,
        leaf=self._tmeta.leaf,
        inference=self._tmeta.inference,
    )


def _leave(self: Tensor) -> None:
    """Takes a tensor off its storage."""
    storage = self._storage
    if storage is not None:
        self._versions = storage.version
        storage.aliases[:] = [r for r in storage.aliases if r() is not self]
        self._storage = None
        self._path = ()
        self._view_of = self._made_on = None
        self._view_note = None
    self._address = None
    self._raw = -1


def _resize_mapped(
    self: Tensor, shape: tuple[int, ...], memory_format: Any, same: bool
) -> None:
    """Within `vmap`: all examples are resized as one tensor, examples first."""
    # These need this file, for their arguments.
    from torchshim._functions.vmap import argument_behind, entered, left

    if memory_format is not None and memory_format is not contiguous_format:
        raise RuntimeError(
            "resize_: batching rule only supports None or Contiguous MemoryFormat"
        )
    number = max(number for number, _ in self._tmeta.batch)
    level = next(each for each in local.rec.levels if each.number == number)
    known = argument_behind(self, level)
    if known[1]:
        raise RuntimeError(RESIZED_ELSEWHERE)
    if not same:
        is_given = any(each is self for each, _, _ in level.given)
        whole = known[0] if is_given else left(self, 0, level)
        resize_(whole, level.size, *shape)
        onto(self, entered(whole, 0, level))
        if not is_given:
            level.given.append((self, whole, 0))


@public(namespaces=(), method=True)
def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Changes the size in place; memory keeps what it holds, more of it is unchosen.

    RuntimeError for a tensor that requires grad.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.resize_.html

    >>> import torchshim as torch
    >>> x = torch.arange(6)
    >>> x.resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    >>> x.resize_(6)
    tensor([0, 1, 2, 3, 4, 5])
    """
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    shape = size_of("resize_", sizes)
    if any(n < 0 for n in shape):
        raise RuntimeError("numel: integer multiplication overflow")
    check_size("resize_", shape)
    meta = self._tmeta
    if meta.requires_grad and not (local.rec.inference and meta.inference):
        raise RuntimeError("cannot resize variables that require grad")
    same = shape == tuple(meta.shape)
    if same and memory_format is not None:  # a format that was asked for is taken
        same = meta.strides == format_strides(shape, memory_format)
    if meta.batch:
        _resize_mapped(self, shape, memory_format, same)
    elif not same:
        local.rec.check_inference(self)
        _take_shape(self, shape, memory_format or contiguous_format)
    return self


@public(namespaces=(), method=True)
def resize_as_(self: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Changes the size in place to `other`'s.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.resize_as_.html

    >>> import torchshim as torch
    >>> torch.arange(6).resize_as_(torch.zeros(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    if self._tmeta.batch:
        return self  # PyTorch resizes each example, which nobody sees.
    if memory_format is preserve_format:
        memory_format = suggested_format(other._tmeta.shape, other._tmeta.strides)
    return resize_(self, tuple(other._tmeta.shape), memory_format=memory_format)


def alias_of(self: Tensor, cls: Any = Tensor) -> Any:
    """A tensor on the same memory, without history; nothing is recorded."""
    made = _new(cls)
    made._slot = -1
    made._array = None
    made._tmeta = self._tmeta.plain
    local.rec.link(made, self, _DETACH, ())
    return made


def resize_output(out: Tensor, shape: tuple[int, ...], counted: bool = False) -> None:
    """Gives what stands for `out=` the shape of a result, with a warning."""
    have = out._tmeta.shape
    if shape != have:
        if have.numel():
            warn(RESIZED.format(list(have), list(shape)))
        take_size(out, shape, counted)


def take_size(out: Tensor, shape: tuple[int, ...], counted: bool = False) -> None:
    """Gives what stands for `out=` a shape; that alone is mostly not counted."""
    if shape != out._tmeta.shape:
        _take_shape(out, tuple(shape), counted=counted)


def set_bits(self: TensorBase, bits: tuple[str, ...]) -> None:
    """Has a tensor that is in no recording seen with just these bits."""
    for bit in BITS:
        if has_bit(self, bit) != (bit in bits):
            self._path = (*self._path, (_SEEN[bit], (), 0))


def _shows_the_same(self: Tensor, value: TensorBase) -> bool:
    """Whether a tensor is already where `.data` would put it."""
    return (
        self._storage is not None
        and self._storage is value._storage
        and self._tmeta.dtype is value._tmeta.dtype
        and placement(self) == placement(value)
        and bits_of(self) == bits_of(value)
    )


def _count_of(self: Tensor) -> list[int] | CountOf:
    """A cell that goes on counting from a tensor's version."""
    storage = self._storage
    if storage is not None and not self._ahead:
        if any(t._own_version is None for t in storage.tensors() if t is not self):
            return CountOf(storage)
    return [shown_version(self)]


def onto(self: Tensor, value: TensorBase) -> None:
    """Puts a tensor on the memory of another; its autograd role stays."""
    if self is value or _shows_the_same(self, value):
        return
    rec, meta = local.rec, self._tmeta
    if keeps_no_slot(rec.recording, self):
        rec.flush()
    if not rec.owns(self._slot):
        rec.tell_owner(self, self._slot)
    shown = rec.slots_of_values(self)
    if meta.requires_grad and not meta.leaf:
        rec.keep_history(self)
    own, ahead = self._own_version, self._ahead
    stays = value._storage is not None and value._storage is self._storage
    if own is None and not stays and not meta.inference:
        # It goes on counting as before, whoever else is there.
        own, ahead = _count_of(self), 0
    rec.settle_views_before_move(self)
    _leave(self)
    if meta.requires_grad and meta.leaf and meta.dtype is not value._tmeta.dtype:
        # What accumulates its gradients in the graphs so far is another's from now on.
        self._node_since = rec.recording.seq, rec.state.n_slots
        self._node = None
    self._slot = -1
    self._array = None
    self._tmeta = value._tmeta.replace(requires_grad=meta.requires_grad, leaf=meta.leaf)
    rec.link(self, value, _DETACH, ())
    self._own_version, self._ahead = own, ahead  # not that of a `.data` given
    rec.note_replaced(self, shown, value)
