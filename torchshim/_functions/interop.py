"""Tensors for others: NumPy, DLPack, `copy.deepcopy`.

https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

import copy
from enum import IntEnum
from typing import Any

import jax
import numpy as np

from torchshim import _bind
from torchshim._core import dtypes
from torchshim._core.device import device
from torchshim._core.layout import strided
from torchshim._core.no_data import NoData
from torchshim._core.record import local, untracked
from torchshim._core.storage import Storage, bits_of, has_bit
from torchshim._derived import NEVER, fns, public
from torchshim._functions.construct import sharing
from torchshim._functions.creation import place
from torchshim._functions.host_memory import shared_memory
from torchshim._functions.rebuilding import in_slots
from torchshim._functions.storage import UntypedStorage
from torchshim._functions.typed_storage import TypedStorage, announced
from torchshim._overrides import handler_of
from torchshim._tensor import Tensor, check_storage, from_array

_new = object.__new__

NOT_WITH_GRAD = (
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
    "instead."
)
NOT_A_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
    "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
    "because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


@public(namespaces=(), method=True)
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The values as a NumPy array that shares the tensor's memory.

    `force=True` takes what does not share: tensors that require grad, other devices.

    >>> import torchshim as torch
    >>> t = torch.zeros(2)
    >>> t.numpy()[0] = 1
    >>> t
    tensor([1., 0.])
    """
    meta = self._tmeta
    if not force:
        if meta.device.type != "cpu":
            raise TypeError(
                f"can't convert {meta.device} device type tensor to numpy. Use "
                "Tensor.cpu() to copy the tensor to host memory first."
            )
        if meta.requires_grad and local.rec.grad:
            raise RuntimeError(NOT_WITH_GRAD)
        for bit in bits_of(self):
            named = "conjugate" if bit == "conj" else "negative"
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {named} bit set. Use "
                f"tensor.resolve_{bit}().numpy() instead."
            )
    dtypes.as_numpy(meta.dtype)
    if meta.device.type != "cpu" or meta.batch or bits_of(self):
        return np.array(self._host())
    return shared_memory(self)


def _array(self: Tensor, dtype: Any = None) -> np.ndarray:
    found = numpy(self)
    return found if dtype is None else found.astype(dtype, copy=False)


def _array_wrap(self: Tensor, array: np.ndarray) -> Tensor:
    if array.dtype == bool:
        # As PyTorch has it: NumPy's comparisons come back as numbers.
        array = array.astype(np.uint8)
    return sharing(np.asarray(array))


def _equals_array(self: Tensor, other: Any) -> Any:
    """`self == other` for arrays, which of all comparisons alone takes them."""
    if not isinstance(other, np.ndarray):
        return NotImplemented
    return fns.eq(self, sharing(other))


_bind.equals_array.append(_equals_array)

# NumPy tells by the name that there is no `copy` argument, as with PyTorch's.
_array.__qualname__ = "Tensor.__array__"
Tensor.__array__ = _array
Tensor.__array_wrap__ = _array_wrap
Tensor.__array_priority__ = 1000


def _cuda_array_interface(self: Tensor) -> Any:
    """Refused: memory of a GPU is handed on by DLPack only."""
    raise AttributeError(
        "Can't get __cuda_array_interface__ on non-CUDA tensor type: "
        f"{self.type()} If CUDA data is required use tensor.cuda() to copy tensor to "
        "device memory."
    )


Tensor.__cuda_array_interface__ = property(_cuda_array_interface)


# DLPack -------------------------------------------------------------------------------


class DLDeviceType(IntEnum):
    """Kinds of devices as the DLPack protocol numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


@public(namespaces=(), method=True)
def __dlpack_device__(self: Tensor) -> tuple[DLDeviceType, int]:
    """The device in DLPack's terms."""
    return dlpack_device(self._tmeta.device)


def dlpack_device(where: device) -> tuple[DLDeviceType, int]:
    """A device in DLPack's terms: its type and index."""
    if where.type == "cpu":
        return DLDeviceType.kDLCPU, 0
    if where.type == "cuda":
        return DLDeviceType.kDLCUDA, where.index or 0
    raise ValueError(f"Unknown device type {where.type} for Dlpack")


def _check_exported(self: Tensor) -> None:
    meta = self._tmeta
    if meta.requires_grad:
        raise BufferError(
            "Can't export tensors that require gradient, use tensor.detach()"
        )
    if has_bit(self, "conj"):
        raise BufferError("Can't export tensors with the conjugate bit set")
    if self.layout is not strided:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if meta.device.type == "meta":
        raise BufferError("Cannot pack tensors on meta")


