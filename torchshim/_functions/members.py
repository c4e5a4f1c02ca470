"""Rarer methods of tensors: `apply_`, `dim_order`, `share_memory_` and the like."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from torchshim._attributes import fact
from torchshim._core import dtypes
from torchshim._core.layout import channels_last, memory_format
from torchshim._core.storage import dense, repeats
from torchshim._derived import public
from torchshim._functions.construct import tensor_from
from torchshim._tensor import Tensor, host_value


def _on_host(self: Any, name: str, *others: Any) -> None:
    if any(each.requires_grad for each in (self, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach()."
            f"{name}() instead."
        )
    if self.device.type not in ("cpu", "meta"):
        raise TypeError(f"{name} is only implemented on CPU tensors")


def _typed(tensor: Any) -> str:
    """The name of a tensor's type in errors."""
    if tensor.is_meta:
        return f"Meta{tensor.dtype.scalar_name}Type"
    return tensor.type()


@public(namespaces=(), method=True)
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it.

    >>> import torchshim as torch
    >>> torch.ones(2).apply_(lambda x: x + 1)
    tensor([2., 2.])
    """
    _on_host(self, "apply_")
    if self.is_meta:
        return self
    found = [callable(value) for value in host_value(self).reshape(-1).tolist()]
    return _take(self, found)


@public(namespaces=(), method=True)
def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by what a function makes of it and of `other`'s.

    On the CPU only, TypeError elsewhere; RuntimeError if one requires grad. `other` is
    broadcast, and has the same dtype, else TypeError.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.map_.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2]).map_(torch.tensor([10]), lambda a, b: a + b)
    tensor([11, 12])
    """
    _on_host(self, "map_", other)
    if _typed(other) != _typed(self):
        raise TypeError(
            f"map_: expected {_typed(self)} for 'other' (got {_typed(other)})"
        )
    if self.is_meta:
        return self
    theirs = host_value(other.expand_as(self)).reshape(-1).tolist()
    mine = host_value(self).reshape(-1).tolist()
    return _take(self, [callable(a, b) for a, b in zip(mine, theirs, strict=True)])


@public(namespaces=(), method=True)
def map2_(
    self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]
) -> Tensor:
    """Replaces each element by what a function makes of it and of two others.

    As `map_`, with two others.

    >>> import torchshim as torch
    >>> x, y = torch.tensor([10]), torch.tensor([1, 3])
    >>> torch.tensor([1, 2]).map2_(x, y, lambda a, b, c: a * b + c)
    tensor([11, 23])
    """
    _on_host(self, "map2_", x, y)
    columns: list[list[Any]] = []
    for name, other in (("x", x), ("y", y)):
        if _typed(other) != _typed(self):
            raise TypeError(
                f"map2_: expected {_typed(self)} for argument '{name}' (got "
                f"{_typed(other)})"
            )
        if self.is_meta:
            continue
        columns.append(host_value(other.expand_as(self)).reshape(-1).tolist())
    if self.is_meta:
        return self
    mine = host_value(self).reshape(-1).tolist()
    return _take(self, [callable(*each) for each in zip(mine, *columns, strict=True)])


@public
def _debug_has_internal_overlap(input: Tensor) -> int:
    """Whether elements share memory: 0 no, 1 yes, 2 not known (there are gaps)."""
    shape, strides = tuple(input.shape), input.stride()
    if repeats(shape, strides):
        return 1
    return 0 if 0 in shape or dense((shape, strides, 0)) else 2


@public
def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """RuntimeError unless the one value is not zero."""
    if not input.is_nonzero():
        raise RuntimeError(
            assert_msg or "Expected Tensor with single nonzero value, but got zero"
        )


def _take(self: Any, values: list[Any]) -> Tensor:
    if not values:
        return self
    whole = self.dtype.category <= dtypes.INTEGER
    numbers = (float, complex) if self.dtype is dtypes.bool_ else float
    for value in values:
        kind = type(value).__name__
        if whole and not (isinstance(value, numbers) or hasattr(value, "__index__")):
            raise TypeError(f"'{kind}' object cannot be interpreted as an integer")
        if not any(
            hasattr(value, m) for m in ("__index__", "__float__", "__complex__")
        ):
            raise TypeError(f"must be real number, not {kind}")
    new = tensor_from(values, self.dtype, self.device).view(tuple(self.shape))
    self.data.copy_(new)  # PyTorch counts no write
    return self


@public
def _test_check_tensor(input: Tensor) -> Tensor:
    """A copy; RuntimeError unless all values are true."""
    if not bool(input.all()):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return input.clone()


@public(namespaces=(), method=True)
def _fix_weakref(self: Tensor) -> None:
    """Keeps weak references valid; those to a tensor always are."""


