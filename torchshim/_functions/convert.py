"""Tensors as other tensors: `to` and its like, `clone`, `copy_`, `.data`, `set_`.

https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from torchshim._core import dtypes, replay
from torchshim._core.device import as_device, device, resolve
from torchshim._core.dtypes import as_dtype
from torchshim._core.layout import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    format_strides,
    has_format,
    preserve_format,
)
from torchshim._core.layout import memory_format as MemoryFormat
from torchshim._core.meta import elementwise_strides
from torchshim._core.no_data import NoData
from torchshim._core.op import REGISTRY
from torchshim._core.promotion import cast, note_lost_part
from torchshim._core.record import local
from torchshim._core.shared import frozen, seen
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    is_number,
    kind_of,
    number_of,
    only_bools,
    unfit,
    wrong,
)
from torchshim._functions._family import described
from torchshim._functions._values import cast_host, fitting
from torchshim._functions.ahead import sent_ahead
from torchshim._functions.creation import place
from torchshim._functions.legacy import TENSOR_TYPES, tensortype
from torchshim._functions.random_fill import overwrite
from torchshim._ops import creation as ops
from torchshim._ops._formats import suggested_format
from torchshim._tensor import Tensor, from_array, host_value

# What `autograd` provides: a tensor of "meta" as the copy of one with a history.
with_history: list[Callable[[Tensor], Tensor]] = []


def settled(tensor: TensorBase) -> Any:
    """The array of a tensor if it is at hand without running or recording anything.

    None within a recording, for pending values and where autograd has to be told.
    """
    rec, meta = local.rec, tensor._tmeta
    if rec.state is not rec.root or (meta.requires_grad and rec.grad):
        return None
    storage = tensor._storage
    if storage is None:
        return tensor._array
    if storage.shared is not None:
        return np.array(seen(tensor, storage.shared.window(tensor)), order="C")
    if tensor._path or storage.slot >= 0:
        return None
    return storage.array


def moved(tensor: TensorBase, where: device) -> Tensor:
    """A copy of a tensor on another device, with its history and its tangents."""
    rec, meta = local.rec, tensor._tmeta
    tangents: dict[int, Any] = {}
    if rec.recording.duals or tensor._tangents:
        found = rec.recording.duals.get(rec.slot_of(tensor), {})
        tangents = {level: moved(tangent, where) for level, tangent in found.items()}
    tracked = meta.requires_grad and rec.grad
    if where.type == "meta":
        kind = dtypes.array_dtype(meta.dtype)
        result = _on(tensor, where, NoData(tuple(meta.shape), kind))
        if tracked:
            result = with_history[0](result)
    elif meta.device.type != "meta" and (tracked or meta.batch):
        # Its event is the last of the recording that it is made in.
        result = fns.to_device(tensor, where)
        rec.flush()
        result._array = place(np.array(rec.host(result._array), order="C"), where)
    else:
        array = sent_ahead(tensor, where)
        if array is None:
            array = place(np.array(host_value(tensor), order="C"), where)
        result = _on(tensor, where, array)
    if tangents:
        rec.bring_tangents(result, tangents)
    return result


def _on(tensor: TensorBase, where: device, array: Any) -> Tensor:
    meta = tensor._tmeta
    strides = elementwise_strides(
        tuple(meta.shape), [(tuple(meta.shape), meta.strides)]
    )
    return from_array(array, device=where, strides=strides)


replay.moved.append(moved)


def converted(
    self: Tensor,
    where: device | None,
    dtype: dtypes.dtype | None,
    copy: bool,
    wanted: Any,
) -> Tensor:
    """`self` with this device, dtype and memory format; itself if it has them."""
    meta = self._tmeta
    if where is not None and where is not meta.device:
        where = resolve(where)
    dtype = meta.dtype if dtype is None else dtype
    reordered = wanted not in (None, preserve_format) and wanted is not (
        suggested_format(meta.shape, meta.strides)
    )
    if where is not None and where != meta.device:
        tensor = converted(self, None, dtype, False, None)
        return converted(moved(tensor, where), None, None, False, wanted)
    if dtype is meta.dtype:
        if not copy and not reordered:
            return self
        return copied(self, "to_copy", (dtype,), wanted)
    dtypes.array_dtype(dtype)
    note_lost_part(meta.dtype, dtype)
    return copied(self, "to_copy", (dtype,), wanted)


def copied(self: Tensor, name: str, args: tuple[Any, ...], wanted: Any) -> Tensor:
    """A recorded copy in a memory format; made at once where that costs nothing."""
    meta = self._tmeta
    shape = tuple(meta.shape)
    if wanted is None:
        wanted = preserve_format
    if wanted is not preserve_format and wanted is not contiguous_format:
        format_strides(shape, wanted)  # checks the rank
    array = settled(self)
    if array is not None:
        return _copied_now(self, array, args, wanted)
    if wanted is preserve_format:
        return getattr(fns, name)(self, *args)
    form = "channels_last" if wanted is not contiguous_format else "contiguous"
    return getattr(fns, f"{name}_{form}")(self, *args)


def _copied_now(self: Tensor, array: Any, args: tuple[Any, ...], wanted: Any) -> Tensor:
    meta = self._tmeta
    shape = tuple(meta.shape)
    if args:
        kind = dtypes.array_dtype(args[0])
        if meta.device.type == "meta":
            array = NoData(shape, kind)
        elif meta.device.type == "cpu":
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
            where, dtype = first._tmeta.device, first._tmeta.dtype
            del rest[0]
        elif (found := as_dtype(first)) is not None:
            dtype = found
            del rest[0]
        elif isinstance(first, kinds := (bool, float, complex)):
            # That of its class, whatever the default one is.
            dtype = as_dtype(next(k for k in kinds if isinstance(first, k)))
            del rest[0]
        elif first is None or _is_device(first):
            where = None if first is None else as_device(first)
            del rest[0]
            if rest and (rest[0] is None or as_dtype(rest[0]) is not None):
                dtype = None if rest[0] is None else as_dtype(rest[0])
                del rest[0]
        else:
            raise unfit("to")
    other = given.pop("other", given.pop("tensor", None))
    if isinstance(other, TensorBase):
        where, dtype = other._tmeta.device, other._tmeta.dtype
    if "device" in given:
        value = given.pop("device")
        where = None if value is None else as_device(value)
        if value is not None and where is None:
            raise unfit("to")
    if "dtype" in given:
        value = given.pop("dtype")
        dtype = None if value is None else as_dtype(value)
        if value is not None and dtype is None:
            raise unfit("to")
    flags = dict(zip(("non_blocking", "copy"), rest, strict=False))
    wanted = given.pop("memory_format", None)
    for name in ("non_blocking", "copy"):
        if name in given:
            flags[name] = given.pop(name)
    wrong_flag = any(not isinstance(v, (bool, np.bool_)) for v in flags.values())
    if given or len(rest) > 2 or wrong_flag:
        raise unfit("to")
    return converted(self, where, dtype, bool(flags.get("copy")), wanted)


def _is_device(value: Any) -> bool:
    if isinstance(value, (str, device)):
        return True
    return isinstance(value, int) and not isinstance(value, bool)


def _check_format(value: Any) -> None:
    if value.__class__ is not MemoryFormat:
        raise TypeError(f"memory_format must be torch.memory_format, not {value!r}")


def _cast_method(name: str, target: dtypes.dtype) -> None:
    def method(self: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
        """Floats are cut to integers towards 0.

        >>> import torchshim as torch
        >>> x = torch.tensor([1.9, -1.9])
        >>> x.int(), x.half().dtype, x.float() is x
        (tensor([ 1, -1], dtype=torch.int32), torch.float16, True)
        """
        if memory_format is not preserve_format and memory_format is not None:
            _check_format(memory_format)
        return converted(self, None, target, False, memory_format)

    line = f"The tensor as {target}; itself if it is that already."
    described(method, name, line, f"torch.Tensor.{name}")
    public(namespaces=(), method=True)(method)


#: Methods that give the tensor as another dtype.
CAST_METHODS = {"char": dtypes.int8, "byte": dtypes.uint8} | {
    name: dtypes.NAMES[name]
    for name in (
        *("float", "double", "half", "bfloat16", "int", "long", "short", "bool"),
        *("cfloat", "cdouble", "chalf"),
    )
}
for _name, _dtype in CAST_METHODS.items():
    _cast_method(_name, _dtype)


@public(namespaces=(), method=True)
def cpu(self: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """The tensor on the CPU; itself if it is there.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.cpu.html

    >>> import torchshim as torch
    >>> x = torch.ones(2)
    >>> x.cpu() is x
    True
    """
    return converted(self, device("cpu"), None, False, memory_format)


def _device_method(kind: str, shown: str) -> None:
    def method(
        self: Tensor,
        device: Any = None,
        non_blocking: bool = False,
        memory_format: Any = preserve_format,
    ) -> Tensor:
        """`device` is one of that type, or its number. An error if there is none.

        >>> import torchshim as torch
        >>> torch.ones(2).xpu("cpu")
        Traceback (most recent call last):
            ...
        RuntimeError: Invalid device, must be xpu device
        """
        where = as_device(kind if device is None else device)
        if where is None or where.type != kind:
            raise RuntimeError(f"Invalid device, must be {shown} device")
        return converted(self, where, None, False, memory_format)

    line = f"The tensor on a device of type {kind}; itself if it is there."
    described(method, kind, line)
    public(namespaces=(), method=True)(method)


for _kind, _shown in (
    ("cuda", "cuda"),
    ("xpu", "xpu"),
    ("ipu", "ipu"),
    ("mtia", "MTIA"),
):
    _device_method(_kind, _shown)


_HEAP_TYPE = 1 << 9


@public(namespaces=(), method=True)
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type; with `dtype` the tensor of that type.

    `dtype` may also be a legacy type (`torch.DoubleTensor`) or its name; ValueError for
    other names.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.type.html

    >>> import torchshim as torch
    >>> x = torch.ones(2)
    >>> x.type(), x.type(torch.int8).dtype, x.type("torch.DoubleTensor").dtype
    ('torch.FloatTensor', torch.int8, torch.float64)
    """
    only_bools(non_blocking)
    if dtype is None:
        meta = self._tmeta
        place_of = "" if meta.device.type == "cpu" else f"{meta.device.type}."
        return f"torch.{place_of}{meta.dtype.scalar_name}Tensor"
    if isinstance(dtype, dtypes.dtype):
        return converted(self, None, dtype, False, None)
    if dtype is Tensor or dtype == "torch.Tensor":
        return converted(self, device("cpu"), dtypes.get_default_dtype(), False, None)
    if isinstance(dtype, tensortype):
        found, where = dtype, "cuda" if dtype.is_cuda else "cpu"
    elif isinstance(dtype, str):
        package, _, name = dtype.rpartition(".")
        found = TENSOR_TYPES.get(name)
        if found is None or package not in ("torch", "torch.cuda", "torch.sparse"):
            raise ValueError(f"invalid type: '{dtype}'")
        where = "cuda" if package == "torch.cuda" else "cpu"
    elif isinstance(dtype, builtins.type):
        # What C calls a type: those written in Python have no module in their name.
        module = "" if dtype.__flags__ & _HEAP_TYPE else f"{dtype.__module__}."
        name = f"{module.removeprefix('builtins.')}{dtype.__name__}"
        raise ValueError(f"invalid type: '{name}'")
    else:
        raise TypeError("dtype must be a type, str, or dtype object")
    return converted(self, device(where), found.dtype, False, None)


@public(namespaces=(), method=True)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with `other`'s dtype, on its device.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.type_as.html

    >>> import torchshim as torch
    >>> torch.tensor([1.5]).type_as(torch.tensor(1))
    tensor([1])
    """
    if not isinstance(other, TensorBase):
        raise TypeError(wrong("type_as", "other", 1, "Tensor", other))
    return converted(self, other._tmeta.device, other._tmeta.dtype, False, None)


@public(method=True)
def clone(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """A copy that autograd follows.

    >>> import torchshim as torch
    >>> torch.ones(2).clone()
    tensor([1., 1.])
    """
    if not isinstance(input, TensorBase):
        raise TypeError(wrong("clone", "input", 1, "Tensor", input))
    if input._tmeta.batch and memory_format in (channels_last, channels_last_3d):
        name = {channels_last: "ChannelsLast"}.get(memory_format, "ChannelsLast3d")
        raise RuntimeError(
            "NYI: Tensor.clone(memory_format) inside vmap is only supported with "
            "memory_format torch.preserve_format or torch.contiguous_format (got "
            f"{name})"
        )
    return copied(input, "clone", (), memory_format)


@public(namespaces=(), method=True)
def contiguous(self: Tensor, *, memory_format: Any = contiguous_format) -> Tensor:
    """The tensor with its elements in the order of the format; itself if they are.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.contiguous.html

    >>> import torchshim as torch
    >>> x = torch.zeros(2, 3)
    >>> x.contiguous() is x, x.t().contiguous().stride()
    (True, (2, 1))
    """
    meta = self._tmeta
    if memory_format is contiguous_format:
        return self if meta.contiguous else copied(self, "clone", (), memory_format)
    _check_format(memory_format)
    if meta.batch:
        self.is_contiguous(memory_format=memory_format)  # refused
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
    meta = self._tmeta
    return not meta.inference and (meta.requires_grad or not self._version)


@public(namespaces=(), method=True)
def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Takes over the values of `other`, broadcast and cast.

    RuntimeError where the shapes do not broadcast.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.copy_.html

    >>> import torchshim as torch
    >>> x = torch.zeros(2, 2, dtype=torch.int64)
    >>> x.copy_(torch.tensor([1.7, -1.7]))
    tensor([[ 1, -1],
            [ 1, -1]])
    """
    if not isinstance(other, TensorBase) and not is_number(other):
        raise TypeError(wrong("copy_", "other", 1, "Tensor", other))
    if isinstance(other, int) and 2**63 <= other < 2**64:
        if self._tmeta.dtype.category > dtypes.INTEGER:
            other = float(other)  # no int64 holds it
    if isinstance(other, TensorBase) and other._tmeta.dtype is not self._tmeta.dtype:
        note_lost_part(other._tmeta.dtype, self._tmeta.dtype)
    elif isinstance(other, complex):
        note_lost_part(dtypes.complex128, self._tmeta.dtype)
    if isinstance(other, TensorBase) and other is not self and _fresh(self):
        on_one = other._storage is not None and other._storage is self._storage
        mine, its = self._tmeta, other._tmeta
        array = None if on_one else settled(other)
        if array is not None and its.shape == mine.shape and its.device is mine.device:
            local.rec.check_writable(self)
            if its.dtype is not mine.dtype:
                array = _cast_array(array, mine)
            if array is not None and overwrite(self, array):
                return self
    if isinstance(other, TensorBase) and other._tmeta.device != self._tmeta.device:
        if other._tmeta.shape or other._tmeta.device.type != "cpu":
            other = moved(other, self._tmeta.device)
    return fns.copy_(self, other, non_blocking)


def _cast_array(array: Any, meta: Any) -> Any:
    if meta.device.type != "cpu":
        return None
    return frozen(cast_host(np.asarray(array), dtypes.array_dtype(meta.dtype)))


_FILL = REGISTRY["_fill"]


@public(method=True, name="fill_")
def fill_(input: Tensor, value: Any) -> Tensor:
    """Sets all elements to a number or the value of a 0-dim tensor.

    RuntimeError for a number that the dtype cannot hold.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.fill_.html

    >>> import torchshim as torch
    >>> torch.empty(3).fill_(0.5)
    tensor([0.5000, 0.5000, 0.5000])
    """
    if isinstance(value, TensorBase):
        return fns._fill_(input, value)
    if not isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        raise _fill_mismatch(value)
    if isinstance(value, (np.number, np.bool_)):
        value = number_of("fill_", "value", 1, value)
    meta = input._tmeta
    value = fitting(value, meta.dtype, wide=all(n == 1 for n in meta.shape))
    if value.__class__ is int and meta.dtype.category > dtypes.INTEGER:
        value = float(value)
    if _fresh(input):
        local.rec.check_writable(input, _FILL)
        kind = dtypes.array_dtype(meta.dtype)
        array = np.full(tuple(meta.shape), ops.constant(value, kind))
        if overwrite(input, place(array, meta.device)):
            return input
    return fns._fill_(input, value)


def _fill_mismatch(value: Any) -> TypeError:
    kind = kind_of(value)
    note = (
        "      didn't match because some of the arguments have invalid types: "
        f"(!{kind}!)"
    )
    return TypeError(
        "fill_() received an invalid combination of arguments - got "
        f"({kind}), but expected one of:\n * (Tensor value)\n{note}\n"
        f" * (Number value)\n{note}\n"
    )


@public(method=True, name="zero_")
def zero_(input: Tensor) -> Tensor:
    """Sets all elements to zero.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.zero_.html

    >>> import torchshim as torch
    >>> x = torch.ones(3)
    >>> x[1:].zero_()
    tensor([0., 0.])
    >>> x
    tensor([1., 0., 0.])
    """
    tracked = local.rec.grad and input._tmeta.requires_grad
    return fns.zero_(input) if tracked or not _fresh(input) else fill_(input, 0)
