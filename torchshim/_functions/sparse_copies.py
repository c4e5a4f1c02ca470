"""Copies, conversions and new tensors of sparse ones; the memory they do not have."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from torchshim import _refusal
from torchshim._core import dtypes
from torchshim._core.dtypes import as_dtype
from torchshim._core.layout import (
    FORMAT_TEXTS,
    LAYOUT_TEXTS,
    contiguous_format,
    preserve_format,
    strided,
)
from torchshim._derived import fns
from torchshim._functions import creation
from torchshim._functions._arguments import size_of
from torchshim._functions.composed import refreshed
from torchshim._functions.convert import CAST_METHODS
from torchshim._functions.sparse_compressed import without_values
from torchshim._functions.sparse_construct import (
    empty_coo,
    old_arguments,
    old_tensor,
)
from torchshim._functions.sparse_construct_compressed import of_size
from torchshim._functions.sparse_convert import to_dense
from torchshim._functions.sparse_tensor import (
    handles,
    is_sparse,
    refuse,
)
from torchshim._tensor import Tensor

# -- copies ----------------------------------------------------------------------------


def _compression(tensor: Any) -> str:
    """`CSR` and its like."""
    return tensor.layout.name.removeprefix("sparse_").upper()


@handles("clone")
def clone(input: Any, *, memory_format: Any = None) -> Any:
    """As `torch.clone`; RuntimeError where a memory format is asked for."""
    if memory_format is not None:
        text = FORMAT_TEXTS[memory_format]
        raise RuntimeError(f"unsupported memory format option {text}")
    return input._like(fns.clone(input._v))


@handles("detach")
def detach(input: Any) -> Any:
    """As `Tensor.detach`: the same values without history."""
    return input._like(input._v.detach())


@handles("detach_")
def detach_(self: Any) -> Any:
    """As `Tensor.detach_`."""
    self._v = self._v.detach()
    return refreshed(self)


# -- conversions -----------------------------------------------------------------------


@handles("to")
def to(self: Any, *args: Any, memory_format: Any = None, **kwargs: Any) -> Any:
    """As `Tensor.to`."""
    if args and is_sparse(args[0]):
        args = (args[0]._v, *args[1:])
    elif is_sparse(kwargs.get("other")):
        kwargs["other"] = kwargs["other"]._v
    values = self._v.to(*args, **kwargs)
    if values is self._v and memory_format in (
        None,
        preserve_format,
        contiguous_format,
    ):
        return self
    if memory_format not in (None, preserve_format):
        kind = "COO" if self.is_sparse else _compression(self).title()
        raise RuntimeError(
            f"to(options): {kind} only supports memory format Preserve, but got "
            f"{FORMAT_TEXTS[memory_format]} instead."
        )
    if values.device != self.device:
        made = self._moved(lambda part: part.to(values.device))
        return made._like(values)
    return self._like(values)


def _cast_method(name: str, target: dtypes.dtype) -> None:
    def cast(self: Any, *, memory_format: Any = None) -> Any:
        return to(self, target, memory_format=memory_format)

    cast.__name__ = cast.__qualname__ = name
    handles(name)(cast)


for _name, _dtype in CAST_METHODS.items():
    _cast_method(_name, _dtype)


@handles("cpu")
def cpu(self: Any, *, memory_format: Any = None) -> Any:
    """As `Tensor.cpu`."""
    return to(self, "cpu", memory_format=memory_format)


@handles("cuda")
def cuda(
    self: Any,
    device: Any = None,
    non_blocking: builtins.bool = False,
    memory_format: Any = None,
) -> Any:
    """As `Tensor.cuda`."""
    moved = self._v.cuda(device, non_blocking)
    return to(self, moved.device, memory_format=memory_format)


@handles("type")
def type(self: Any, dtype: Any = None, non_blocking: builtins.bool = False) -> Any:
    """As `Tensor.type`: the name of the legacy type, or a conversion."""
    if dtype is None:
        return f"torch.sparse.{self._v.type().removeprefix('torch.')}"
    kind = as_dtype(dtype)
    return to(self, kind) if kind is not None else self._like(self._v.type(dtype))


@handles("type_as")
def type_as(self: Any, other: Any) -> Any:
    """As `Tensor.type_as`."""
    return to(self, other.dtype)


# -- new tensors -----------------------------------------------------------------------


def _new(
    function: str,
    self: Any,
    size: Sequence[int],
    dense_dim: int,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    requires_grad: Any,
) -> Any:
    """A tensor without values or, where that layout is asked for, a dense one."""
    own = layout is None or layout is self.layout
    if not own and layout is not strided:
        kind = self.dtype if dtype is None else dtype
        where = self.device if device is None else device
        given = kind, where, pin_memory, requires_grad
        return of_size(function, 0, size, None, layout, *given)
    if not own and not self.is_sparse:
        refuse(function, self)
    kind = self.dtype if dtype is None else dtype
    where = self.device if device is None else device
    if layout is strided:
        make = creation.zeros if "zeros" in function else creation.empty
        return make(
            size,
            dtype=kind,
            device=where,
            pin_memory=pin_memory,
            requires_grad=requires_grad,
        )
    if pin_memory:
        raise RuntimeError(_NOT_PINNED)
    if not self.is_sparse:
        if function == "empty_like":  # with as many values
            options = {"dtype": kind, "device": where, "requires_grad": requires_grad}
            return self._like(creation.empty(self._v.shape, **options))
        if function == "zeros_like":
            return without_values(self, kind, where, builtins.bool(requires_grad))
        return of_size(
            function, 0, size, None, self.layout, kind, where, False, requires_grad
        )
    return empty_coo(size, kind, where, builtins.bool(requires_grad), dense_dim)


_NOT_PINNED = "Only dense CPU tensors can be pinned"


def _like_function(name: str) -> None:
    def like(
        input: Any,
        *,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
        pin_memory: builtins.bool = False,
        memory_format: Any = None,
    ) -> Any:
        if memory_format is not None and layout is not strided:
            raise RuntimeError(
                "memory format option is only supported by strided tensors"
            )
        if memory_format not in (None, preserve_format, contiguous_format):
            refuse(f"{name} with memory_format={memory_format}", input)
        given = dtype, layout, device, pin_memory, requires_grad
        return _new(name, input, input.shape, input._v.ndim - 1, *given)

    like.__name__ = like.__qualname__ = name
    like.__doc__ = f"As `torch.{name}`: a sparse tensor without values."
    handles(name)(like)


def _new_function(name: str) -> None:
    def new(
        self: Any,
        *args: Any,
        size: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: builtins.bool = False,
        requires_grad: builtins.bool = False,
    ) -> Any:
        shape = size_of(name, args, size)
        given = dtype, layout, device, pin_memory, requires_grad
        return _new(name, self, shape, 0, *given)

    new.__name__ = new.__qualname__ = name
    new.__doc__ = f"As `Tensor.{name}`: a sparse tensor without values."
    handles(name)(new)


@handles("ones_like")
def ones_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    pin_memory: builtins.bool = False,
    memory_format: Any = None,
) -> Any:
    """As `torch.ones_like`, of a compressed tensor: ones in the place of its values."""
    if input.is_sparse or layout not in (None, input.layout):
        refuse("ones_like", input)
    if memory_format not in (None, preserve_format) or pin_memory:
        refuse("ones_like with memory_format= or pin_memory=", input)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    return input._like(creation.ones_like(input._v.detach(), **options))


_like_function("zeros_like")
_like_function("empty_like")
_new_function("new_zeros")
_new_function("new_empty")


@handles("new")
def new(
    self: Any,
    *args: Any,
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    device: Any = None,
) -> Any:
    """As `Tensor.new`: a sparse tensor of elements, or of a size and without values."""
    if not self.is_sparse:
        refuse("new", self)
    named = (each for each in (indices, values, size) if each is not None)
    given = old_arguments("SparseTensor.new", (*args, *named))
    return old_tensor(given, self.dtype, self.device if device is None else device)


# -- memory ----------------------------------------------------------------------------


@handles("storage", "untyped_storage", "share_memory_", "_typed_storage")
def storage(self: Any) -> Any:
    """Refused: there is no storage."""
    kind = "SparseTensorImpl" if self.is_sparse else "SparseCsrTensorImpl"
    raise NotImplementedError(f"Cannot access storage of {kind}")


@handles("data_ptr", "tolist", "apply_", "map_")
def data_ptr(self: Any, *args: Any) -> Any:
    """Refused: there is no storage."""
    raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


@handles("__dlpack__")
def to_dlpack(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: DLPack knows dense memory only."""
    raise BufferError("Can't export tensors with layout other than torch.strided")


