"""Questions about tensors, shapes and types: `is_tensor`, `numel`, `result_type`.

https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes, promotion
from torchshim._core.device import as_device
from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._core.meta import Size
from torchshim._core.promotion import (
    DIMENSIONED,
    SCALAR,
    ZERO_DIM,
    result_dtype,
    scalar_dtype,
)
from torchshim._core.storage import TensorBase
from torchshim._derived import BY_MODES, NEVER, fns, public
from torchshim._functions._arguments import (
    is_number,
    kind_of,
    tensor_argument,
    wrong,
)
from torchshim._tensor import Tensor, on_cpu


@public(overridden=NEVER)
def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a tensor.

    >>> import torchshim as torch
    >>> torch.is_tensor(3)
    False
    """
    return isinstance(obj, Tensor)


@public
def numel(input: Any) -> int:
    """The number of elements.

    >>> import torchshim as torch
    >>> torch.numel(torch.ones(2, 3))
    6
    """
    return tensor_argument("numel", "input", 1, input).numel()


@public
def is_nonzero(input: Any) -> bool:
    """Whether the one element of `input` is not zero; RuntimeError for several.

    >>> import torchshim as torch
    >>> torch.is_nonzero(torch.tensor([0.0]))
    False
    """
    return tensor_argument("is_nonzero", "input", 1, input).is_nonzero()


def _of_bools(function: str, input: Any) -> Tensor:
    found = tensor_argument(function, "self", 1, input)
    if found._tmeta.dtype is not dtypes.bool_:
        raise RuntimeError(f"{function}(): expected a tensor of bools")
    return found


def of_all_examples(tensor: Tensor) -> Tensor:
    """A tensor with a dimension for each `vmap` that maps over it."""
    for number, _ in reversed(tensor._tmeta.batch):
        tensor = fns._vmap_leave(tensor, 0, number)
    return tensor


@public(method=True)
def _is_all_true(input: Any) -> Tensor:
    """Whether all elements of a tensor of bools are true, as a tensor.

    >>> import torchshim as torch
    >>> torch._is_all_true(torch.tensor([True, False]))
    tensor(False)
    """
    return fns.all(of_all_examples(_of_bools("_is_all_true", input)))


@public(method=True)
def _is_any_true(input: Any) -> Tensor:
    """Whether an element of a tensor of bools is true, as a tensor.

    >>> import torchshim as torch
    >>> torch._is_any_true(torch.tensor([True, False]))
    tensor(True)
    """
    return fns.any(of_all_examples(_of_bools("_is_any_true", input)))


@public
def is_floating_point(input: Any) -> bool:
    """Whether the dtype is a floating point one.

    >>> import torchshim as torch
    >>> torch.is_floating_point(torch.tensor(1))
    False
    """
    found = tensor_argument("is_floating_point", "input", 1, input)
    return found._tmeta.dtype.is_floating_point


@public
def is_complex(input: Any) -> bool:
    """Whether the dtype is complex.

    >>> import torchshim as torch
    >>> torch.is_complex(torch.tensor(1j))
    True
    """
    return tensor_argument("is_complex", "input", 1, input)._tmeta.dtype.is_complex


@public
def is_signed(input: Any) -> bool:
    """Whether the dtype can hold negative values.

    >>> import torchshim as torch
    >>> torch.is_signed(torch.tensor(1)), torch.is_signed(torch.tensor(True))
    (True, False)
    """
    return tensor_argument("is_signed", "input", 1, input)._tmeta.dtype.is_signed


@public(overridden=BY_MODES)
def promote_types(*args: Any, **kwargs: Any) -> dtypes.dtype:
    """The smallest dtype that both `type1` and `type2` can be converted to.

    https://docs.pytorch.org/docs/2.13/generated/torch.promote_types.html

    >>> import torchshim as torch
    >>> torch.promote_types(torch.int32, torch.float32)
    torch.float32
    """
    return promotion.promote_types(*args, **kwargs)


@public(overridden=BY_MODES)
def can_cast(*args: Any, **kwargs: Any) -> bool:
    """Whether promotion allows the cast from dtype `from_` to dtype `to`.

    https://docs.pytorch.org/docs/2.13/generated/torch.can_cast.html

    >>> import torchshim as torch
    >>> torch.can_cast(torch.float64, torch.int32)
    False
    """
    return promotion.can_cast(*args, **kwargs)


