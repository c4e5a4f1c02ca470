"""Batches on their way between processes: tensors as NumPy arrays, the large ones in
shared memory.

Shared memory is a file in /dev/shm that the receiver maps and deletes at once. Its name
begins with the loader's, so that what nobody received is deleted in the end.
"""

from __future__ import annotations

import contextlib
import glob
import io
import itertools
import os
import pickle
from typing import Any

import numpy as np

import torchshim
from torchshim._core.dtypes import array_dtype
from torchshim._core.layout import is_dense
from torchshim._functions.creation import place
from torchshim._functions.rebuilding import refuse_history, user_state
from torchshim._tensor import Tensor, from_array

SHARED_FOLDER = "/dev/shm"
# Buffers up to so many bytes go with the message.
SMALL = 1 << 14
_ALIGNMENT = 64

_number = itertools.count()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return NotImplemented
        refuse_history(obj)
        if type(obj) is not Tensor or user_state(obj):
            return NotImplemented
        host, strides = obj._host(), tuple(obj._tmeta.strides)
        if not is_dense(tuple(host.shape), strides):
            strides = None
        flat: Any = np.ascontiguousarray(host).reshape(-1).view(np.uint8)
        data = pickle.PickleBuffer(flat)
        grad = obj.requires_grad
        return _tensor, (data, obj.dtype.name, tuple(host.shape), strides, grad)


def _tensor(data: Any, name: str, shape: Any, strides: Any, requires_grad: bool) -> Any:
    kind = array_dtype(getattr(torchshim, name))
    array = np.frombuffer(data, kind).reshape(shape)
    cpu = torchshim.device("cpu")
    made = from_array(place(array, cpu), device=cpu, strides=strides)
    return made.requires_grad_() if requires_grad else made


class Message:
    """An object, packed: bytes, and where its large buffers are."""

    __slots__ = ("data", "file", "places", "small")

    def __init__(self, obj: Any, prefix: str) -> None:
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        _Pickler(stream, protocol=5, buffer_callback=buffers.append).dump(obj)
        self.data = stream.getvalue()
        self.file: str | None = None
        self.places: list[tuple[int, int]] | None = None
        self.small: list[bytes] = []
        views = [buffer.raw() for buffer in buffers]
        if sum(view.nbytes for view in views) > SMALL:
            self.places = self._share(views, prefix)
        if self.places is None:
            self.small = [bytes(view) for view in views]

    def _share(self, views: list[memoryview], prefix: str) -> Any:
        """Writes the buffers to shared memory; None where there is no room."""
        path = os.path.join(SHARED_FOLDER, f"{prefix}_{os.getpid()}_{next(_number)}")
        places, at = [], 0
        try:
            with open(path, "xb") as file:
                for view in views:
                    at += -at % _ALIGNMENT
                    file.seek(at)
                    file.write(view)
                    places.append((at, view.nbytes))
                    at += view.nbytes
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        self.file = path
        return places

    def open(self) -> Any:
        """The object; its shared memory lives as long as it is used."""
        buffers: list[Any] = list(self.small)
        if self.file is not None and self.places is not None:
            memory = np.memmap(self.file, np.uint8, "c")
            os.unlink(self.file)
            buffers = [memory[at : at + size] for at, size in self.places]
        return pickle.loads(self.data, buffers=buffers)


def forget(prefix: str) -> None:
    """Deletes the shared memory that nobody received."""
    for path in glob.glob(os.path.join(SHARED_FOLDER, f"{prefix}_*")):
        with contextlib.suppress(OSError):
            os.unlink(path)
