"""Tensors on their way to other processes: the memory moves to where both see it.

What `multiprocessing` pickles by `ForkingPickler` (arguments of processes, what queues
and pipes take) has a file's descriptor in the place of a storage's bytes.
"""

from __future__ import annotations

import pickle
from multiprocessing import reduction
from typing import Any

from torchshim._core import dtypes
from torchshim._errors import unsupported
from torchshim._functions.host_memory import share, sharing_region
from torchshim._functions.rebuilding import refuse_history
from torchshim._functions.storage import UntypedStorage, tensor_on
from torchshim._functions.typed_storage import TypedStorage
from torchshim._tensor import Tensor
from torchshim.nn.parameter import Parameter

__all__ = [
    "StorageWeakRef",
    "init_reductions",
    "rebuild_storage_fd",
    "reduce_storage",
    "reduce_tensor",
]

StorageWeakRef = unsupported(
    "multiprocessing.reductions.StorageWeakRef",
    "storages are not held by their handles",
)


def reduce_tensor(tensor: Any) -> Any:
    """What is pickled of a tensor: its place in a storage, which is shared."""
    refuse_history(tensor)
    return tensor.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


def reduce_typed_storage(storage: TypedStorage) -> Any:
    """What is pickled of a storage of elements: the one of its bytes."""
    return rebuild_typed_storage, (storage._untyped, storage.dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    """A storage of elements on one of bytes."""
    return TypedStorage(storage, dtype)


def reduce_storage(storage: UntypedStorage) -> Any:
    """What is pickled of a storage: a descriptor of the memory, which is shared."""
    if storage.device.type != "cpu":
        return storage.__reduce__()
    core = storage._storage
    region = share(tensor_on(core))
    meta, memory = core.meta, core.shared.memory
    handle = reduction.DupFd(region.descriptor)
    return rebuild_storage_fd, (handle, meta.dtype, memory.shape, memory.strides)


def rebuild_storage_fd(
    handle: Any, dtype: dtypes.dtype, shape: tuple[int, ...], strides: tuple[int, ...]
) -> UntypedStorage:
    """A storage on memory that another process shares."""
    kind = dtypes.array_dtype(dtype)
    return sharing_region(
        handle.detach(), dtype, kind, shape, strides
    ).untyped_storage()


def init_reductions() -> None:
    """Has `multiprocessing` send tensors and storages so."""
    if not hasattr(reduction, "DupFd"):  # pragma: no cover - Windows
        return
    register: Any = reduction.ForkingPickler.register
    register(Tensor, reduce_tensor)
    register(Parameter, reduce_tensor)
    register(TypedStorage, reduce_typed_storage)
    register(UntypedStorage, reduce_storage)
