"""New tensors of a tensor's dtype, on its device: `new_zeros` and the like."""

from __future__ import annotations

from typing import Any

from torchshim._core.layout import strided
from torchshim._derived import public
from torchshim._functions._arguments import (
    check_options,
    device_of,
    dtype_of,
    missing,
    number_of,
    size_of,
    wrong,
)
from torchshim._functions.creation import empty_strided, filled, for_examples
from torchshim._tensor import Tensor


def _new(
    function: str,
    self: Tensor,
    given: tuple[Any, ...],
    value: Any,
    options: dict[str, Any],
) -> Tensor:
    size = options.pop("size", None)
    shape = size_of(function, given, size)
    dtype = dtype_of(function, options.pop("dtype", None)) or self._tmeta.dtype
    device = options.pop("device", None)
    device = self._tmeta.device if device is None else device_of(function, device)
    requires_grad = options.pop("requires_grad", False)
    pin_memory = options.pop("pin_memory", False)
    check_options(function, options.pop("layout", strided), pin_memory, requires_grad)
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    made = filled(function, shape, value, dtype, device, bool(requires_grad))
    return for_examples(made, self)


@public(namespaces=(), method=True)
def new_zeros(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Zeros of this size, of the tensor's dtype and on its device.

    The size is given as one sequence or as so many integers; `dtype`, `device` and
    `requires_grad` by name. RuntimeError for a negative size.

    >>> import torchshim as torch
    >>> torch.tensor([1, 2]).new_zeros(3)
    tensor([0, 0, 0])
    """
    return _new("new_zeros", self, size, 0, options)


@public(namespaces=(), method=True)
def new_ones(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Ones of this size, of the tensor's dtype and on its device; see `new_zeros`.

    >>> import torchshim as torch
    >>> torch.tensor([1, 2]).new_ones((1, 2), dtype=torch.bool)
    tensor([[True, True]])
    """
    return _new("new_ones", self, size, 1, options)


@public(namespaces=(), method=True)
def new_empty(self: Tensor, *size: Any, **options: Any) -> Tensor:
    """Unchosen values (zeros) of this size, of the tensor's dtype, on its device.

    >>> import torchshim as torch
    >>> torch.tensor([1, 2]).new_empty(2, 3).shape
    torch.Size([2, 3])
    """
    return _new("new_empty", self, size, None, options)


@public(namespaces=(), method=True)
def new_full(
    self: Tensor, size: Any = None, fill_value: Any = None, **options: Any
) -> Tensor:
    """One number, this often, in the tensor's dtype and on its device.

    TypeError for a size that is no sequence.

    >>> import torchshim as torch
    >>> torch.tensor([1.0]).new_full((2,), 7)
    tensor([7., 7.])
    """
    if size is None or fill_value is None:
        given = ("size", size), ("fill_value", fill_value)
        raise missing("new_full", *(n for n, v in given if v is None))
    if not isinstance(size, (tuple, list)):
        raise TypeError(wrong("new_full", "size", 1, "tuple of ints", size))
    value = number_of("new_full", "fill_value", 2, fill_value)
    return _new("new_full", self, (size,), value, options)


@public(namespaces=(), method=True)
def new_empty_strided(self: Tensor, size: Any, stride: Any, **options: Any) -> Tensor:
    """Unchosen values (zeros) with these strides, of the tensor's dtype.

    >>> import torchshim as torch
    >>> torch.tensor([1.0]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    options.setdefault("dtype", self._tmeta.dtype)
    options.setdefault("device", self._tmeta.device)
    return for_examples(empty_strided(size, stride, **options), self)
