"""Tensors on other memory: `out=`, `resize_`, `.data`, `set_`, subclasses.

https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

import copyreg
import math
import weakref
from typing import Any

import numpy as np

from torchshim import _bind
from torchshim._attributes import fields, set_fields
from torchshim._core import dtypes
from torchshim._core.device import current_accelerator
from torchshim._core.layout import (
    contiguous_format,
    format_strides,
    preserve_format,
    strided,
)
from torchshim._core.levels import VMAP
from torchshim._core.meta import meta_of
from torchshim._core.no_data import NoData
from torchshim._core.op import REGISTRY
from torchshim._core.promotion import castable
from torchshim._core.record import local
from torchshim._core.storage import (
    BITS,
    TensorBase,
    bits_of,
    has_bit,
    placement,
    version_of,
)
from torchshim._derived import NEVER, fns, public
from torchshim._functions._arguments import (
    as_index,
    check_size,
    kind_of,
    size_of,
    warn,
    wrong,
)
from torchshim._functions.ahead import send_ahead
from torchshim._functions.creation import _no_grad, place
from torchshim._functions.storage import UntypedStorage, lengthen, lengthened
from torchshim._functions.typed_storage import TypedStorage
from torchshim._ops._formats import suggested_format
from torchshim._ops.view_geometry import memory_size
from torchshim._overrides import ALL_DISABLED, disabled
from torchshim._tensor import Tensor, from_array, set_requires_grad

_new = object.__new__
_DETACH = REGISTRY["detach"]
_PIECE = REGISTRY["strided_view"]
_SEEN = {op.view.bit: op for op in REGISTRY.values() if op.view and op.view.bit}

RESIZED = (
    "An output with one or more elements was resized since it had shape {0}, which "
    "does not match the required output shape {1}. This behavior is deprecated, and in "
    "a future PyTorch release outputs will not be resized unless they have zero "
    "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to "
    "zero elements with t.resize_(0). (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/Resize.cpp:38.)"
)


# What PyTorch makes of `cat`.
_JOINING = frozenset({"cat", "stack", "hstack", "vstack", "dstack", "column_stack"})


# What is said of an `out=` of another dtype; others stand with their operators.
_OTHER_DTYPE = {
    "exact": "Expected out tensor to have dtype {want.cpp_name}, but got "
    "{have.cpp_name} instead",
    "same": "Found dtype {have.scalar_name} but expected {want.scalar_name}",
}
_CASTABLE = (
    "result type {want.scalar_name} can't be cast to the desired output type "
    "{have.scalar_name}"
)


def write_into(
    op: Any, result: Tensor, out: Tensor, args: Any, text: str | bool = True
) -> Tensor:
    """Ends a call with `out=`: `out` takes the result over, resized.

    It is cast, too, unless a `text` (as of operators' `out`) says what is wrong then.
    """
    name = op.parsed if op is not None else "this function"
    _bind.refuse_tracked(local.rec, name, (args, out))
    _check_out(op, result, out, args, text, ())
    return _take_over(op, result, out, args)


def write_all(op: Any, results: Any, outs: Any, args: Any) -> list[Tensor]:
    """Ends a call of an operator with `out=`, after the dtypes have been checked."""
    pairs = list(zip(results, outs, strict=True))
    for i, (result, out) in enumerate(pairs):
        _check_out(op, result, out, args, _of(op.out, i), _of(op.castable, i))
    return [_take_over(op, result, out, args) for result, out in pairs]


def _truths(op: Any) -> set[Any]:
    """The dtypes that `out=` of `all` and `any` may have for one another."""
    if op is not None and op.name in ("all", "any"):
        return {dtypes.bool_, dtypes.uint8}
    return set()


def _of(texts: Any, i: int) -> Any:
    return texts[min(i, len(texts) - 1)] if texts and type(texts) is tuple else texts


def _check_out(
    op: Any, result: Tensor, out: Tensor, args: Any, text: Any, castable_text: Any
) -> None:
    want, have = result._meta.dtype, out._meta.dtype
    if callable(text):
        text = text(*args)
    if text in ("asked", "computed"):
        at = [p.name for p in op.params].index("dtype")
        text = "exact" if args[at] is not None else True
    if isinstance(text, str) and want is not have and not {want, have} <= _truths(op):
        named = {p.name: a for p, a in zip(op.params, args, strict=False)} if op else {}
        text = _OTHER_DTYPE.get(text, text)
        raise RuntimeError(text.format(want=want, have=have, **named))
    if not castable(want, have):
        if op is not None and op.name in _JOINING:
            raise TypeError(
                "torch.cat(): input types can't be cast to the desired output type "
                f"{have.scalar_name}"
            )
        raise RuntimeError((castable_text or _CASTABLE).format(want=want, have=have))


def resize_output(out: Tensor, shape: tuple[int, ...]) -> None:
    """Gives what stands for `out=` the shape of a result, with a warning."""
    have = out._meta.shape
    if shape != have:
        if have.numel():
            warn(RESIZED.format(list(have), list(shape)))
        _take_shape(out, tuple(shape))


# What PyTorch resizes without a warning.
_SILENT = frozenset({"addbmm", "logsigmoid"})


def _resize_along(op: Any, out: Tensor, shape: tuple[int, ...], args: Any) -> None:
    """`resize_output` for `kthvalue` and `mode`.

    Its warning has the dimension that is gone from the result.
    """
    have, sizes = out._meta.shape, args[0]._meta.shape
    given = dict(zip((p.name for p in op.params), args, strict=False))
    if given["keepdim"]:
        resize_output(out, shape)
    elif have != shape:
        shown, wanted = list(have), list(shape)
        dim = given["dim"] % max(len(sizes), 1)
        if len(have) == len(shape) or (op.name == "mode" and len(have) >= dim):
            shown.insert(dim, 1)
        wanted.insert(dim, 1)
        if have.numel() and (sizes or op.name != "mode"):
            warn(RESIZED.format(shown, wanted if sizes else []))
        _take_shape(out, tuple(shape))


def _take_over(op: Any, result: Tensor, out: Tensor, args: Any) -> Tensor:
    name, shape = None if op is None else op.name, result._meta.shape
    if name in ("kthvalue", "mode"):
        _resize_along(op, out, shape, args)
    elif name not in _SILENT:
        resize_output(out, shape)
    elif shape != out._meta.shape:
        _take_shape(out, tuple(shape))
    with _no_grad():
        fns.copy_(out, result)
    return out


_bind.out_writer.append(write_all)


def _alone(self: Tensor) -> bool:
    """Whether no other tensor shares the memory."""
    storage = self._storage
    if storage is None:
        return True
    return storage.shared is None and storage.tensors() == [self] and not self._path


def _take_shape(
    self: Tensor, shape: tuple[int, ...], wanted: Any = contiguous_format
) -> None:
    """Changes a tensor's size; what its memory holds stays where it is."""
    meta, storage = self._meta, self._storage
    strides = format_strides(shape, wanted)
    whole = meta if storage is None else storage.meta
    have = memory_size(whole.shape, whole.strides, whole.offset)
    have = have * whole.dtype.itemsize // meta.dtype.itemsize
    need = memory_size(shape, strides, placement(self)[2])
    if need > have and _alone(self):
        _become(self, _longer(self, shape, strides))
        self._versions += 1
        return
    if need > have:
        lengthen(local.rec.storage_of(self), need, meta.dtype)
    piece = _piece(self, shape, strides)
    _onto(self, piece)
    assert self._storage is not None
    self._storage.count_write(self)


def _longer(self: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A tensor of more elements, which begin with those of this one, as in memory."""
    meta = self._meta
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


def _piece(self: Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A tensor on the memory from where this one begins, without history."""
    root, offset = local.rec.storage_of(self).meta, placement(self)[2]
    if root.dtype is not self._meta.dtype:
        with _no_grad():
            return self.detach().as_strided(shape, strides, offset)  # type: ignore[attr-defined]
    bits, made = bits_of(self), alias_of(self)
    new = meta_of(shape, root.dtype, root.device, strides, offset)
    made._meta = new.replace(inference=made._meta.inference)
    place = root.strides, root.offset
    made._path = ((_PIECE, (shape, strides, offset, place), 0),)
    set_bits(made, bits)
    return made


def _become(self: Tensor, other: Tensor) -> None:
    """Gives a tensor the memory of a new one, which nobody else has."""
    _leave(self)
    self._slot = -1
    self._array = other._array
    self._meta = other._meta.replace(
        requires_grad=self._meta.requires_grad,
        leaf=self._meta.leaf,
        inference=self._meta.inference,
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


@public(namespaces=(), method=True)
def resize_(
    self: Tensor, *sizes: Any, memory_format: Any = contiguous_format
) -> Tensor:
    """Changes the size in place; memory keeps what it holds, more of it is unchosen."""
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    shape = size_of("resize_", sizes)
    check_size("resize_", shape)
    meta = self._meta
    if meta.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if shape != tuple(meta.shape):
        local.rec.check_inference(self)
        _take_shape(self, shape, memory_format)
    return self


@public(namespaces=(), method=True)
def resize_as_(
    self: Tensor, other: Tensor, *, memory_format: Any = contiguous_format
) -> Tensor:
    """Changes the size in place to `other`'s."""
    if memory_format is preserve_format:
        memory_format = suggested_format(other._meta.shape, other._meta.strides)
    return resize_(self, tuple(other._meta.shape), memory_format=memory_format)


def alias_of(self: Tensor, cls: Any = Tensor) -> Any:
    """A tensor on the same memory, without history; nothing is recorded."""
    made = _new(cls)
    made._slot = -1
    made._array = None
    made._meta = self._meta.plain
    local.rec.link(made, self, _DETACH, ())
    return made


def _mapped(self: Tensor) -> bool:
    """Whether the innermost of the transforms in progress maps over a tensor."""
    levels = local.rec.levels
    return bool(levels) and levels[-1].kind == VMAP and bool(self._meta.batch)


def _data(self: Tensor) -> Tensor:
    """The same memory without history; its changes are not counted."""
    if _mapped(self):
        raise RuntimeError("accessing `data` under vmap transform is not allowed")
    made = alias_of(self)
    if not (made._meta.inference and local.rec.inference):
        made._own_version, made._ahead = [0], 0
    return made


_OTHER_KIND = (
    "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
    "incompatible tensor type."
)


def set_bits(self: Tensor, bits: tuple[str, ...]) -> None:
    """Has a tensor that is in no recording seen with just these bits."""
    for bit in BITS:
        if has_bit(self, bit) != (bit in bits):
            self._path = (*self._path, (_SEEN[bit], (), 0))


def get_tensor_metadata(tensor: Any) -> dict[str, bool]:
    """Which bits a tensor has: `conj`, `neg`."""
    if not isinstance(tensor, Tensor):
        raise AssertionError(f"expected torch.Tensor, got {type(tensor).__name__}")
    return dict.fromkeys(bits_of(tensor), True)


def set_tensor_metadata(tensor: Any, metadata: Any) -> None:
    """Has a tensor seen with such bits."""
    if not isinstance(metadata, dict):
        raise AssertionError(f"expected dict, got {type(metadata).__name__}")
    if not isinstance(tensor, Tensor):
        raise AssertionError(f"expected torch.Tensor, got {type(tensor).__name__}")
    set_bits(tensor, tuple(bit for bit, on in metadata.items() if on))


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {kind_of(value)}")
    if getattr(value, "layout", strided) is not strided:
        raise RuntimeError(_OTHER_KIND)
    if _mapped(self):
        raise RuntimeError(
            "mutating directly with `.data` under vmap transform is not allowed."
        )
    meta, its = self._meta, value._meta
    if meta.requires_grad and not (its.dtype.is_floating_point or its.dtype.is_complex):
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or "
            "complex dtype"
        )
    if meta.device.type != its.device.type and (
        "meta" in (meta.device.type, its.device.type)
        or (meta.requires_grad and not meta.leaf)
    ):
        raise RuntimeError(_OTHER_KIND)
    _onto(self, value)


def _shows_the_same(self: Tensor, value: TensorBase) -> bool:
    """Whether a tensor is already where `.data` would put it."""
    return (
        self._storage is not None
        and self._storage is value._storage
        and self._meta.dtype is value._meta.dtype
        and placement(self) == placement(value)
        and bits_of(self) == bits_of(value)
    )


def _onto(self: Tensor, value: TensorBase) -> None:
    """Puts a tensor on the memory of another; its autograd role stays."""
    if self is value or _shows_the_same(self, value):
        return
    rec, meta = local.rec, self._meta
    if meta.requires_grad and not meta.leaf:
        rec.keep_history(self)
    version, own, old = version_of(self), self._own_version, self._slot
    rec.let_views_go(self)
    _leave(self)
    self._slot = -1
    self._array = None
    self._meta = value._meta.replace(requires_grad=meta.requires_grad, leaf=meta.leaf)
    rec.link(self, value, _DETACH, ())
    if value._meta.inference and not meta.inference and own is None:
        own = [version]  # that memory counts none
    self._own_version = own  # not that of a `.data` given
    self._ahead += version - version_of(self)
    rec.replaced(self, old, value)


def swap_contents(a: Tensor, b: Tensor) -> None:
    """Exchanges all but the identity of two tensors."""
    names = [set(copyreg._slotnames(type(t))) for t in (a, b)]  # type: ignore[attr-defined]
    if names[0] != names[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    if a is b:
        return
    local.rec.flush()
    first, second = (local.rec.storage_of(tensor) for tensor in (a, b))
    stands_for = {id(a): b, id(b): a}
    for tensor, storage, name in ((a, first, "t1"), (b, second, "t2")):
        views = [t for t in storage.tensors() if t._view_of is tensor]
        if views:
            raise RuntimeError(
                f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad "
                f"node but got {1 + len(views)} make sure you are not holding "
                "references to the tensor in other places."
            )
    for storage in {first, second}:
        storage.aliases[:] = [
            weakref.ref(stands_for.get(id(each), each)) for each in storage.tensors()
        ]
    for name in ("_slot", "_meta", "_array", "__class__"):
        mine, its = getattr(a, name), getattr(b, name)
        setattr(a, name, its)
        setattr(b, name, mine)
    mine, its = fields(a), fields(b)
    set_fields(a, its)
    set_fields(b, mine)


def _no_deletion(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


Tensor.data = property(_data, _set_data, _no_deletion)  # type: ignore[attr-defined]


@public(namespaces=(), method=True)
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: Any = None,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Puts the tensor on the memory of `source`; without it, on none."""
    local.rec.check_inference(self)
    own = self._meta.dtype
    if isinstance(source, TypedStorage) and source.dtype is not own:
        raise RuntimeError(
            f"Expected a Storage of type {own.cpp_name} or an "
            f"UntypedStorage, but got type {source.dtype.scalar_name} for argument 1 "
            "'storage'"
        )
    if isinstance(source, (TypedStorage, UntypedStorage)):
        source = source._as_tensor(self._meta.dtype)
    if source is None:
        array = np.zeros(0, dtypes.array_dtype(self._meta.dtype))
        _become(self, from_array(array, device=self._meta.device))
        self._versions += 1
        return self
    if not isinstance(source, Tensor):
        raise TypeError(wrong("set_", "source", 1, "Tensor", source))
    mine, its = self._meta.device, source._meta.device
    if mine.type != its.type:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{mine}" to a storage '
            f'on different device "{its}".  This is no longer allowed; the devices '
            "must match."
        )
    if source._meta.dtype is not self._meta.dtype:
        raise RuntimeError(
            "Could not set tensor of type "
            f"{source._meta.dtype.cpp_name} to a tensor of type "
            f"{self._meta.dtype.cpp_name}"
        )
    if size is not None:
        shape = size_of("set_", (size,))
        steps = None if stride is None else size_of("set_", (stride,))
        if steps is None:
            steps = meta_of(shape, self._meta.dtype, self._meta.device).strides
        with _no_grad():
            source = source.as_strided(shape, steps, as_index(storage_offset) or 0)
    bits, inference = bits_of(self), self._meta.inference
    _onto(self, source)
    set_bits(self, bits)
    self._meta = self._meta.replace(inference=inference)
    self._ahead += 1
    return self


# Subclasses ---------------------------------------------------------------------------


_NO_SUBCLASS = (
    "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
    "possible. Make sure your class inherits from Tensor."
)


def _make_subclass(
    cls: Any, data: Any, require_grad: bool = False, **options: Any
) -> Any:
    """A tensor of class `cls` on the memory of `data`, a leaf."""
    if not isinstance(data, TensorBase):
        raise TypeError(wrong("_make_subclass", "data", 2, "Tensor", data))
    if not issubclass(cls, Tensor):
        raise TypeError(_NO_SUBCLASS)
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"_make_subclass(): {name} is not supported")
    made = alias_of(data, cls)  # type: ignore[arg-type]
    if require_grad:
        kind = made._meta.dtype
        if not (kind.is_floating_point or kind.is_complex):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if made._meta.inference:
            set_requires_grad(made, True)  # which may refuse it
        made._meta = made._meta.replace(requires_grad=True)
    return made


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]


@public(namespaces=(), method=True, overridden=NEVER)
def as_subclass(self: Tensor, cls: Any) -> Any:
    """The tensor as an instance of a subclass of Tensor, on the same memory."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {kind_of(cls)})")
    if not issubclass(cls, Tensor):
        raise TypeError(_NO_SUBCLASS)
    if self._meta.requires_grad:
        with disabled(ALL_DISABLED):
            made = fns.alias(self)
        made.__class__ = cls
        return made
    return alias_of(self, cls)


@public(namespaces=(), method=True)
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Begins the copy to the accelerator, which is what page-locked memory is for.

    The tensor stays on the CPU, and its memory as it is; `to` takes the copy. A
    RuntimeError without an accelerator.
    """
    accelerator = current_accelerator()
    if accelerator is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    if self._meta.device.type != "cpu":
        name = f"{self._meta.dtype.tensor_name}".replace("torch.", "torch.cuda.")
        raise RuntimeError(f"cannot pin '{name}' only dense CPU tensors can be pinned")
    send_ahead(self, accelerator)
    return self


@public(namespaces=(), method=True)
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked: never."""
    return False


@public(namespaces=(), method=True)
def is_shared(self: Tensor) -> bool:
    """Whether other processes see the memory: never."""
    return False


def _volatile(self: Tensor) -> bool:
    warn("volatile was removed (Variable.volatile is always False)")
    return False


Tensor.volatile = property(_volatile)  # type: ignore[attr-defined]