@public(namespaces=(), method=True)
def __dlpack__(self: Tensor, **options: Any) -> Any:
    """A DLPack capsule on the tensor's memory."""
    meta = self._tmeta
    stream = options.get("stream")
    _check_exported(self)
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None and stream != -1 and meta.device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    given = {k: v for k, v in options.items() if v is not None}
    if meta.device.type == "cpu" and meta.dtype.name in dtypes._NUMPY_NAMES:
        given.pop("stream", None)
        return shared_memory(self).__dlpack__(**given)
    with jax.enable_x64(True):
        array = jax.numpy.asarray(place(np.array(self._host()), meta.device))
    return array.__dlpack__(**given)


@public(overridden=NEVER)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: Any = None) -> Tensor:
    """A tensor on the memory of an object that speaks DLPack.

    >>> import numpy as np
    >>> import torchshim as torch
    >>> torch.from_dlpack(np.ones(2))
    tensor([1., 1.], dtype=torch.float64)
    """
    if device is not None or copy is not None:
        device = _target(ext_tensor, device, copy)
    if isinstance(ext_tensor, Tensor):
        _check_exported(ext_tensor)
        if type(ext_tensor) is not Tensor:
            ext_tensor = ext_tensor.as_subclass(Tensor)
        made = fns.detach(ext_tensor)
    elif _on_cpu(ext_tensor := _speaking(ext_tensor)):
        made = _imported(ext_tensor)
    else:
        array = jax.dlpack.from_dlpack(ext_tensor)
        index = next(iter(array.devices())).id
        made = from_array(array, device=_device(f"cuda:{index}"))
    if copy:
        made = made.clone()
    return made if device is None else made.to(device=device)


def _target(ext_tensor: Any, where: Any, copy: Any) -> Any:
    """The device asked for; refuses what cannot be done without a copy, or at all."""
    if not hasattr(ext_tensor, "__dlpack__"):
        raise AssertionError(
            "device and copy kwargs not supported when ext_tensor is already a DLPack "
            "capsule."
        )
    if where is None:
        return None
    where = _device(where) if isinstance(where, str) else where
    if not isinstance(where, _device):
        raise AssertionError(f"from_dlpack: unsupported device type: {type(where)}")
    if where.type not in ("cpu", "cuda"):
        raise BufferError(f"Cannot pack tensors on {where}")
    # Of no device in particular, PyTorch's index is an unsigned -1.
    index = 255 if where.index is None else where.index
    target = (1, 0) if where.type == "cpu" else (2, index)
    given = ext_tensor.__dlpack_device__()
    if copy is False and given != target:
        raise ValueError(
            f"cannot move DLPack tensor from device {given} to {target} without "
            "copying. Set copy=None or copy=True."
        )
    return where


def _imported(ext_tensor: Any) -> Tensor:
    try:
        array = np.from_dlpack(_Asked(ext_tensor))
        if isinstance(ext_tensor, _Capsule):
            array = np.asarray(_Writeable(array))
    except (BufferError, RuntimeError, TypeError):
        try:
            held = jax.dlpack.from_dlpack(ext_tensor)
        except (AttributeError, BufferError, RuntimeError, TypeError, ValueError):
            array = np.array(ext_tensor)
        else:  # elements that NumPy does not have: a copy
            return from_array(held.copy(), device=_device("cpu"))
    # Memory that its owner takes for constant gets a copy.
    return sharing(array if array.flags.writeable else array.copy())


class _Asked:
    """What speaks DLPack, asked for a version: NumPy names more, without values."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __dlpack__(self, **options: Any) -> Any:
        given = {k: v for k, v in options.items() if v is not None}
        return self._owner.__dlpack__(**given)

    def __dlpack_device__(self) -> Any:
        return self._owner.__dlpack_device__()


class _Capsule:
    """A capsule, which `to_dlpack` gives, as an object that speaks DLPack."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        return DLDeviceType.kDLCPU, 0


