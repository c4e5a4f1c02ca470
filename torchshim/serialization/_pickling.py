"""Objects into pickles: tensors by their storages, our classes by PyTorch's names."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from types import FunctionType
from typing import Any

import numpy as np

from torchshim._attributes import Attributes
from torchshim._core.dtypes import dtype, uint8
from torchshim._core.layout import is_dense, layout
from torchshim._core.storage import Storage
from torchshim._functions.rebuilding import (
    _rebuild_meta_tensor_no_storage,
    _rebuild_tensor_v2,
    _rebuild_tensor_v3,
    _reduce_ex,
    meta_args,
    reduced,
    tensor_args,
    user_state,
)
from torchshim._functions.storage import UntypedStorage, memory_of
from torchshim._functions.typed_storage import TypedStorage
from torchshim._hooks import warn_if_has_hooks
from torchshim._tensor import Tensor
from torchshim.nn.parameter import (
    Parameter,
    _rebuild_parameter,
    _rebuild_parameter_with_state,
)
from torchshim.serialization._locations import location_of
from torchshim.serialization._names import (
    UNTYPED,
    _get_layout,
    find,
    is_global,
    storage_type,
    storage_type_of,
    torch_name,
)

# Types that are pickled as they are, looked up before anything else.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, dict, list, tuple, set})
_PLAIN |= {type(None)}


class _Memory:
    """The memory of a tensor, to be written as a storage of the file."""

    __slots__ = ("kind", "tensor")

    def __init__(self, tensor: Tensor, kind: dtype) -> None:
        self.tensor = tensor
        self.kind = kind


class _Data:
    """A parameter as the plain tensor under it."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class Storages:
    """The storages that a file holds: one key for all tensors on the same memory."""

    def __init__(self) -> None:
        # By key, in the order they were met: what they are read from.
        self.sources: dict[str, Tensor | Storage | UntypedStorage] = {}
        self._keys: dict[int, str] = {}
        self._met: list[Any] = []  # kept alive, as what a `__reduce__` made may be gone
        self._kinds: dict[str, dtype] = {}

    def key(self, source: Tensor | Storage | UntypedStorage, kind: dtype) -> str:
        """The key of a storage that is written as elements of a dtype."""
        found = self._keys.get(id(source))
        if found is None and isinstance(source, Storage):
            # One of its tensors may have had the memory to itself a moment ago.
            known = (self._keys.get(id(t)) for t in source.tensors())
            found = next((key for key in known if key is not None), None)
        if found is None:
            found = str(len(self.sources))
            self.sources[found] = source
        self._keys[id(source)] = found
        self._met.append(source)
        if self._kinds.setdefault(found, kind) is not kind and size_of(source):
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as "
                "different types"
            )
        return found

    def keep(self, tensor: Tensor) -> None:
        """Keeps a tensor, without which its storage may have no memory."""
        self._met.append(tensor)

    def kind(self, key: str) -> dtype:
        """The dtype as which a storage is written."""
        return self._kinds[key]

    def data(self, key: str) -> np.ndarray:
        """The bytes of a storage."""
        source = self.sources[key]
        if isinstance(source, UntypedStorage):
            return source._bytes()
        if isinstance(source, Tensor):
            if source._storage is None:
                return _own_memory(source)
            source = source._storage
        return memory_of(source).view(np.uint8)


def size_of(source: Any) -> int:
    """The size of a storage in bytes."""
    if isinstance(source, UntypedStorage):
        return source.nbytes()
    meta = source._tmeta if isinstance(source, Tensor) else source.meta
    return meta.numel * meta.dtype.itemsize


def _own_memory(tensor: Tensor) -> np.ndarray:
    host, meta = tensor._host(), tensor._tmeta
    order = list(range(host.ndim))
    if is_dense(tuple(meta.shape), tuple(meta.strides)):
        order.sort(key=lambda d: -meta.strides[d])
    flat = np.ascontiguousarray(host.transpose(order)).reshape(-1)
    return flat.view(np.uint8)