@handles("numpy", "__array__")
def numpy(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused: NumPy has no sparse arrays."""
    kind = LAYOUT_TEXTS[self.layout.name]
    raise TypeError(
        f"can't convert {kind} layout tensor to numpy. Use Tensor.to_dense() first."
    )


@handles("item")
def item(self: Any) -> Any:
    """As `Tensor.item`."""
    if self.numel() != 1:
        raise RuntimeError(
            f"a Tensor with {self.numel()} elements cannot be converted to Scalar"
        )
    return to_dense(self).item() if self._nnz() else 0


def _as_number(name: str) -> None:
    plain = getattr(Tensor, name)

    @handles(name)
    def read(self: Any) -> Any:
        if self.numel() != 1:
            # What is said of it depends on the size alone.
            return plain(self._v.new_empty(min(self.numel(), 2)))
        if not self.is_sparse:
            refuse(name, self)
        return plain(to_dense(self))


for _name in "__bool__ is_nonzero __int__ __float__ __complex__ __index__".split():
    _as_number(_name)


@handles("__setitem__")
def setitem(self: Any, index: Any, value: Any) -> None:
    """Refused, as in PyTorch."""
    raise TypeError("Cannot assign to a sparse tensor")


@handles("storage_offset")
def storage_offset(self: Any) -> int:
    """As `Tensor.storage_offset`: 0."""
    return 0


@handles("_is_view")
def is_view(self: Any) -> builtins.bool:
    """Always False: the memory is that of the parts."""
    return False


@handles("is_contiguous")
def is_contiguous(self: Any, memory_format: Any = None) -> builtins.bool:
    """False, whatever the format: the elements are in no order."""
    if not self.is_sparse:
        raise RuntimeError(
            f"Sparse {_compression(self)} tensors do not have is_contiguous"
        )
    return False


@handles("contiguous")
def contiguous(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Refused, as in PyTorch: the elements are in no order."""
    _refusal.refuse("Tensor", "contiguous", (self, *args), kwargs)
    is_contiguous(self)
    memory_format = kwargs.get("memory_format", contiguous_format)
    if memory_format is preserve_format:
        raise RuntimeError(
            "preserve memory format is unsupported by the contiguous operator"
        )
    raise RuntimeError(
        f"unsupported memory format option {FORMAT_TEXTS[memory_format]}"
    )


@handles("is_pinned")
def is_pinned(self: Any, device: Any = None) -> builtins.bool:
    """As `Tensor.is_pinned`: never."""
    return False


@handles("stride")
def stride(self: Any, dim: Any = None) -> Any:
    """As `Tensor.stride`: zeros."""
    if not self.is_sparse:
        raise RuntimeError(f"Sparse {_compression(self)} tensors do not have strides")
    zeros = (0,) * self.ndim
    return zeros if dim is None else zeros[dim]
