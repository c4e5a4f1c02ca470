"""A folder of tensors, each memory once, by what is in it.

https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/_content_store.py. Memory is
always named by its SHA-1, which PyTorch does where it can't compile another function.
"""

from __future__ import annotations

import hashlib
import os
import weakref
from typing import Any

import torchshim
from torchshim._core.record import local
from torchshim._core.storage import Storage
from torchshim._functions.memory import get_tensor_metadata, set_tensor_metadata
from torchshim._functions.storage import UntypedStorage, shown
from torchshim._tensor import Tensor

Metadata = tuple[Any, str, int, tuple[int, ...], tuple[int, ...], dict[str, Any]]


def hash_storage(storage: UntypedStorage, *, stable_hash: bool = False) -> str:
    """The name of what a storage holds; `stable_hash` changes nothing here.

    >>> import torchshim as torch
    >>> hash_storage(torch.zeros(2).untyped_storage())[:8]
    '05fe4057'
    """
    data = storage.cpu()._bytes().tobytes()
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


class ContentStoreWriter:
    """Writes tensors to a folder, each memory once."""

    def __init__(self, loc: str, stable_hash: bool = False) -> None:
        self.loc = loc
        self.seen_storage_hashes: set[str] = set()
        self.stable_hash = stable_hash

    def write_storage(self, storage: UntypedStorage) -> str:
        """Writes a memory that is not there yet; its name."""
        name = hash_storage(storage, stable_hash=self.stable_hash)
        if name not in self.seen_storage_hashes:
            path = os.path.join(self.loc, "storages", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if not os.path.exists(path):
                torchshim.save(storage, path)
            self.seen_storage_hashes.add(name)
        return name

    def compute_tensor_metadata(self, t: Tensor, h: str | None = None) -> Metadata:
        """All that is to know of a tensor besides its memory."""
        if h is None:
            h = hash_storage(t.untyped_storage(), stable_hash=self.stable_hash)
        place = t.storage_offset(), tuple(t.shape), t.stride()
        return (t.dtype, h, *place, get_tensor_metadata(t))

    def write_tensor(self, name: str, t: Tensor) -> None:
        """Writes a tensor, under a name that may be a path."""
        found = self.compute_tensor_metadata(t, self.write_storage(t.untyped_storage()))
        path = os.path.join(self.loc, "tensors", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        torchshim.save(found, path)


class ContentStoreReader:
    """Reads tensors from such a folder; those of one memory share it."""

    def __init__(self, loc: str, *, cache: bool = True) -> None:
        self.loc = loc
        # What tensors keep alive.
        self.storage_cache: weakref.WeakValueDictionary[Any, Storage] | None
        self.storage_cache = weakref.WeakValueDictionary() if cache else None

    def read_storage(self, h: str, *, device: Any = None) -> UntypedStorage:
        """A memory by its name."""
        where = None if device is None else torchshim.device(device)
        cache = self.storage_cache
        known = None if cache is None else cache.get((where, h))
        if known is not None:
            return shown(known)
        path = os.path.join(self.loc, "storages", h)
        return torchshim.load(path, weights_only=True, map_location=where).untyped()

    def read_tensor_metadata(self, name: str) -> Metadata:
        """What was written of a tensor besides its memory, or FileNotFoundError."""
        path = os.path.join(self.loc, "tensors", name)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        return torchshim.load(path, weights_only=True)

    def read_tensor(self, name: str, *, device: Any = None) -> Tensor:
        """A tensor by its name."""
        dtype, h, offset, size, stride, metadata = self.read_tensor_metadata(name)
        storage = self.read_storage(h, device=device)
        made = torchshim.tensor([], dtype=dtype, device=storage.device)
        made.set_(storage, offset, size, stride)
        if self.storage_cache is not None:
            where = None if device is None else torchshim.device(device)
            self.storage_cache[where, h] = local.rec.storage_of(made)
        set_tensor_metadata(made, metadata)
        return made