class _Writeable:
    """The memory of an array that NumPy takes for constant, as it does any capsule's
    that says nothing of that."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array  # alive as long as what is made of it
        given = array.__array_interface__
        self.__array_interface__ = {**given, "data": (given["data"][0], False)}


def _speaking(value: Any) -> Any:
    if hasattr(value, "__dlpack__"):
        return value
    if '"dltensor' not in repr(value):  # (Some end in `_versioned`.)
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can "
            "be consumed only once, so you might have already constructed a tensor "
            "from it once."
        )
    return _Capsule(value)


def _on_cpu(value: Any) -> bool:
    return int(value.__dlpack_device__()[0]) == DLDeviceType.kDLCPU


_device = device


# Copies -------------------------------------------------------------------------------


def _shallow(self: Tensor) -> Any:
    """`copy.copy`: another tensor on the same memory, a leaf."""
    rec = local.rec
    made = _new(type(self))
    made._slot = -1
    made._array = None
    made._tmeta = self._tmeta.replace(leaf=True)
    rec.join(made, self)
    made._path = self._path
    for name, value in (in_slots(self) | vars(self)).items():
        setattr(made, name, value)
    return made


_NO_COPY = (
    "The default implementation of __deepcopy__() for non-wrapper subclasses only "
    "works for subclass types that implement new_empty() and for which that function "
    "returns another instance of the same subclass. You should either properly "
    "implement new_empty() for your subclass or override __deepcopy__() if it is "
    "intended behavior for new_empty() to return an instance of a different type."
)

_NO_CLONE = (
    "The default implementation of __deepcopy__() for wrapper subclasses only works "
    "for subclass types that implement clone() and for which cloning returns another "
    "instance of the same subclass. You should either properly implement clone() for "
    "your subclass or override __deepcopy__() if it is intended behavior for clone() "
    "to return an instance of a different type."
)


def _deep(self: Tensor, memo: dict[int, Any]) -> Any:
    """`copy.deepcopy`: tensors that share memory share it afterwards as well."""
    if not self.is_leaf:
        raise RuntimeError(NOT_A_LEAF)
    check_storage(self)
    if id(self) in memo:
        return memo[id(self)]
    if handler_of(type(self)) is not None:
        if self.device.type == "meta":  # PyTorch takes it for one that holds another
            made = self.clone()
            if type(made) is not type(self):
                raise RuntimeError(_NO_CLONE)
            return _with_attributes(made, self, memo)
        if type(self.new_empty([])) is not type(self):
            raise RuntimeError(_NO_COPY)
    rec, storage = local.rec, self._storage
    made = _new(type(self))
    made._slot = -1
    made._tmeta = self._tmeta
    if made._tmeta.inference != rec.inference:
        made._tmeta = self._tmeta.replace(inference=rec.inference)
    made._array = None
    if storage is None:
        made._array = _own(rec.array_of(self))
    elif bits_of(self):
        # What it shows, in memory of its own.
        with untracked():
            copied = fns.clone(self)
        made._array = _own(rec.array_of(copied))
        made._tmeta = made._tmeta.replace(strides=copied._tmeta.strides, offset=0)
    else:
        twin = memo.get(id(storage))
        if twin is None:
            twin = memo[id(storage)] = _storage_copy(storage)
        twin.add(made)
        made._path = self._path
        memo.setdefault(id(memo), []).append(storage)
    return _with_attributes(made, self, memo)


def _with_attributes(made: Tensor, source: Tensor, memo: dict[int, Any]) -> Tensor:
    memo[id(source)] = made
    if source.grad is not None:
        made.grad = copy.deepcopy(source.grad, memo)
    for name, value in (in_slots(source) | vars(source)).items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def _own(array: Any) -> Any:
    """A copy that nothing else holds: a program may take its memory (donation)."""
    if isinstance(array, jax.Array) and next(iter(array.devices())).platform != "cpu":
        return array.copy()
    return array if isinstance(array, NoData) else np.array(array)


def _storage_copy(storage: Storage) -> Storage:
    if storage.shared is not None:
        array = np.array(storage.shared.memory, order="C")
    else:
        array = _own(local.rec.base_array_of(storage))
    base = from_array(
        array, device=storage.meta.device, strides=tuple(storage.meta.strides)
    )
    base._tmeta = storage.meta.replace(inference=local.rec.inference)
    twin = Storage(base)
    twin.aliases.clear()
    return twin


def _deep_untyped(self: UntypedStorage, memo: dict[int, Any]) -> UntypedStorage:
    """`copy.deepcopy`: its tensors, copied with it, share the copy."""
    if self._raw is not None:
        return self.clone()
    storage = self._storage
    twin = memo.get(id(storage))
    if twin is None:
        twin = memo[id(storage)] = _storage_copy(storage)
    memo.setdefault(id(memo), []).append(storage)
    made = _new(UntypedStorage)
    made._hold(twin)
    return made


def _deep_typed(self: TypedStorage, memo: dict[int, Any]) -> TypedStorage:
    """`copy.deepcopy`, as of untyped storages."""
    return TypedStorage(_deep_untyped(self.untyped(), memo), self.dtype)


UntypedStorage.__deepcopy__ = _deep_untyped  # type: ignore[attr-defined]
TypedStorage.__deepcopy__ = announced(_deep_typed)  # type: ignore[attr-defined]
TypedStorage._deepcopy = _deep_typed  # type: ignore[attr-defined]
Tensor.__copy__ = _shallow
Tensor.__deepcopy__ = _deep


def _reversed(self: Tensor) -> Tensor:
    """The elements along the first dimension in reverse order."""
    return self if not self.dim() else fns.flip(self, (0,))


Tensor.__reversed__ = _reversed