@public
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype that operators give for these two operands.

    >>> import torchshim as torch
    >>> torch.result_type(torch.tensor([1]), 1.5)
    torch.float32
    """
    operands = []
    for value in (tensor1, tensor2):
        if isinstance(value, TensorBase):
            meta = value._tmeta
            weight = DIMENSIONED if meta.shape else ZERO_DIM
            operands.append((meta.dtype, weight))
        elif is_number(value):
            operands.append((scalar_dtype(value), SCALAR))
        else:
            raise _mismatch(tensor1, tensor2)
    return result_dtype(operands)


@public(overridden=NEVER)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes have together; an integer is one length.

    Raises RuntimeError where lengths do not fit, ValueError where one is negative.

    >>> import torchshim as torch
    >>> torch.broadcast_shapes((2, 1), (3,), 1)
    torch.Size([2, 3])
    """
    given: list[Sequence[int]] = []
    for shape in shapes:
        if isinstance(shape, int):
            given.append((shape,))
        elif isinstance(shape, Sequence):
            given.append(shape)
        elif shape is not None:
            raise RuntimeError(
                "Input shapes should be of type ints, a tuple of ints, or a list of "
                f"ints, got {shape}"
            )
    common = [1] * max(map(len, given), default=0)
    for index, shape in enumerate(given):
        for dim in range(-1, -1 - len(shape), -1):
            length = shape[dim]
            if length in (1, common[dim]):
                continue
            if common[dim] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {length} at {dim}! "
                    f"Mismatching argument at index {index} had {shape}; but expected "
                    f"shape should be broadcastable to {common}"
                )
            if length < 0:
                raise ValueError(
                    "Attempting to broadcast a dimension with negative length!"
                )
            common[dim] = length
    return Size(common)


def _mismatch(*values: Any) -> TypeError:
    got = ", ".join(kind_of(v) for v in values)
    marked = ", ".join(f"!{kind_of(v)}!" for v in values)
    note = (
        "      didn't match because some of the arguments have invalid types: "
        f"({marked})"
    )
    signatures = (
        "Tensor tensor, Tensor other",
        "Number scalar, Tensor tensor",
        "Tensor tensor, Number other",
        "Number scalar1, Number scalar2",
    )
    return TypeError(
        f"result_type() received an invalid combination of arguments - got ({got}), "
        "but expected one of:\n" + "".join(f" * ({s})\n{note}\n" for s in signatures)
    )


@public
def _assert(condition: Any, message: Any) -> None:
    """AssertionError with the message where the condition is false.

    >>> import torchshim as torch
    >>> torch._assert(torch.tensor(True), "never seen")
    """
    if not condition:
        raise AssertionError(message)


@public(overridden=NEVER)
def _assert_tensor_metadata(
    a: Tensor,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
    dtype: Any = None,
    *,
    device: Any = None,
    layout: Any = None,
) -> None:
    """RuntimeError for a tensor that is of another shape or kind.

    >>> import torchshim as torch
    >>> torch._assert_tensor_metadata(torch.ones(2), [2], dtype=torch.float32)
    """
    if not isinstance(a, Tensor):
        raise TypeError(wrong("_assert_tensor_metadata", "a", 1, "Tensor", a))

    def differ(what: str, expected: Any, found: Any) -> None:
        raise RuntimeError(
            f"Tensor {what} mismatch! Expected: {expected}, Got: {found}"
        )

    if size is not None and tuple(size) != tuple(a.shape):
        differ("sizes", list(size), list(a.shape))
    if stride is not None and tuple(stride) != tuple(a.stride()):
        differ("strides", list(stride), list(a.stride()))
    if dtype is not None and dtype is not a.dtype:
        differ("dtype", dtype.scalar_name, a.dtype.cpp_name)
    if device is not None and as_device(device) != a.device:
        differ("device", as_device(device), a.device)
    if layout is not None and layout is not a.layout:
        differ("layout", LAYOUT_TEXTS[layout.name], LAYOUT_TEXTS[a.layout.name])


@public
def _shape_as_tensor(input: Any) -> Tensor:
    """The shape, as a tensor of whole numbers."""
    if not isinstance(input, Tensor):
        raise TypeError(wrong("_shape_as_tensor", "input", 1, "Tensor", input))
    return on_cpu(np.array(tuple(input.shape), np.int64))


@public(overridden=NEVER)
def typename(obj: Any, /) -> str:
    """The name of a value's type: for tensors that of the legacy tensor type.

    >>> import torchshim as torch
    >>> torch.typename(torch.ones(1))
    'torch.FloatTensor'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) or hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", None) or ""
    name = getattr(kind, "__qualname__", type(obj).__name__)
    if module in ("", "builtins", "__builtin__"):
        return name
    if module == "torchshim" or module.startswith("torchshim."):
        module = "torch" + module[len("torchshim") :]
    return f"{module}.{name}"
