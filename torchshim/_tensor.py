"""The public tensor: identity, autograd attributes, and reading values."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes, engine, node, record
from torchshim._core.device import get_default_device
from torchshim._core.meta import Size, meta_of
from torchshim._core.record import local
from torchshim._core.storage import TensorBase

_new = object.__new__


class Tensor(TensorBase):
    """A mutable multi-dimensional array that records what is done with it.

    https://docs.pytorch.org/docs/2.13/tensors.html
    """

    __slots__ = ()
    __module__ = "torch"

    # -- what is known without running -------------------------------------------------

    @property
    def shape(self) -> Size:
        return self._meta.shape

    @property
    def dtype(self) -> dtypes.dtype:
        return self._meta.dtype

    @property
    def device(self) -> Any:
        return self._meta.device

    @property
    def ndim(self) -> int:
        return len(self._meta.shape)

    @property
    def requires_grad(self) -> bool:
        return self._meta.requires_grad

    @property
    def is_leaf(self) -> bool:
        return self._meta.leaf

    @property
    def grad_fn(self) -> Any:
        return node.grad_fn(self)

    @property
    def grad(self) -> Tensor | None:
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        self._grad = value

    # -- reading -----------------------------------------------------------------------

    def _host(self) -> np.ndarray:
        """The value as a numpy array (not to be written to)."""
        return host_value(self)

    def item(self) -> Any:
        return self._host().item()

    def tolist(self) -> Any:
        return self._host().tolist()

    def __repr__(self) -> str:
        return f"tensor({self._host()}, grad_fn={self.grad_fn})"

    # -- autograd ------------------------------------------------------------------------

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        if retain_graph is None:
            retain_graph = create_graph
        if gradient is None:
            gradient = engine.ones_like[0](self)
        engine.run_backward(
            [self], [gradient], retain_graph, create_graph, inputs, True
        )

    def _accumulate(self, grad: Tensor, create: bool) -> None:
        if self._grad is None:
            self._grad = grad
        elif create:
            self._grad = engine.add[0](self._grad, grad)
        else:
            local.rec.write(self._grad, engine.add[0](self._grad, grad))


def host_value(tensor: TensorBase) -> np.ndarray:
    rec = local.rec
    storage = tensor._storage
    if storage is None:
        if tensor._array is None:
            owner(tensor._slot).flush()
        rec.raise_failed_checks()
        return np.asarray(tensor._array)
    if storage.array is None:
        owner(storage.slot).flush()
    rec.raise_failed_checks()
    base = np.asarray(storage.array)
    meta, root = tensor._meta, storage.meta
    # Memory order of the base: its dimensions by falling stride.
    order = sorted(range(base.ndim), key=lambda d: -root.strides[d])
    flat = np.ascontiguousarray(base.transpose(order)).reshape(-1)
    size = flat.itemsize
    return np.lib.stride_tricks.as_strided(
        flat[meta.offset - root.offset :],
        meta.shape,
        tuple(s * size for s in meta.strides),
        writeable=False,
    )


def owner(slot: int) -> Any:
    return record.recorders[slot >> 40]


def from_array(array: Any, requires_grad: bool = False, cls: type = Tensor) -> Tensor:
    """A new leaf that holds an array."""
    tensor = _new(cls)
    tensor._slot = -1
    tensor._meta = meta_of(
        array.shape,
        dtypes.from_array_dtype(array.dtype),
        get_default_device(),
        requires_grad=requires_grad,
    )
    tensor._array = array
    return tensor