class _TensorPickler:
    """What a pickler of any pickle module needs to write checkpoints."""

    proto: int
    storages: Storages

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is _Memory:
            tensor, source = obj.tensor, obj.tensor
            if tensor._storage is not None:
                source = tensor._storage
                self.storages.keep(tensor)
            return self._persistent(source, obj.kind, tensor._tmeta.device)
        if kind is TypedStorage:
            return self._persistent_storage(obj._untyped, obj.dtype)
        if kind is UntypedStorage:
            return self._persistent_storage(obj, uint8, UNTYPED)
        return None

    def _persistent_storage(
        self, untyped: UntypedStorage, kind: dtype, name: str = ""
    ) -> Any:
        source = untyped if untyped._raw is not None else untyped._storage
        return self._persistent(source, kind, untyped.device, name)

    def _persistent(
        self, source: Any, kind: dtype, device: Any, name: str = ""
    ) -> tuple[Any, ...]:
        cls = storage_type(name) if name else storage_type_of(kind)
        if not isinstance(cls, type):
            kind = cls.dtype
        elif cls is UntypedStorage:
            kind = uint8
        key = self.storages.key(source, kind)
        count = size_of(source) // kind.itemsize
        return ("storage", cls, key, location_of(device, source), count)

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in _PLAIN:
            return NotImplemented
        if isinstance(obj, Tensor):
            return self._reduced(obj, kind)
        if kind is _Data:
            return _tensor_parts(obj.tensor, False)
        if kind is layout:
            return _get_layout, (str(obj),)
        if is_global(obj):
            found = torch_name(obj)
            if found is not None:
                return found[1]
            if kind is FunctionType and "reducer_override" not in dir(super()):
                return obj.__qualname__
        return self._other(obj)

    def _reduced(self, tensor: Tensor, kind: type) -> Any:
        how = kind.__reduce_ex__
        if how is Parameter.__reduce_ex__:
            args = _Data(tensor), tensor.requires_grad, OrderedDict()
            state = user_state(tensor)
            if state:
                return _rebuild_parameter_with_state, (*args, state)
            return _rebuild_parameter, args
        if how is not _reduce_ex or kind.__reduce__ is not object.__reduce__:
            return self._other(tensor)  # a subclass has its own way
        warn_if_has_hooks(tensor)
        return reduced(tensor, *_tensor_parts(tensor))

    def save_global(self, obj: Any, name: str | None = None) -> None:
        found = torch_name(obj, name)
        if found is None:
            try:
                super().save_global(obj, name)  # type: ignore[misc]
            except pickle.PicklingError:
                pickle.dumps(obj)  # the usual pickler has errors of its own
                raise
            return
        pickler: Any = self
        module, name = found
        if self.proto < 4 and "." in name:  # what a class has cannot be named
            owner, _, name = name.rpartition(".")
            pickler.save_reduce(getattr, (find(module, owner), name), obj=obj)
            return
        if self.proto >= 4:
            pickler.save(module)
            pickler.save(name)
            pickler.write(pickle.STACK_GLOBAL)
        else:
            pickler.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        pickler.memoize(obj)

    def _other(self, obj: Any) -> Any:
        # Pickle modules such as cloudpickle have an override of their own.
        other = getattr(super(), "reducer_override", None)
        return NotImplemented if other is None else other(obj)


def _tensor_parts(tensor: Tensor, requires_grad: bool | None = None) -> Any:
    kind = tensor._tmeta.dtype
    if tensor._tmeta.device.type == "meta":
        args = meta_args(tensor)
        if requires_grad is not None:
            args = (*args[:3], requires_grad)
        return _rebuild_meta_tensor_no_storage, args
    args = tensor_args(tensor, _Memory(tensor, kind), requires_grad)
    if storage_type_of(kind) is UntypedStorage:
        return _rebuild_tensor_v3, (*args[:6], kind, *args[6:])
    return _rebuild_tensor_v2, args


class _LegacyPickler(_TensorPickler):
    """Writes storages as the format before the zip archives has them."""

    def _persistent(
        self, source: Any, kind: dtype, device: Any, name: str = ""
    ) -> tuple[Any, ...]:
        # The last place was for storages within storages.
        return *super()._persistent(source, kind, device, name), None


def dump(
    obj: Any, file: Any, pickle_module: Any, protocol: int, legacy: bool = False
) -> Storages:
    """Pickles an object into a file; gives the storages that it mentions."""
    # The pickler written in C cannot be told what name an object has.
    base: Any = pickle._Pickler if pickle_module is pickle else pickle_module.Pickler
    mixin = _LegacyPickler if legacy else _TensorPickler
    members: dict[str, Any] = {}
    if issubclass(base, pickle._Pickler):  # `x.__dict__`, as files have it
        members["dispatch"] = base.dispatch | {Attributes: base.dispatch[dict]}
    pickler = type("Pickler", (mixin, base), members)(file, protocol=protocol)
    pickler.storages = Storages()
    pickler.dump(obj)
    return pickler.storages
