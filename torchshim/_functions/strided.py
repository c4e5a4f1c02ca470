"""Views of a tensor's memory with any sizes and strides: `as_strided`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.op import REGISTRY
from torchshim._core.record import local
from torchshim._core.storage import bits_of, placement
from torchshim._derived import fns, public
from torchshim._functions._arguments import size_of
from torchshim._ops.view_geometry import memory_size
from torchshim._ops.view_memory import positions
from torchshim._tensor import Tensor


def root_of(tensor: Tensor) -> Tensor:
    """A tensor on the whole memory of this one."""
    storage = tensor._storage
    if storage is None or not tensor._path:
        return tensor
    base = tensor._view_of
    if base is not None and not base._path:
        return base
    root = object.__new__(Tensor)
    root._slot = -1
    root._tmeta = storage.meta
    root._array = None
    storage.add(root)
    return root


def _memory_of_each(tensor: Tensor) -> Tensor:
    """The memory that a tensor looks at; where it is mapped, from each example on."""
    root = root_of(tensor)
    mapped = dict(tensor._tmeta.batch).keys() - dict(root._tmeta.batch).keys()
    at: Any = tuple(root._tmeta.shape), root._tmeta.strides, root._tmeta.offset
    size = memory_size(*at)
    batch = []
    for op, args, k in tensor._path:
        if op is REGISTRY["_vmap_enter"] and args[1] in mapped:
            dim, level = args
            batch.append((at[0][dim], at[1][dim], level))
        found = op.view.geometry(*at, *args)
        at = found[k] if isinstance(found, list) else found
    if not batch:
        return root
    sizes, strides, levels = zip(*batch, strict=True)
    size -= sum((n - 1) * step for n, step, _ in batch)
    source = as_strided(root, (*sizes, size), (*strides, 1), 0)
    for level in levels:
        source = fns._vmap_enter(source, 0, level)
    return source


@public(method=True)
def as_strided(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A view of the input's memory with any sizes and strides.

    https://docs.pytorch.org/docs/2.13/generated/torch.as_strided.html

    >>> import torchshim as torch
    >>> torch.as_strided(torch.tensor([1, 2, 3, 4]), (2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """
    source, *rest = strided_arguments(input, size, stride, storage_offset)
    made = fns.strided_view(source, *rest)
    if source is not input:  # what the memory holds
        made = with_bits(made, bits_of(input))
    return made


def with_bits(tensor: Tensor, bits: tuple[str, ...]) -> Tensor:
    """A tensor of memory as it is, seen conjugated or negated."""
    for bit in bits:
        tensor = fns._conj(tensor) if bit == "conj" else fns._neg_view(tensor)
    return tensor


def strided_arguments(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None,
) -> tuple[Tensor, tuple[int, ...], tuple[int, ...], int, Any]:
    """What the operator `strided_view` gets for the arguments of `as_strided`."""
    size = size_of("as_strided", (), size)
    stride = size_of("as_strided", (), stride, "stride")
    shape, strides, offset = placement(input)
    start = offset if storage_offset is None else int(storage_offset)
    if len(size) != len(stride):
        if input._tmeta.batch:
            raise RuntimeError(
                "Tensor.as_strided(size, stride, ...): size and stride must have the "
                f"same length! Got size {list(size)} and stride {list(stride)}"
            )
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got "
            f"strides: {list(stride)}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start}")
    whole = input._tmeta if input._storage is None else input._storage.meta
    item = input._tmeta.dtype.itemsize
    have = memory_size(whole.shape, whole.strides, whole.offset)
    have = have * whole.dtype.itemsize // item
    need = memory_size(size, stride, start)
    if input._tmeta.batch:
        _check_reach((shape, strides, offset), size, stride, start)
    if need > have:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{start}, and itemsize {item} requiring a storage size of {need * item} "
            f"are out of bounds for storage of size {have * item}"
        )
    source = input
    if positions((shape, strides, offset), (size, stride, start)) is None:
        if input._tmeta.requires_grad and input._path and local.rec.grad:
            # PyTorch's gradient is that of the elements that both show.
            raise NotImplementedError(
                "as_strided(): gradients of memory that the tensor itself does not "
                "show are not supported"
            )
        source = _memory_of_each(input)
        if source._tmeta.dtype.is_complex and not input._tmeta.dtype.is_complex:
            source = fns.view_as_real(source)
        shape, strides, offset = placement(source)
        if (
            source._tmeta.dtype is not input._tmeta.dtype
            or positions((shape, strides, offset), (size, stride, start)) is None
        ):
            raise NotImplementedError(
                "as_strided(): memory that no tensor shows is not supported"
            )
    return source, size, stride, start, (strides, offset)


def _check_reach(example: Any, size: Any, stride: Any, start: int) -> None:
    """Refuses what would see other memory than an example's."""
    end, last = memory_size(size, stride, start), memory_size(*example)
    if 0 not in size and (end > last or start < example[2]):
        raise RuntimeError(
            f"result = tensor.as_strided({list(size)}, {list(stride)}, {start}) can "
            "access memory outside of `tensor`. `result` can access some memory in "
            f"range [{start}, {end}], but `tensor` can only access some memory in "
            f"range [{example[2]}, {last}]. This is not supported inside of vmap, "
            "please try to rewrite the `as_strided` call as a sequence of PyTorch view "
            "operations"
        )