@public(namespaces=(), method=True)
def const_data_ptr(self: Any) -> int:
    """As `Tensor.data_ptr`.

    >>> import torchshim as torch
    >>> x = torch.ones(2)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


@public(namespaces=(), method=True)
def dim_order(self: Any, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost to the innermost in memory.

    >>> import torchshim as torch
    >>> torch.ones(2, 3).t().dim_order()
    (1, 0)
    """
    strides, shape = self.stride(), self.shape
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    known = all(isinstance(each, memory_format) for each in formats)
    if not (known and isinstance(ambiguity_check, (bool, list))):
        raise TypeError(
            "The ambiguity_check argument must be a bool or a list of memory formats."
        )
    several = 1 in shape or any(a == b for a, b in itertools.pairwise(strides))
    if ambiguity_check is not False and several:
        if sum(self.is_contiguous(memory_format=each) for each in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one "
                "of the given memory formats."
            )
    plain = self.is_contiguous()
    if self.ndim < 2 or plain != _channels_last(self):
        return tuple(range(self.ndim)) if plain or self.ndim < 2 else (0, 2, 3, 1)
    # Insertion, as dimensions without an order between them stay where they are.
    order: list[int] = []
    for dim in reversed(range(self.ndim)):
        at = len(order)
        order.append(dim)
        for other in reversed(range(at)):
            within = _within(strides, shape, order[other], dim)
            if within > 0:
                order[other], order[at], at = dim, order[other], other
            elif within < 0:
                break
    if ambiguity_check and any(
        _within(strides, shape, a, b) >= 0 for a, b in itertools.pairwise(order)
    ):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(reversed(order))


def _channels_last(tensor: Any) -> bool:
    return tensor.ndim == 4 and tensor.is_contiguous(memory_format=channels_last)


def _within(strides: Any, shape: Any, a: int, b: int) -> int:
    """Whether dimension `b` lies within `a` (1), around it (-1), or it is open (0)."""
    if not (strides[a] and strides[b]):
        return 0
    if strides[a] == strides[b]:
        return 1 if shape[b] < shape[a] else 0
    return 1 if strides[a] > strides[b] else -1


def _no_name(self: Any) -> None:
    """None: a tensor has no name.

    >>> import torchshim as torch
    >>> print(torch.ones(1).name)
    None
    """
    return None


Tensor.name = fact("name", _no_name)


def _identity(self: Any) -> int:
    """What tells a tensor from others; PyTorch's is where its C++ side is."""
    return id(self) if self._identity is None else self._identity


Tensor._cdata = fact("_cdata", _identity)


@public(namespaces=(), method=True)
def storage_type(self: Any) -> Any:
    """The legacy class of the tensor's storage.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.storage_type.html

    >>> import torchshim as torch
    >>> torch.ones(1).storage_type()
    <class 'torch.FloatStorage'>
    """
    from torchshim._functions.legacy_storage import STORAGE_TYPES

    name = f"{self.dtype.scalar_name}Storage"
    return STORAGE_TYPES[name]


@public(namespaces=(), method=True)
def share_memory_(self: Any) -> Tensor:
    """Moves the memory to where other processes see it (`torch.multiprocessing`).

    >>> import torchshim as torch
    >>> torch.ones(2).share_memory_().is_shared()
    True
    """
    self._typed_storage().share_memory_()
    return self


@public(namespaces=(), method=True)
def is_shared(self: Any) -> bool:
    """Whether other processes see the memory; always on an accelerator.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.is_shared.html

    >>> import torchshim as torch
    >>> x = torch.ones(2)
    >>> x.is_shared(), x.share_memory_().is_shared()
    (False, True)
    """
    return self._typed_storage().is_shared()


@public(namespaces=(), method=True)
def record_stream(self: Any, stream: Any) -> None:
    """Says that a stream uses the memory: XLA knows by itself.

    RuntimeError for what is no stream.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.record_stream.html

    >>> import torchshim as torch
    >>> try:
    ...     torch.ones(1).record_stream(3)
    ... except RuntimeError as error:
    ...     print(error)
    unknown parameter type
    """
    if not hasattr(stream, "wait_stream"):
        raise RuntimeError("unknown parameter type")


@public(namespaces=(), method=True)
def module_load(self: Any, other: Any, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in the place of the tensor.

    A parameter's own memory with the values of `other`, or with `assign` that of
    `other`.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.module_load.html

    >>> import torchshim as torch
    >>> x = torch.zeros(2)
    >>> x.module_load(torch.tensor([1.0, 2.0])), x
    (tensor([1., 2.]), tensor([1., 2.]))
    """
    if assign:
        return other.detach()
    return self.detach().copy_(other).detach()
