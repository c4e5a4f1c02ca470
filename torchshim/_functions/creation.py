"""Tensors from sizes and numbers: `zeros`, `full`, `arange`, `linspace`, `*_like`, …

https://docs.pytorch.org/docs/2.13/torch.html#creation-ops. Where nothing is being
recorded (a model is being built) a tensor is made at once, as an array; within a
recording its making is recorded, so that the program makes it.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from torchshim._core import dtypes
from torchshim._core.determinism import determinism
from torchshim._core.device import get_default_device
from torchshim._core.layout import (
    contiguous_format,
    format_strides,
    memory_format,
    preserve_format,
    strided,
)
from torchshim._core.meta import elementwise_strides
from torchshim._core.no_data import NoData
from torchshim._core.placement import put
from torchshim._core.promotion import scalar_dtype
from torchshim._core.record import local, untracked
from torchshim._core.shared import frozen
from torchshim._derived import fns, public
from torchshim._functions._arguments import (
    check_gradient,
    check_options,
    check_room,
    check_size,
    device_of,
    dtype_of,
    missing,
    number_of,
    size_of,
    tensor_argument,
    wrong,
)
from torchshim._functions._values import fitting, unchosen
from torchshim._ops import creation as ops
from torchshim._out import refuse_followed
from torchshim._tensor import Tensor, from_array, set_requires_grad


def place(array: np.ndarray, device: Any) -> Any:
    """An array that nobody will write to, on a device."""
    if device.type == "cpu":
        return frozen(array, once=local.rec.state is not local.rec.root)
    if device.type == "meta":
        return NoData(array.shape, array.dtype)
    with jax.enable_x64(True):
        return put(array, device)


def placed(array: np.ndarray, device: Any) -> Tensor:
    """A new tensor on a device, of an array that nobody will write to."""
    array = np.asarray(array, order="C")
    return from_array(place(array, device), device=device)


def _constant(size: tuple[int, ...], value: Any, kind: Any, device: Any) -> Any:
    """An array filled with one number, on a device."""
    if device.type == "meta":
        return NoData(size, kind)
    zero = value == 0 and value.__class__ is int
    array = np.zeros(size, kind) if zero else np.full(size, ops.constant(value, kind))
    return place(array, device)


def at_once(device: Any) -> bool:
    """Whether a tensor is to be made now rather than by the running recording."""
    rec = local.rec
    if not rec.state.next:
        rec.cut(())  # an event of it would be new
    if rec.state is rec.root or rec.state.device not in (None, device):
        return True
    return device is not get_default_device()


def finish(tensor: Tensor, requires_grad: bool) -> Tensor:
    """A recorded result made the leaf that was asked for."""
    if requires_grad:
        check_gradient(tensor.dtype, True)
        set_requires_grad(tensor, True)
    return tensor


def filled(
    function: str,
    size: tuple[int, ...],
    value: Any,
    dtype: dtypes.dtype,
    device: Any,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor filled with one number; None: with what nobody has chosen."""
    check_size(function, size)
    check_room(size, dtype, device)
    check_gradient(dtype, requires_grad)
    kind = dtypes.array_dtype(dtype)
    single = size.count(1) == len(size)
    value = unchosen(dtype) if value is None else fitting(value, dtype, wide=single)
    if at_once(device):
        array = _constant(size, value, kind, device)
        return from_array(array, requires_grad, device=device)
    return finish(fns.full(size, value, dtype, device), requires_grad)


def into(out: Tensor, result: Tensor) -> Tensor:
    """`out=` of a creation function: resized without a warning, and filled."""
    from torchshim._functions.resizing import take_size

    take_size(out, result._tmeta.shape)
    with untracked():
        out.copy_(result)
    return flagged(out, result.requires_grad)


def flagged(out: Tensor, requires_grad: Any) -> Tensor:
    """`out=` of a creation function, filled: it requires grad if that is asked for."""
    wanted = bool(requires_grad)
    if wanted != out.requires_grad:
        check_gradient(out._tmeta.dtype, wanted)
        out.requires_grad_(wanted)
    return out


def out_dtype(function: str, out: Any, dtype: Any, default: Any) -> Any:
    """The dtype of a result, given `out` and `dtype`."""
    dtype = dtype_of(function, dtype)
    if out is None:
        return default if dtype is None else dtype
    tensor_argument(function, "out", 0, out)
    have = out._tmeta.dtype
    if dtype is not None and dtype is not have:
        raise RuntimeError(
            f"dtype {dtype.scalar_name} does not match dtype of out parameter "
            f"({have.scalar_name})"
        )
    if function not in _RESIZING:
        refuse_followed(local.rec, f"aten::{function}", (out,))
    return have


