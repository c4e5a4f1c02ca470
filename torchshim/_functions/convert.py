"""Tensors as other tensors: `to` and its like, `clone`, `copy_`, `.data`, `set_`.

https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from torchshim import _bind
from torchshim._core import dtypes
from torchshim._core.device import as_device, current_accelerator, device, resolve
from torchshim._core.dtypes import as_dtype
from torchshim._core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    format_strides,
    has_format,
    preserve_format,
)
from torchshim._core.meta import elementwise_strides, meta_of
from torchshim._core.op import REGISTRY
from torchshim._core.promotion import castable
from torchshim._core.record import local
from torchshim._core.shared import frozen
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    as_index,
    combination,
    is_number,
    kind_of,
    size_of,
    warn,
    wrong,
)
from torchshim._functions.construct import TENSOR_TYPES, cast_host
from torchshim._functions.creation import _no_grad, check_fits, place
from torchshim._functions.random import overwrite
from torchshim._ops import creation as ops
from torchshim._ops.conversion import cast
from torchshim._tensor import Tensor, from_array

_new = object.__new__
_DETACH = REGISTRY["detach"]

_TO = """
    (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
    (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
    (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""  # noqa: E501


def settled(tensor: Tensor) -> Any:
    """The array of a tensor if it is at hand without running or recording anything.

    None within a recording, for pending values and where autograd has to be told.
    """
    rec, meta = local.rec, tensor._meta
    if rec.state is not rec.root or meta.requires_grad and rec.grad:
        return None
    storage = tensor._storage
    if storage is None:
        return tensor._array
    if tensor._path or storage.shared is not None or storage.slot >= 0:
        return None
    return storage.array


def moved(tensor: Tensor, where: device) -> Tensor:
    """A copy of a tensor on another device."""
    meta = tensor._meta
    if meta.requires_grad and local.rec.grad:
        raise NotImplementedError(
            "to(): moving a tensor that requires grad to another device is not "
            "supported; move tensor.detach() and call requires_grad_() on the result"
        )
    array = place(np.array(tensor._host(), order="C"), where)
    shape = tuple(meta.shape)
    strides = elementwise_strides(shape, [(shape, meta.strides)])
    return from_array(array, device=where, strides=strides)


def converted(
    self: Tensor,
    where: device | None,
    dtype: dtypes.dtype | None,
    copy: bool,
    wanted: Any,
) -> Tensor:
    """`self` with this device, dtype and memory format; itself if it has them."""
    meta = self._meta
    if where is not None and where is not meta.device:
        where = resolve(where)
    dtype = meta.dtype if dtype is None else dtype
    reordered = wanted not in (None, preserve_format) and not has_format(
        meta.shape, meta.strides, wanted
    )
    if where is not None and where != meta.device:
        tensor = self if dtype is meta.dtype else converted(self, None, dtype, False, None)
        return converted(moved(tensor, where), None, None, False, wanted)
    if dtype is meta.dtype:
        if not copy and not reordered:
            return self
        return copied(self, "clone", (), wanted)
    dtypes.array_dtype(dtype)
    if meta.dtype.is_complex and not dtype.is_complex and dtype is not dtypes.bool_:
        warn(
            "Casting complex values to real discards the imaginary part (Triggered "
            "internally at /__w/pytorch/pytorch/aten/src/ATen/native/Copy.cpp:307.)"
        )
    return copied(self, "to_copy", (dtype,), wanted)


def copied(self: Tensor, name: str, args: tuple[Any, ...], wanted: Any) -> Tensor:
    """A recorded copy in a memory format; made at once where that costs nothing."""
    meta = self._meta
    shape = tuple(meta.shape)
    if wanted is None:
        wanted = preserve_format
    if wanted is not preserve_format:
        format_strides(shape, wanted)  # checks the rank
    array = settled(self)
    if array is not None:
        return _copied_now(self, array, args, wanted)
    if wanted is preserve_format:
        return getattr(fns, name)(self, *args)
    form = "channels_last" if wanted is not contiguous_format else "contiguous"
    return getattr(fns, f"{name}_{form}")(self, *args)


def _copied_now(
    self: Tensor, array: Any, args: tuple[Any, ...], wanted: Any
) -> Tensor:
    meta = self._meta
    shape = tuple(meta.shape)
    if args:
        kind = dtypes.array_dtype(args[0])
        if meta.device.type == "cpu":
            array = frozen(cast_host(np.asarray(array), kind))
        else:
            with jax.enable_x64(True):
                array = cast(array, kind)
    if wanted is preserve_format:
        strides = elementwise_strides(shape, [(shape, meta.strides)])
    else:
        strides = format_strides(shape, wanted)
    # Arrays never change, so a copy in the same dtype may be the same array.
    return from_array(array, device=meta.device, strides=strides)


@public(namespaces=(), method=True)
def to(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """The tensor with another dtype, on another device; itself if nothing changes.

    >>> import torchshim as torch
    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])
    """
    given = dict(named)
    rest = list(args)
    where: Any = None
    dtype: Any = None
    if rest:
        first = rest[0]
        if isinstance(first, TensorBase):
            where, dtype = first._meta.device, first._meta.dtype
            del rest[0]
        elif (found := as_dtype(first)) is not None:
            dtype = found
            del rest[0]
        elif first is None or _is_device(first):
            where = None if first is None else as_device(first)
            del rest[0]
            if rest and (rest[0] is None or as_dtype(rest[0]) is not None):
                dtype = None if rest[0] is None else as_dtype(rest[0])
                del rest[0]
        else:
            raise combination("to", args, named, _TO)
    other = given.pop("other", given.pop("tensor", None))
    if isinstance(other, TensorBase):
        where, dtype = other._meta.device, other._meta.dtype
    if "device" in given:
        value = given.pop("device")
        where = None if value is None else as_device(value)
        if value is not None and where is None:
            raise combination("to", args, named, _TO)
    if "dtype" in given:
        value = given.pop("dtype")
        dtype = None if value is None else as_dtype(value)
        if value is not None and dtype is None:
            raise combination("to", args, named, _TO)
    flags = dict(zip(("non_blocking", "copy"), rest, strict=False))
    wanted = given.pop("memory_format", None)
    for name in ("non_blocking", "copy"):
        if name in given:
            flags[name] = given.pop(name)
    wrong_flag = any(not isinstance(v, (bool, np.bool_)) for v in flags.values())
    if given or len(rest) > 2 or wrong_flag:
        raise combination("to", args, named, _TO)
    return converted(self, where, dtype, bool(flags.get("copy")), wanted)


def _is_device(value: Any) -> bool:
    if isinstance(value, (str, device)):
        return True
    return isinstance(value, int) and not isinstance(value, bool)


def _cast_method(name: str, target: dtypes.dtype) -> None:
    def method(self: Tensor, memory_format: Any = preserve_format) -> Tensor:
        return converted(self, None, target, False, memory_format)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor as {target}; itself if it is that already."
    public(namespaces=(), method=True)(method)


for _name in (
    *("float", "double", "half", "bfloat16", "int", "long", "short", "bool"),
    *("cfloat", "cdouble", "chalf"),
):
    _cast_method(_name, dtypes.NAMES[_name])
_cast_method("char", dtypes.int8)
_cast_method("byte", dtypes.uint8)


@public(namespaces=(), method=True)
def cpu(self: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """The tensor on the CPU; itself if it is there."""
    return converted(self, device("cpu"), None, False, memory_format)


@public(namespaces=(), method=True)
def cuda(
    self: Tensor,
    device: Any = None,
    non_blocking: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """The tensor on a CUDA device; itself if it is there."""
    where = as_device("cuda" if device is None else device)
    if where is None or where.type != "cuda":
        raise RuntimeError(f"Invalid device, must be cuda device, got {device}")
    return converted(self, where, None, False, memory_format)


@public(namespaces=(), method=True)
def type(
    self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any
) -> Any:
    """The name of the tensor's type; with `dtype` the tensor of that type."""
    if dtype is None:
        meta = self._meta
        place_of = "" if meta.device.type == "cpu" else f"{meta.device.type}."
        return f"torch.{place_of}{meta.dtype.scalar_name}Tensor"
    found = as_dtype(dtype)
    if found is None and isinstance(dtype, builtin_type) and hasattr(dtype, "dtype"):
        found = dtype.dtype
    if found is None and isinstance(dtype, str):
        package, _, name = dtype.rpartition(".")
        kind = TENSOR_TYPES.get(name)
        if kind is None or package not in ("torch", "torch.cuda"):
            raise ValueError(f"invalid type: '{dtype}'")
        where = device("cpu" if package == "torch" else "cuda")
        return converted(self, where, kind.dtype, False, None)
    if found is None:
        raise RuntimeError(f"invalid type: {dtype!r}")
    return converted(self, None, found, False, None)


builtin_type = tuple.__class__


@public(namespaces=(), method=True)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with `other`'s dtype, on its device."""
    if not isinstance(other, TensorBase):
        raise TypeError(wrong("type_as", "other", 1, "Tensor", other))
    return converted(self, other._meta.device, other._meta.dtype, False, None)


@public(method=True)
def clone(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """A copy that autograd follows.

    >>> import torchshim as torch
    >>> torch.ones(2).clone()
    tensor([1., 1.])
    """
    if not isinstance(input, TensorBase):
        raise TypeError(wrong("clone", "input", 1, "Tensor", input))
    return copied(input, "clone", (), memory_format)


@public(namespaces=(), method=True)
def contiguous(self: Tensor, memory_format: Any = contiguous_format) -> Tensor:
    """The tensor with its elements in the order of the format; itself if they are."""
    meta = self._meta
    if memory_format in (channels_last, channels_last_3d):
        format_strides(tuple(meta.shape), memory_format)
    if has_format(meta.shape, meta.strides, memory_format):
        return self
    if memory_format is preserve_format:
        raise RuntimeError(
            "preserve memory format is unsupported by the contiguous operator"
        )
    return copied(self, "clone", (), memory_format)


# In place -----------------------------------------------------------------------------


def _fresh(self: Tensor) -> bool:
    """Whether a write may replace the array itself: while a model is being built."""
    rec = local.rec
    if rec.state is not rec.root:
        return False
    return self._meta.requires_grad or not self._version


@public(namespaces=(), method=True)
def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Takes over the values of `other`, broadcast and cast."""
    if not isinstance(other, TensorBase) and not is_number(other):
        raise TypeError(wrong("copy_", "other", 1, "Tensor", other))
    if isinstance(other, TensorBase) and _fresh(self):
        mine, its = self._meta, other._meta
        array = settled(other)
        if array is not None and its.shape == mine.shape and its.device is mine.device:
            local.rec.check_writable(self)
            if its.dtype is not mine.dtype:
                array = _cast_array(array, mine)
            if array is not None and overwrite(self, array):
                return self
    if isinstance(other, TensorBase) and other._meta.device != self._meta.device:
        if other._meta.shape or other._meta.device.type != "cpu":
            other = moved(other, self._meta.device)
    return fns.copy_(self, other, non_blocking)


def _cast_array(array: Any, meta: Any) -> Any:
    if meta.device.type != "cpu":
        return None
    return frozen(cast_host(np.asarray(array), dtypes.array_dtype(meta.dtype)))


@public(method=True, name="fill_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Sets all elements to a number or the value of a 0-dim tensor."""
    if isinstance(value, TensorBase):
        return fns.fill_(input, value)
    if not isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        raise _fill_mismatch(value)
    if isinstance(value, (np.number, np.bool_)):
        value = value.item()
    meta = input._meta
    check_fits(value, meta.dtype)
    if value.__class__ is complex and not meta.dtype.is_complex:
        value = value.real
    if _fresh(input):
        local.rec.check_writable(input)
        kind = dtypes.array_dtype(meta.dtype)
        array = np.full(tuple(meta.shape), ops.constant(value, kind))
        if overwrite(input, place(array, meta.device)):
            return input
    return fns.fill_(input, value)


def _fill_mismatch(value: Any) -> TypeError:
    kind = kind_of(value)
    note = f"      didn't match because some of the arguments have invalid types: (!{kind}!)"
    return TypeError(
        "fill_() received an invalid combination of arguments - got "
        f"({kind}), but expected one of:\n * (Tensor value)\n{note}\n"
        f" * (Number value)\n{note}\n"
    )


@public(method=True, name="zero_")
def zero_(input: Tensor) -> Tensor:
    """Sets all elements to zero."""
    if _fresh(input):
        return fill_(input, 0)
    return fns.zero_(input)


# `out=` and other memory --------------------------------------------------------------

RESIZED = (
    "An output with one or more elements was resized since it had shape {0}, which does "
    "not match the required output shape {1}. This behavior is deprecated, and in a "
    "future PyTorch release outputs will not be resized unless they have zero elements. "
    "You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements "
    "with t.resize_(0). (Triggered internally at "
    "/__w/pytorch/pytorch/aten/src/ATen/native/Resize.cpp:38.)"
)


def write_into(op: Any, result: Tensor, out: Tensor, args: Any) -> Tensor:
    """Ends a call with `out=`: `out` takes the result over, cast and resized."""
    rec = local.rec
    if rec.grad:
        flat = [a for v in args for a in (v if isinstance(v, tuple) else (v,))]
        for each in (*flat, out):
            if isinstance(each, TensorBase) and each._meta.requires_grad:
                name = op.public if op is not None else "this function"
                raise RuntimeError(
                    f"{name}(): functions with out=... arguments don't support "
                    "automatic differentiation, but one of the arguments requires grad."
                )
    made, have = result._meta, out._meta
    if not castable(made.dtype, have.dtype):
        raise RuntimeError(
            f"result type {made.dtype.scalar_name} can't be cast to the desired output "
            f"type {have.dtype.scalar_name}"
        )
    if made.shape != have.shape:
        if have.shape.numel():
            warn(
                RESIZED.format(list(have.shape), list(made.shape))
            )
        _take_shape(out, tuple(made.shape))
    with _no_grad():
        fns.copy_(out, result)
    return out


_bind.out_writer.append(write_into)


def _alone(self: Tensor) -> bool:
    """Whether no other tensor shares the memory."""
    storage = self._storage
    if storage is None:
        return True
    return storage.shared is None and storage.tensors() == [self] and not self._path


def _take_shape(
    self: Tensor, shape: tuple[int, ...], wanted: Any = contiguous_format
) -> None:
    """Changes a tensor's size; the values it had stay, in the order of the memory."""
    meta = self._meta
    if not _alone(self):
        raise NotImplementedError(
            "resize_(): tensors that share their memory with others can't be resized"
        )
    size = 1
    for length in shape:
        size *= length
    flat = np.zeros(size, dtypes.array_dtype(meta.dtype))
    if meta.shape.numel() and size:
        host = self._host()
        order = sorted(range(host.ndim), key=lambda d: -meta.strides[d])
        before = host.transpose(order).reshape(-1)[:size]
        flat[: before.size] = before
    strides = format_strides(shape, wanted)
    order = sorted(range(len(shape)), key=lambda d: -strides[d])
    ordered = flat.reshape([shape[d] for d in order])
    back = [order.index(d) for d in range(len(shape))]
    array = place(np.ascontiguousarray(ordered.transpose(back)), meta.device)
    _become(self, from_array(array, device=meta.device, strides=strides))
    self._versions += 1


def _become(self: Tensor, other: Tensor) -> None:
    """Gives a tensor the memory of a new one, which nobody else has."""
    _leave(self)
    self._slot = -1
    self._array = other._array
    self._meta = other._meta.replace(
        requires_grad=self._meta.requires_grad, leaf=self._meta.leaf
    )


def _leave(self: Tensor) -> None:
    """Takes a tensor off its storage."""
    storage = self._storage
    if storage is not None:
        self._versions = storage.version
        storage.aliases[:] = [r for r in storage.aliases if r() is not self]
        self._storage = None
        self._path = ()
        self._base = None
        self._view_note = None
    self._raw = -1


@public(namespaces=(), method=True)
def resize_(
    self: Tensor, *sizes: Any, memory_format: Any = contiguous_format
) -> Tensor:
    """Changes the size in place, keeping what is in memory; new elements are zero."""
    shape = size_of("resize_", sizes)
    for length in shape:
        if length < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: "
                f"{list(shape)}"
            )
    meta = self._meta
    if meta.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if shape != tuple(meta.shape):
        _take_shape(self, shape, memory_format)
    return self


@public(namespaces=(), method=True)
def resize_as_(
    self: Tensor, other: Tensor, *, memory_format: Any = contiguous_format
) -> Tensor:
    """Changes the size in place to `other`'s."""
    return resize_(self, tuple(other._meta.shape), memory_format=memory_format)


def alias_of(self: Tensor, cls: Any = Tensor) -> Any:
    """A tensor on the same memory, without history; nothing is recorded."""
    made = _new(cls)
    made._slot = -1
    made._array = None
    made._meta = self._meta.replace(requires_grad=False, leaf=True)
    local.rec.link(made, self, _DETACH, ())
    return made


def _data(self: Tensor) -> Tensor:
    """The same memory without history; its changes are not counted."""
    made = alias_of(self)
    made._own_version = 0
    return made


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {kind_of(value)}")
    meta, its = self._meta, value._meta
    if meta.requires_grad and not (its.dtype.is_floating_point or its.dtype.is_complex):
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or "
            "complex dtype"
        )
    if meta.device.type != its.device.type and meta.requires_grad and not meta.leaf:
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and "
            "`tensor` have incompatible tensor type."
        )
    _onto(self, value)


def _onto(self: Tensor, value: TensorBase) -> None:
    """Puts a tensor on the memory of another; its autograd role stays."""
    if self is value:
        return
    rec, meta = local.rec, self._meta
    if meta.requires_grad and not meta.leaf and self._slot >= 0:
        self._hist = rec.recording, self._slot
    versions = self._version
    _leave(self)
    self._slot = -1
    self._array = None
    self._meta = value._meta.replace(requires_grad=meta.requires_grad, leaf=meta.leaf)
    rec.link(self, value, _DETACH, ())
    self._versions = versions


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
    from torchshim._functions.storage import TypedStorage, UntypedStorage

    if isinstance(source, (TypedStorage, UntypedStorage)):
        source = source._as_tensor(self._meta.dtype)
    if source is None:
        array = np.zeros(0, dtypes.array_dtype(self._meta.dtype))
        _become(self, from_array(array, device=self._meta.device))
        return self
    if not isinstance(source, TensorBase):
        raise TypeError(wrong("set_", "source", 1, "Tensor", source))
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
    _onto(self, source)
    return self


# Subclasses ---------------------------------------------------------------------------


def _make_subclass(
    cls: Any, data: Any, require_grad: bool = False, **options: Any
) -> Any:
    """A tensor of class `cls` on the memory of `data`, a leaf."""
    if not isinstance(data, TensorBase):
        raise TypeError(wrong("_make_subclass", "data", 2, "Tensor", data))
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
        made._meta = made._meta.replace(requires_grad=True)
    return made


Tensor._make_subclass = staticmethod(_make_subclass)  # type: ignore[attr-defined]


@public(namespaces=(), method=True)
def as_subclass(self: Tensor, cls: Any) -> Any:
    """The tensor as an instance of a subclass of Tensor, on the same memory."""
    if not isinstance(cls, builtin_type) or not issubclass(cls, Tensor):
        raise TypeError("cls must be a type (got {})".format(kind_of(cls)))
    if self._meta.requires_grad:
        made = fns.alias(self)
        made.__class__ = cls
        return made
    return alias_of(self, cls)


@public(namespaces=(), method=True)
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Page-locked memory: needless here, an error without an accelerator."""
    if current_accelerator() is None:
        raise RuntimeError(
            "Cannot access accelerator device when none is available."
        )
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
