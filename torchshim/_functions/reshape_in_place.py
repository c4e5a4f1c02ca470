"""Methods that change a tensor's own shape or order of dimensions: `unsqueeze_`."""

from __future__ import annotations

import functools
import re
import weakref
from dataclasses import replace
from typing import Any

from torchshim._core.op import REGISTRY, Op
from torchshim._core.record import local
from torchshim._core.storage import set_version, version_of
from torchshim._core.write import WRITTEN_LEAF
from torchshim._derived import public
from torchshim._functions._family import described
from torchshim._functions.resizing import keep_saved, show, show_views
from torchshim._functions.strided import strided_arguments
from torchshim._functions.vmap_arguments import note_reshaped
from torchshim._refusal import refuse
from torchshim._tensor import Tensor

# How many nodes PyTorch gives the operator that is not in place.
_FORMS = {"squeeze": 3}


@functools.cache
def _in_place(name: str) -> Op:
    """A view operator whose node is that of its form in place, which has a number."""
    view = REGISTRY[name]
    named, forms = view.grad_fn, _FORMS.get(name, 1)

    def node(*args: Any) -> str:
        plain = named(*args) if callable(named) else str(named)
        return re.sub(r"\d+$", lambda found: str(int(found[0]) + forms), plain)

    return replace(view, grad_fn=node)


def count_write(tensor: Any) -> None:
    """Counts a write to a tensor's memory that changes nothing of it."""
    if not _record_write(tensor):
        set_version(tensor, version_of(tensor) + 1)


def _record_write(tensor: Any) -> bool:
    """As `count_write`, if anything that was recorded may need the value.

    The path has to tell of the write then.
    """
    rec = local.rec
    if tensor._tmeta.inference or rec.inference or not rec.state.tracks:
        return False
    grad = rec.grad
    rec.set_grad(False)
    try:
        for dim, stride in enumerate(tensor.stride()):
            if not stride and tensor.shape[dim] > 1:
                tensor = tensor.narrow(dim, 0, 1)
        tensor.copy_(tensor.clone())
    finally:
        rec.set_grad(grad)
    return True


def _become(
    self: Tensor, name: str, args: tuple[Any, ...], counted: bool = False
) -> Tensor:
    """Makes a tensor the view of itself that an operator gives.

    `counted` says that this write is counted already.
    """
    before = tuple(self._tmeta.shape)
    _show_as(self, name, args, counted)
    if local.rec.levels:
        note_reshaped(self, name, args, before)
    return self


def reshape_given(tensor: Tensor, name: str, args: tuple[Any, ...]) -> None:
    """As `_become`, for what a mapped function was given and changed the shape of."""
    _become(tensor, name, args, counted=True)


def _show_as(self: Tensor, name: str, args: tuple[Any, ...], counted: bool) -> Tensor:
    rec = local.rec
    rec.check_inference(self)
    meta = self._tmeta
    if rec.grad and meta.requires_grad and self._view_of is not None:
        rec.check_history(self, ())
    if rec.grad and meta.requires_grad and meta.leaf:
        raise RuntimeError(WRITTEN_LEAF)
    op = REGISTRY[name]
    untracked = not rec.grad and meta.requires_grad
    if untracked and not meta.leaf:
        rec.keep_history(self)
    counted = counted or _record_write(self)
    state = rec.call(_in_place(name), (self, *args))
    new = rec.result(state)
    if untracked:
        return _show_untracked(self, new, (op, args, 0), counted)
    storage = self._storage  # given up by now, where the views are gone
    if storage is not None:
        self._path = (*self._path, (op, args, 0))
        show_views(self)
    self._slot = new._slot
    self._raw = -1
    self._tmeta = new._tmeta
    if meta.inference and meta.requires_grad:  # of which views say otherwise
        self._tmeta = new._tmeta.replace(requires_grad=True)
    self._array = None
    self._node = None
    shared = storage is not None and storage.shared is not None
    if storage is None or shared:
        self._hist = None
    if shared:
        rec.volatile.append(self)  # NumPy may write at any time
        rec.forget_volatile()
    if not counted:
        set_version(self, version_of(self) + 1)
    rec.live.append(weakref.ref(self))
    return self


def _show_untracked(self: Tensor, new: Any, step: Any, counted: bool) -> Tensor:
    """As autograd does not see it: the tensor keeps its place in the graph."""
    rec, storage, shown = local.rec, self._storage, new._tmeta
    if storage is None:
        self._raw = new._slot
        rec.raws.append(self)
    else:
        self._path = (*self._path, step)
        show_views(self)
    self._slot = -1
    self._array = None
    self._tmeta = self._tmeta.replace(
        shape=shown.shape, strides=shown.strides, offset=shown.offset
    )
    if not counted:
        set_version(self, version_of(self) + 1)
    return self


def _as_dim(value: Any) -> Any:
    """A dimension, or a tuple of them, as recordings hold it."""
    if value is ...:
        return value
    if isinstance(value, (tuple, list)):
        return tuple(map(_as_dim, value))
    return value.__index__()


def _method(name: str, wanted: str, function: Any) -> None:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """The memory is what it was, and other tensors on it see nothing of this.

        >>> import torchshim as torch
        >>> x = torch.zeros(2, 3)
        >>> x.transpose_(0, 1) is x, x.shape, x.unsqueeze_(0).shape
        (True, torch.Size([3, 2]), torch.Size([1, 3, 2]))
        """
        dims = function(*args, **kwargs)
        if any(dim.__class__ is not int for dim in dims):
            refuse("Tensor", name, (self, *args), kwargs)
            dims = tuple(map(_as_dim, dims))
        return _become(self, wanted, dims)

    line = f"`{name[:-1]}` of the tensor itself."
    described(method, name, line)
    public(method, name=name, namespaces=(), method=True)


@public(namespaces=(), method=True)
def t_(self: Tensor) -> Tensor:
    """`t` of the tensor itself.

    RuntimeError for more than two dimensions.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.t_.html

    >>> import torchshim as torch
    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> x.t_(), x.is_contiguous()
    (tensor([[1, 3],
            [2, 4]]), False)
    """
    if len(self._tmeta.shape) > 2:
        raise RuntimeError(
            "t_() expects a tensor with <= 2 dimensions, but self is "
            f"{len(self._tmeta.shape)}D"
        )
    return _become(self, "t", ())


_method("transpose_", "transpose", lambda dim0, dim1: (dim0, dim1))
_method("swapdims_", "transpose", lambda dim0, dim1: (dim0, dim1))
_method("swapaxes_", "swapaxes", lambda axis0, axis1: (axis0, axis1))
_method("unsqueeze_", "unsqueeze", lambda dim: (dim,))
_method(
    "squeeze_",
    "squeeze",
    lambda dim=..., *more: (((dim, *more) if more else dim),),
)


@public(method=True)
def as_strided_(
    input: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """Makes the tensor itself another view of its memory.

    >>> import torchshim as torch
    >>> x = torch.arange(4)
    >>> torch.as_strided_(x, (2, 2), (1, 2))
    tensor([[0, 2],
            [1, 3]])
    """
    wanted = strided_arguments(input, size, stride, storage_offset)
    source, size, stride, offset, _ = wanted
    if local.rec.grad and input._tmeta.requires_grad:
        if source is not input:
            raise NotImplementedError(
                "as_strided_(): a tensor with history can't show more than it did"
            )
        return _become(input, "strided_view", wanted[1:])
    local.rec.check_inference(input)
    keep_saved(input)
    show(input, (size, stride, offset))
    local.rec.storage_of(input).count_write(input)
    return input