# What refuses an `out` that requires grad in `resize_`'s words.
_RESIZING = frozenset({"empty", "randn"})


def _of_size(
    function: str,
    value: int | None,
    given: Any,
    size: Any,
    out: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    requires_grad: Any,
) -> Tensor:
    shape = size_of(function, given, size)
    if layout is not None and layout is not strided:
        # Sparse tensors are made of tensors that are made here.
        from torchshim._functions.sparse_construct_compressed import of_size

        rest = dtype, device, pin_memory, requires_grad
        return of_size(function, value, shape, out, layout, *rest)
    check_options(function, layout, pin_memory, requires_grad)
    dtype = out_dtype(function, out, dtype, dtypes.get_default_dtype())
    device = device_of(function, device)
    if out is not None and value is None:
        out.resize_(shape)
        if determinism.fills:
            out.fill_(unchosen(dtype))
        return flagged(out, requires_grad)
    result = filled(function, shape, value, dtype, device, bool(requires_grad))
    return result if out is None else into(out, result)


@public
def zeros(
    *args: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros of the given size.

    >>> import torchshim as torch
    >>> torch.zeros(2, 1)
    tensor([[0.],
            [0.]])
    """
    return _of_size(
        "zeros", 0, args, size, out, dtype, layout, device, pin_memory, requires_grad
    )


@public
def ones(
    *args: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones of the given size.

    >>> import torchshim as torch
    >>> torch.ones(2, dtype=torch.int64)
    tensor([1, 1])
    """
    return _of_size(
        "ones", 1, args, size, out, dtype, layout, device, pin_memory, requires_grad
    )


@public
def empty(
    *args: Any,
    size: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: memory_format | None = None,
) -> Tensor:
    """A tensor whose values nobody has chosen: zeros, unless determinism is asked for.

    >>> import torchshim as torch
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    rest = dtype, layout, device, pin_memory, requires_grad
    if memory_format is None:
        return _of_size("empty", None, args, size, out, *rest)
    if out is not None:
        check_options("empty", layout, pin_memory, requires_grad)
        raise RuntimeError(
            "'memory_format' argument is incompatible with 'out' tensor argument"
        )
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    if memory_format is contiguous_format:
        return _of_size("empty", None, args, size, None, *rest)
    shape = size_of("empty", args, size)
    return empty_strided(
        shape,
        format_strides(shape, memory_format),
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        requires_grad=requires_grad,
    )


@public
def full(
    size: Any = None,
    fill_value: Any = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor filled with one number, which decides the dtype where none is given.

    >>> import torchshim as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    if size is None or fill_value is None:
        raise missing(
            "full",
            *(n for n, v in (("size", size), ("fill_value", fill_value)) if v is None),
        )
    if not isinstance(size, (tuple, list)):
        raise TypeError(wrong("full", "size", 1, "tuple of ints", size))
    shape = size_of("full", (size,))
    value = number_of("full", "fill_value", 2, fill_value)
    check_options("full", layout, pin_memory, requires_grad)
    if isinstance(fill_value, np.bool_):
        value = float(value)  # as PyTorch takes it
    dtype = out_dtype("full", out, dtype, None) or _implied(value)
    device = device_of("full", device)
    result = filled("full", shape, value, dtype, device, bool(requires_grad))
    return result if out is None else into(out, result)


def _implied(value: Any) -> dtypes.dtype:
    """The dtype of a tensor made from a number alone."""
    # A number that int64 cannot hold is refused by `fitting`.
    return dtypes.int64 if value.__class__ is int else scalar_dtype(value)


@public
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of unchosen values (zeros) with these strides.

    >>> import torchshim as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    function = "empty_strided"
    shape = size_of(function, (size,))
    strides = size_of(function, (stride,), name="stride")
    check_options(function, layout, pin_memory, requires_grad)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of "
            f"strides ({len(strides)})"
        )
    check_size(function, shape)
    if any(s < 0 for s in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(strides)}"
        )
    dtype = dtype_of(function, dtype) or dtypes.get_default_dtype()
    check_gradient(dtype, requires_grad)
    device = device_of(function, device)
    if 0 in shape:
        extent = 0
    else:
        extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if extent == math.prod(shape):
        made = _constant(shape, unchosen(dtype), dtypes.array_dtype(dtype), device)
        return from_array(made, bool(requires_grad), device=device, strides=strides)
    # Gaps or overlaps: another way to look at a row of memory.
    with untracked():
        memory = filled(function, (extent,), None, dtype, device)
        made = fns.detach(memory.as_strided(shape, strides))
    made._view_of = None
    return finish(made, bool(requires_grad))


# Like another tensor ------------------------------------------------------------------


def _like(function: str, input: Any, value: Any, *options: Any) -> Tensor:
    return for_examples(_made_like(function, input, value, *options), input)


def for_examples(made: Tensor, like: Tensor) -> Tensor:
    """Under `vmap`: a new tensor with a value for each example that `like` has."""
    return fns._vmap_as(made, like) if like._tmeta.batch else made


def _made_like(
    function: str,
    input: Any,
    value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    requires_grad: Any,
    wanted: Any,
) -> Tensor:
    tensor_argument(function, "input", 1, input)
    check_options(function, layout, pin_memory, requires_grad)
    meta = input._tmeta
    dtype = dtype_of(function, dtype) or meta.dtype
    where = meta.device if device is None else device_of(function, device)
    shape = tuple(meta.shape)
    check_gradient(dtype, requires_grad)
    if wanted is None:
        wanted = preserve_format
    if wanted is preserve_format and not meta.contiguous:
        strides = elementwise_strides(shape, [(shape, meta.strides)])
    else:
        strides = format_strides(shape, wanted)
    single = shape.count(1) == len(shape)
    value = unchosen(dtype) if value is None else fitting(value, dtype, wide=single)
    if at_once(where):
        made = _constant(shape, value, dtypes.array_dtype(dtype), where)
        return from_array(made, bool(requires_grad), device=where, strides=strides)
    if wanted is contiguous_format or (meta.contiguous and wanted is preserve_format):
        return filled(function, shape, value, dtype, where, bool(requires_grad))
    if wanted is preserve_format:
        return finish(fns.full_like(input, value, dtype), bool(requires_grad))
    made = fns.full_like_channels_last(input, value, dtype)
    return finish(made, bool(requires_grad))


@public
def zeros_like(
    input: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """Zeros with the size, dtype, device and memory order of `input`.

    >>> import torchshim as torch
    >>> torch.zeros_like(torch.ones(2))
    tensor([0., 0.])
    """
    if input is None:
        raise missing("zeros_like", "input")
    if layout not in (None, strided) and memory_format is preserve_format:
        dtype = input._tmeta.dtype if dtype is None else dtype
        device = input.device if device is None else device
        rest = layout, device, pin_memory, requires_grad
        return _of_size("zeros_like", 0, (), tuple(input.shape), None, dtype, *rest)
    rest = layout, device, pin_memory, requires_grad, memory_format
    return _like("zeros_like", input, 0, dtype, *rest)


@public
def ones_like(
    input: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """Ones with the size, dtype, device and memory order of `input`.

    >>> import torchshim as torch
    >>> torch.ones_like(torch.tensor([3, 4]))
    tensor([1, 1])
    """
    if input is None:
        raise missing("ones_like", "input")
    rest = layout, device, pin_memory, requires_grad, memory_format
    return _like("ones_like", input, 1, dtype, *rest)


@public
def empty_like(
    input: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """A tensor of chosen size and unchosen values (zeros), as `input`'s.

    >>> import torchshim as torch
    >>> torch.empty_like(torch.ones(2)).shape
    torch.Size([2])
    """
    if input is None:
        raise missing("empty_like", "input")
    rest = layout, device, pin_memory, requires_grad, memory_format
    return _like("empty_like", input, None, dtype, *rest)


@public
def full_like(
    input: Any = None,
    fill_value: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = preserve_format,
) -> Tensor:
    """One number everywhere, with the size, dtype and memory order of `input`.

    >>> import torchshim as torch
    >>> torch.full_like(torch.ones(2), 3)
    tensor([3., 3.])
    """
    if input is None or fill_value is None:
        given = ("input", input), ("fill_value", fill_value)
        raise missing("full_like", *(n for n, v in given if v is None))
    value = number_of("full_like", "fill_value", 2, fill_value)
    rest = layout, device, pin_memory, requires_grad, memory_format
    return _like("full_like", input, value, dtype, *rest)


@public
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor of unchosen values, dense in memory, its dimensions in this order there.

    >>> import torchshim as torch
    >>> torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    function = "empty_permuted"
    shape = size_of(function, (size,))
    order = size_of(function, (physical_layout,), name="physical_layout")
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the "
            f"physical_layout; i.e. len(size) = {len(shape)} is not equal to "
            f"len(physical_layout) = {len(order)}"
        )
    for i, d in enumerate(order):
        if not 0 <= d < len(shape):
            raise RuntimeError(
                "Dimension out of range (expected to be between 0 and "
                f"{len(shape) - 1}, but got {d} at index {i}).  NB: negative dims not "
                "currently supported; file an issue if you want it."
            )
        if d in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return empty_strided(
        shape,
        tuple(strides),
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )
