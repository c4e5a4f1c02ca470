"""Tensors from data: `tensor`, `as_tensor`, `from_numpy`, `frombuffer`, …

https://docs.pytorch.org/docs/2.13/torch.html#creation-ops
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from torchshim._core import dtypes
from torchshim._core.meta import elementwise_strides, meta_of
from torchshim._core.shared import Shared
from torchshim._core.storage import Storage, TensorBase
from torchshim._derived import BY_MODES, NEVER, public
from torchshim._functions._arguments import (
    check_gradient,
    check_options,
    device_of,
    dtype_of,
    missing,
    number_of,
    warn,
    warn_once,
    wrong,
)
from torchshim._functions._values import cast_host, fitting, values_of
from torchshim._functions.creation import place
from torchshim._overrides import handler_of
from torchshim._tensor import Tensor, from_array

_new = object.__new__

NEGATIVE_STRIDE = (
    "At least one stride in the given numpy array is negative, and tensors with "
    "negative strides are not currently supported. (You can probably work around this "
    "by making a copy of your array  with array.copy().) "
)
NOT_WRITABLE = (
    "The given NumPy array is not writable, and PyTorch does not support non-writable "
    "tensors. This means writing to this tensor will result in undefined behavior. You "
    "may want to copy the array to protect its data or make it writable before "
    "converting it to a tensor. This type of warning will be suppressed for the rest "
    "of this program. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_numpy.cpp:213.)"
)
NOT_WRITABLE_BUFFER = (
    "The given buffer is not writable, and PyTorch does not support non-writable "
    "tensors. This means you can write to the underlying (supposedly non-writable) "
    "buffer using the tensor. You may want to copy the buffer to protect its data or "
    "make it writable before converting it to a tensor. This type of warning will be "
    "suppressed for the rest of this program. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:1556.)"
)


def _check_numpy(array: np.ndarray) -> dtypes.dtype:
    """The dtype of a numpy array that can become a tensor."""
    dtype = dtypes.from_numpy_dtype(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError(NEGATIVE_STRIDE)
    return dtype


def _by_dlpack(data: Any) -> Tensor | None:
    """A tensor on the memory of what speaks DLPack, be it a sequence as well."""
    handler_of(type(data))  # refuses tensors of PyTorch's
    if not hasattr(data, "__dlpack__") or isinstance(data, jax.Array):
        return None
    from torchshim._functions.interop import from_dlpack

    return from_dlpack(data)


def tensor_from(
    data: Any,
    dtype: dtypes.dtype | None,
    device: Any,
    requires_grad: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`; dtype and device are checked already.

    Of a storage it is a tensor on its memory.
    """
    if hasattr(type(data), "_as_elements"):  # storages have it
        made = data._as_elements(dtype).to(device=device)
        return made.requires_grad_() if requires_grad else made
    ours = isinstance(data, jax.Array)
    if ours:
        data = np.asarray(data)
        if dtype is None and data.dtype.name not in dtypes._NUMPY_NAMES:
            dtype = dtypes.from_array_dtype(data.dtype)
    if isinstance(data, (np.ndarray, np.generic)):
        data = np.asarray(data)
        own = dtype if ours and dtype else _check_numpy(data)
        dtype = own if dtype is None else dtype
        # Strides need not be of whole elements: their order counts.
        order = data.shape, data.strides
        strides = None
        if not data.flags.c_contiguous:
            strides = elementwise_strides(data.shape, [order])
        array = cast_host(data, dtypes.array_dtype(dtype))
        if array is data or array.base is not None:
            array = array.copy()
    else:
        shared = _by_dlpack(data)
        if shared is not None:
            return copied(shared, dtype, device, requires_grad)
        array, dtype = values_of(data, dtype)
        strides = None
    check_gradient(dtype, requires_grad)
    array = np.ascontiguousarray(array).reshape(array.shape)
    made = place(array, device)
    return from_array(made, requires_grad, device=device, strides=strides)


@public(overridden=BY_MODES)
def tensor(
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named: Any,
) -> Tensor:
    """A new leaf with a copy of `data`: numbers, nested sequences, arrays.

    Raises ValueError where the sequences are ragged, RuntimeError for what is no
    number or does not fit the dtype.

    >>> import torchshim as torch
    >>> torch.tensor([[1, 2.5], [3, 4]])
    tensor([[1.0000, 2.5000],
            [3.0000, 4.0000]])
    """
    if "data" in named:
        args = (*args, named.pop("data"))
    for name in named:
        raise TypeError(f"tensor() got an unexpected keyword argument '{name}'")
    if not args:
        raise missing("tensor", "data")
    data, *more = args
    if more:
        raise TypeError(
            f"tensor() takes 1 positional argument but {len(args)} were given"
        )
    dtype = dtype_of("tensor", dtype)
    check_options("tensor", None, pin_memory, requires_grad, none_is_false=False)
    if isinstance(data, TensorBase):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor).",
        )
        return copied(data, dtype, device, requires_grad)
    return tensor_from(data, dtype, device_of("tensor", device), bool(requires_grad))


def copied(data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A new leaf with the values of a tensor."""
    dtype = dtype or data._tmeta.dtype
    check_gradient(dtype, requires_grad)
    made = data.detach().to(device=device, dtype=dtype, copy=True)
    return made.requires_grad_() if requires_grad else made


@public
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A number as a 0-dim tensor, of the default dtype unless given.

    >>> import torchshim as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    value = number_of("scalar_tensor", "s", 1, s)
    check_options("scalar_tensor", layout, pin_memory, requires_grad)
    dtype = dtype_of("scalar_tensor", dtype) or dtypes.get_default_dtype()
    where = device_of("scalar_tensor", device)
    value = fitting(value, dtype, wide=True)
    return tensor_from(value, dtype, where, bool(requires_grad))


# Shared memory ------------------------------------------------------------------------


def sharing(
    array: np.ndarray, cls: type = Tensor, *, dtype: Any = None, lazy: bool = False
) -> Tensor:
    """A tensor on the memory of a numpy array, which is read now or when `lazy`."""
    if dtype is None:
        dtype = _check_numpy(array)
    size = array.itemsize
    if any(s % size for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy "
            "the numpy array to reallocate the memory."
        )
    made = _new(cls)
    made._slot = -1
    made._array = None
    strides = tuple(s // size for s in array.strides)
    made._tmeta = meta_of(array.shape, dtype, _cpu(), strides)
    storage = Storage(made)
    made._storage = storage
    storage.shared = Shared(array)
    if not lazy:
        storage.shared.refresh(storage)
    return made


def _cpu() -> Any:
    return device_of("from_numpy", "cpu")


@public(overridden=NEVER)
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a numpy array: writes on either side are seen.

    >>> import numpy as np
    >>> import torchshim as torch
    >>> a = np.zeros(2, np.float32)
    >>> t = torch.from_numpy(a)
    >>> a[0] = 1
    >>> t
    tensor([1., 0.])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {dtypes.type_name(type(ndarray))})")
    _check_numpy(ndarray)
    if not ndarray.flags.writeable:
        warn_once(NOT_WRITABLE)
    return sharing(ndarray)


@public(overridden=NEVER)
def frombuffer(
    buffer: Any,
    *,
    dtype: Any = None,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """A 1-dim tensor on the memory of an object with Python's buffer protocol.

    >>> import torchshim as torch
    >>> torch.frombuffer(bytearray([1, 2]), dtype=torch.uint8)
    tensor([1, 2], dtype=torch.uint8)
    """
    dtype = dtype_of("frombuffer", dtype)
    check_options("frombuffer", None, False, requires_grad, none_is_false=False)
    if dtype is None:
        raise missing("frombuffer", "dtype")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    total, size = view.nbytes, dtype.itemsize
    if not total or not count:
        raise ValueError(
            f"both buffer length ({total}) and count ({count}) must not be 0"
        )
    if not 0 <= offset < total:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer "
            f"length ({total} bytes) minus 1"
        )
    if count > 0 and offset + count * size > total:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} "
            "bytes) must not be greater than actual buffer length "
            f"({total} bytes)"
        )
    if count < 0 and (total - offset) % size:
        raise ValueError(
            f"buffer length ({total - offset} bytes) after offset ({offset} bytes) "
            f"must be a multiple of element size ({size})"
        )
    check_gradient(dtype, requires_grad)
    kind = dtypes.array_dtype(dtype)
    array = np.frombuffer(buffer, kind, count, offset)
    if view.readonly:
        warn_once(NOT_WRITABLE_BUFFER)
    if dtype.name in dtypes._NUMPY_NAMES:
        made = sharing(array)
    else:
        made = from_array(array.copy(), device=_cpu())
    return made.requires_grad_() if requires_grad else made


@public(overridden=BY_MODES)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """`data` as a tensor, without a copy where that is possible.

    Tensors come back as they are, numpy arrays share their memory.

    >>> import torchshim as torch
    >>> t = torch.ones(2)
    >>> torch.as_tensor(t) is t
    True
    """
    dtype = dtype_of("as_tensor", dtype)
    if isinstance(data, TensorBase):
        return data.to(device=device, dtype=dtype)  # type: ignore[attr-defined]
    if isinstance(data, np.ndarray):
        if not data.flags.writeable:
            warn_once(NOT_WRITABLE)
        where, made = device_of("as_tensor", device), sharing(data)
        if dtype is None and where.type == "cpu":
            return made
        return made.to(device=where, dtype=dtype)
    where, shared = device_of("as_tensor", device), _by_dlpack(data)
    if shared is not None:
        return shared.to(device=where, dtype=dtype)
    return tensor_from(data, dtype, where)


_KEEPS_REQUIRES_GRAD = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad "
    "instead of False. Pass requires_grad=False explicitly to get the old behavior and "
    "silence this warning. (Triggered internally at "
    "/__w/pytorch/pytorch/torch/csrc/utils/tensor_new.cpp:1737.)"
)


def _sharing_any(obj: Any, dtype: dtypes.dtype | None, copy: bool | None) -> Any:
    """A tensor on the memory of `obj`; None if it has none that can be shared."""
    if isinstance(obj, TensorBase):
        return obj
    if isinstance(obj, np.ndarray):
        if not obj.flags.writeable and not copy:
            warn_once(NOT_WRITABLE)
        # One without dimensions is copied as a scalar is.
        return sharing(obj if obj.ndim else obj.copy())
    capsule = type(obj).__name__ == "PyCapsule" and '"dltensor' in repr(obj)
    if capsule or hasattr(obj, "__dlpack__"):
        from torchshim._functions.interop import from_dlpack

        return from_dlpack(obj)
    if isinstance(obj, (list, tuple, int, float, complex, np.generic)):
        return None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or dtypes.get_default_dtype())


def _check_same(own: Any, dtype: dtypes.dtype | None, where: Any) -> None:
    """`copy=False`: refuses another device or dtype than that of what is shared."""
    if where is not None and where is not own.device:
        raise ValueError(f"can't alias tensor from device '{own.device}' to '{where}'.")
    if dtype is not None and dtype is not own.dtype:
        raise ValueError(
            f"can't alias tensor with dtype '{own.dtype.scalar_name}' into dtype "
            f"'{dtype.scalar_name}'."
        )


@public(overridden=BY_MODES)
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor: tensors, arrays and buffers are shared unless `copy=True`.

    With `copy=False`, ValueError where sharing is not possible.

    >>> import torchshim as torch
    >>> torch.asarray([1, 2], dtype=torch.float32)
    tensor([1., 2.])
    """
    for name, value in (("copy", copy), ("requires_grad", requires_grad)):
        if not (value is None or value.__class__ is bool):
            raise TypeError(wrong("asarray", name, 0, "bool", value))
    dtype = dtype_of("asarray", dtype)
    where = None if device is None else device_of("asarray", device)
    made = _sharing_any(obj, dtype, copy)
    if made is None:
        if copy is False and isinstance(obj, np.generic):
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it "
                "in a ndarray. "
            )
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = tensor_from(obj, dtype, where or device_of("asarray", None))
    else:
        if made is obj and requires_grad is None and obj._tmeta.requires_grad:
            warn_once(_KEEPS_REQUIRES_GRAD)
        if copy is False:
            _check_same(made._tmeta, dtype, where)
        if copy:
            made = made.clone()
        made = made.to(device=where, dtype=dtype)
    if requires_grad is None or (requires_grad and not made.is_leaf):
        return made
    if made.is_leaf:
        check_gradient(made._tmeta.dtype, bool(requires_grad))
        if bool(requires_grad) != made.requires_grad:
            if made is obj and not requires_grad:
                return made.detach()
            made.requires_grad_(bool(requires_grad))
        return made
    return made.detach()


@public(namespaces=(), method=True)
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`, of this tensor's dtype and on its device.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.new_tensor.html

    >>> import torchshim as torch
    >>> torch.ones(1, dtype=torch.float16).new_tensor([1, 2])
    tensor([1., 2.], dtype=torch.float16)
    """
    check_options("new_tensor", layout, pin_memory, requires_grad)
    dtype = dtype_of("new_tensor", dtype) or self._tmeta.dtype
    where = self._tmeta.device if device is None else device_of("new_tensor", device)
    if isinstance(data, TensorBase):
        warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor).",
        )
        return copied(data, dtype, where, requires_grad)
    return tensor_from(data, dtype, where, bool(requires_grad))
