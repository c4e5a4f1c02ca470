"""Views, pieces, padding and layers of nested tensors of layout strided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._derived import public
from torchshim._functions.composed import refreshed
from torchshim._functions.creation import placed
from torchshim._functions.joining import cat as _cat
from torchshim._functions.nested_nodes import renamed, viewed
from torchshim._functions.nested_strided import (
    Arrangement,
    check_contiguous,
    columns,
    contiguous,
    from_padded,
    greatest,
    handles,
    is_strided,
    of_list,
    parts_of,
    refuse,
    strided,
    to_padded,
    wrapped,
)

_LATER = (
    "at the moment if you need this feature, please open an issue on github describing "
    "your use case."
)


def _sizes(given: Sequence[Any]) -> tuple[int, ...]:
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        return tuple(given[0])
    return tuple(given)


# The batch ----------------------------------------------------------------------------


@handles("unbind")
def unbind(func: Any, input: Any, dim: int = 0) -> Any:
    """The tensors of the batch, as views of the buffer."""
    at = wrapped(input, dim)
    if at:
        raise RuntimeError(
            "NestedTensor can only be unbound along dimension 0 got dimension "
            f"{at} instead."
        )
    return tuple(renamed(part, "Unbind") for part in parts_of(input))


@handles("select")
def select(func: Any, input: Any, dim: int, index: int) -> Any:
    """As `torch.select`; of the batch it gives one tensor."""
    at, laid = wrapped(input, dim), input._arrangement
    if at == 0:
        count = len(laid.sizes)
        if not count:
            raise IndexError("You can only select when the NT is not empty.")
        if not -count <= index < count:
            raise IndexError(
                f"index {index} is out of bounds for dimension 0 with size {count}"
            )
        return renamed(parts_of(input)[index], "Select")
    lengths = laid.sizes[:, at - 1]
    for i, length in enumerate(lengths.tolist()):
        if not 0 <= index < length:
            raise IndexError(
                f"index {index} is out of bounds for dimension {at - 1} of the {i}th "
                f"constituent tensor with size {length}"
            )
    begins = laid.begins + index * laid.strides[:, at - 1]
    kept = [d for d in range(laid.ndim) if d != at - 1]
    made = Arrangement(laid.sizes[:, kept], laid.strides[:, kept], begins)
    return strided(viewed(input._v, "Select"), made)


@handles("__getitem__")
def getitem(func: Any, self: Any, index: Any) -> Any:
    """Integers; the rest of an index is that of one tensor of the batch."""
    given = list(index) if isinstance(index, tuple) else [index]
    if isinstance(given[0], int) and not isinstance(given[0], bool):
        if len(given) > self.dim():
            raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
        part = self.select(0, given[0])
        if len(given) == 1:
            return part
        try:
            return part[tuple(given[1:])]
        except IndexError:  # the batch counts in what an error says of dimensions
            return part.detach()[None][(0, *given[1:])]
    if given == [None]:
        return self.unsqueeze(0)
    if given[0] is Ellipsis and all(type(each) is int for each in given[1:]):
        made = self
        for each in reversed(given[1:]):
            made = made.select(made.dim() - 1, each)
        return made
    refuse("indexing by slices or tensors")


@handles("__setitem__")
def setitem(func: Any, self: Any, index: Any, value: Any) -> None:
    """Writes to one tensor of the batch, or to a piece of it."""
    if not isinstance(index, tuple) or len(index) < 2:
        raise RuntimeError(
            "Internal error: NestedTensorImpl doesn't support sizes. Please file an "
            "issue."
        )
    piece = self[index]
    if is_strided(piece) or is_strided(value):
        refuse("assignment to several tensors of the batch")
    piece[...] = value
    refreshed(self)


@handles("narrow")
def narrow(func: Any, input: Any, dim: int, start: int, length: int) -> Any:
    """As `torch.narrow`, of the batch."""
    at, laid = wrapped(input, dim), input._arrangement
    if at:
        raise RuntimeError(
            f"narrow(): only dim=0 supported for nested tensors, but got: {at}"
        )
    count = len(laid.sizes)
    if start + length > count:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({count})."
        )
    rows = slice(start, start + length)
    made = Arrangement(laid.sizes[rows], laid.strides[rows], laid.begins[rows])
    return strided(viewed(input._v, "Narrow"), made)


@handles("cat", "concat", "concatenate")
def cat(func: Any, tensors: Any, dim: int = 0, **options: Any) -> Any:
    """As `torch.cat`, of the batch."""
    if options.get("out") is not None:
        refuse("cat with out=")
    at = dim % tensors[0].dim() if is_strided(tensors[0]) else dim
    wrapped(next(t for t in tensors if is_strided(t)), dim)
    if at:
        return _beside(tensors, at)
    for each in tensors:
        if not is_strided(each):
            raise RuntimeError("Expected each tensor in given list to be nested.")
        check_contiguous(each, "Expected each tensor in given list to be contiguous.")
    sizes = np.concatenate([t._arrangement.sizes for t in tensors])
    return strided(_cat([contiguous(t)._v for t in tensors]), Arrangement(sizes))


def _beside(tensors: Sequence[Any], dim: int) -> Any:
    """Nested tensors beside each other, in a dimension that has one length in each."""
    views: list[Any] = []
    first: Any = None
    for each in tensors:
        if not is_strided(each):
            raise RuntimeError("cat(): expected each tensor in given list to be nested")
        check_contiguous(each, "cat(): only contiguous nested tensors are supported")
        laid = each._arrangement
        first = first or laid
        if (
            laid.sizes.shape != first.sizes.shape
            or (laid.sizes[:, :1] != first.sizes[:, :1]).any()
        ):
            raise RuntimeError(
                "cat(): expected all nested tensors to have matching ragged structures "
                "outside of the concatenated dim"
            )
        lengths = [laid.common(d) for d in range(1, laid.ndim)]
        if -1 in lengths:
            raise RuntimeError(
                "cat(): only nested tensors with a single ragged dim next to the batch "
                "dim are supported"
            )
        views.append(contiguous(each)._v.view(-1, *lengths))
    if dim == 1:
        refuse("cat along the ragged dimension")
    joined = _cat(views, dim - 1)
    sizes = columns(first, first.sizes[:, 0], *joined.shape[1:])
    return strided(joined.reshape(-1), Arrangement(sizes))


# Views --------------------------------------------------------------------------------


def _swapped(tensor: Any, order: list[int]) -> Any:
    laid = tensor._arrangement
    made = Arrangement(laid.sizes[:, order], laid.strides[:, order], laid.begins)
    return strided(viewed(tensor._v, "Transpose"), made)


@handles("transpose", "swapaxes", "swapdims")
def transpose(func: Any, input: Any, dim0: int, dim1: int) -> Any:
    """As `torch.transpose`, of two dimensions other than the batch."""
    a, b = wrapped(input, dim0), wrapped(input, dim1)
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    order = list(range(input._arrangement.ndim))
    order[a - 1], order[b - 1] = order[b - 1], order[a - 1]
    return _swapped(input, order)


@handles("unsqueeze")
def unsqueeze(func: Any, input: Any, dim: int) -> Any:
    """As `torch.unsqueeze`, behind the batch."""
    at, laid = wrapped(input, dim, 1), input._arrangement
    if at == 0:
        raise RuntimeError(
            "unsqueeze(): For nested tensors, unsqueezing dimension 0 is not supported "
            f"{_LATER}"
        )
    if at > laid.ndim:
        step: Any = 1
    else:
        step = laid.sizes[:, at - 1] * laid.strides[:, at - 1]
    sizes = np.insert(laid.sizes, at - 1, 1, 1)
    strides = np.insert(laid.strides, at - 1, step, 1)
    return strided(
        viewed(input._v, "Unsqueeze"), Arrangement(sizes, strides, laid.begins)
    )


@handles("squeeze")
def squeeze(func: Any, input: Any, dim: Any = None) -> Any:
    """As `torch.squeeze`, of one dimension."""
    if dim is None:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeeze without the dim argument is not "
            "supported at the moment, however you can use squeeze(Tensor self, int "
            f"dim) instead {_LATER.removeprefix('at the moment ')}"
        )
    at, laid = wrapped(input, dim), input._arrangement
    if at == 0:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing dimension 0 is not supported "
            f"{_LATER}"
        )
    if laid.common(at - 1) != 1:
        return input
    if laid.ndim == 1:
        raise RuntimeError(
            "squeeze(): For nested tensors, squeezing a nested tensor of singleton "
            "tensors is not supported at the moment, if you need this feature, please "
            "open an issue on githubdescribing your use case."
        )
    sizes = np.delete(laid.sizes, at - 1, 1)
    strides = np.delete(laid.strides, at - 1, 1)
    return strided(
        viewed(input._v, "Squeeze"), Arrangement(sizes, strides, laid.begins)
    )


@handles("view", "reshape")
def view(func: Any, input: Any, *size: Any, **named: Any) -> Any:
    """As `Tensor.view`; -1 is the length that a dimension has."""
    sizes, name = _sizes(size or tuple(named.values())), func.__name__
    if not all(isinstance(n, int) for n in sizes):
        refuse("view as another dtype")
    laid = input._arrangement
    if not sizes:
        raise RuntimeError("shape '[]' is invalid for a nested tensor")
    if not len(laid.sizes):
        raise RuntimeError("empty nested tensor cannot be reshaped")
    if sizes[0] != len(laid.sizes):
        raise RuntimeError(
            f"{name}: For now nested {name} cannot change or infer the implicit batch "
            "dimension"
        )
    made = [_reshaped(laid, i, sizes) for i in range(len(laid.sizes))]
    if (laid.sizes.shape == np.shape(made)) and (laid.sizes == made).all():
        return strided(viewed(input._v, "View"), laid)
    if not laid.contiguous:
        if name == "view":
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at "
                "least one dimension spans across two contiguous subspaces). Use "
                ".reshape(...) instead."
            )
        input = contiguous(input)
    return strided(viewed(input._v, "View"), Arrangement(made))


def _reshaped(laid: Arrangement, i: int, sizes: tuple[int, ...]) -> list[int]:
    old, count = laid.sizes[i].tolist(), int(laid.counts[i])
    made, inferred = [], []
    for at, length in enumerate(sizes[1:]):
        if length < -1:
            raise RuntimeError(f"invalid shape dimension {length}")
        if length != -1:
            made.append(length)
        elif at < len(old):
            made.append(old[at])
            inferred.append(at)
        else:
            raise RuntimeError("nested tensor does not infer shape")
    if len(made) > len(old) and len(inferred) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if int(np.prod(made, dtype=np.int64)) != count:
        raise RuntimeError(
            f"shape '{list(sizes)}' is invalid for input of size {count}"
        )
    return made


# Pieces of the last dimension ---------------------------------------------------------


def _last(tensor: Any, lengths: Sequence[int], node: str) -> tuple[Any, ...]:
    laid, begin, made = tensor._arrangement, 0, []
    for length in lengths:
        sizes = columns(laid, *laid.sizes.T[:-1], length)
        begins = laid.begins + begin * laid.strides[:, -1]
        arrangement = Arrangement(sizes, laid.strides, begins)
        made.append(strided(viewed(tensor._v, node), arrangement))
        begin += length
    return tuple(made)


@handles("chunk")
def chunk(func: Any, input: Any, chunks: int, dim: int = 0) -> Any:
    """As `torch.chunk`, of the last dimension, into equal pieces."""
    at = wrapped(input, dim)
    if at != input.dim() - 1 or at == 0:
        raise RuntimeError(
            "Chunk for nested tensors is currently only supported for the last "
            "dimension."
        )
    check_contiguous(input, "chunk expects `self` to be contiguous.")
    length = input.size(at)
    if length % chunks:
        raise RuntimeError(
            "Chunk for nested tensors is only supported for nested tensors with "
            f"trailing dimension divisible by chunks, got: {length} % {chunks} != 0"
        )
    return _last(input, [length // chunks] * chunks, "Chunk")


@handles("split", "split_with_sizes")
def split(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `torch.split`, of the last dimension by sizes."""
    given = list(args)
    dim = kwargs.pop("dim", given[1] if len(given) > 1 else 0)
    lengths = given[0] if given else next(iter(kwargs.values()))
    if isinstance(lengths, int):
        refuse("split into pieces of one size")
    at = wrapped(input, dim)
    if at != input.dim() - 1 or at == 0:
        raise RuntimeError(
            "split_with_sizes for nested tensors is currently only supported for the "
            "last dimension."
        )
    check_contiguous(input, "split_with_sizes expects `self` to be contiguous.")
    length = input.size(at)
    if sum(lengths) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input "
            f"tensor's size at dimension {at}), but got split_sizes={list(lengths)}"
        )
    return _last(input, lengths, "SplitWithSizes")


# Padding ------------------------------------------------------------------------------


@handles("to_padded_tensor")
def padded(
    func: Any, input: Any, padding: float, output_size: Any = None, out: Any = None
) -> Any:
    """As `torch.nested.to_padded_tensor`."""
    if out is not None:
        refuse("to_padded_tensor with out=")
    laid = input._arrangement
    if not len(laid.sizes):
        return input._v
    if not laid.contiguous:
        raise RuntimeError(
            "for now to_padded_tensor only supports contiguous nested tensor"
        )
    if laid.sizes.shape[1] and not input.numel():
        raise RuntimeError(
            "to_padded_tensor: at least one constituent tensor should have non-zero "
            "numel"
        )
    size = greatest(input)
    if output_size is not None:
        if len(output_size) != input.dim():
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting "
                "is not supported."
            )
        own = len(laid.sizes), *size
        if any(a < b for a, b in zip(output_size, own, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. "
                "Truncation is not supported."
            )
        size = tuple(output_size[1:])
    return to_padded(input, padding, size)


@public
def _nested_tensor_from_mask(t: Any, mask: Any, mask_check: bool = True) -> Any:
    """A nested tensor of the leading steps of each row of a batch that a mask has.

    RuntimeError where True comes after False in a row of the mask.

    >>> import torchshim as torch
    >>> mask = torch.tensor([[True, False], [True, True]])
    >>> nested = torch._nested_tensor_from_mask(torch.ones(2, 2, 3), mask)
    >>> [part.shape for part in nested.unbind()]
    [torch.Size([1, 3]), torch.Size([2, 3])]
    """
    aligned = _nested_tensor_from_mask_left_aligned(t, mask)
    if mask_check and not aligned:
        raise RuntimeError("Mask must be left-aligned without gaps")
    lengths = mask.sum(1).tolist()
    return of_list([row[:length] for row, length in zip(t, lengths, strict=True)])


@public
def _nested_tensor_from_mask_left_aligned(t: Any, mask: Any) -> bool:
    """Whether no True comes after False in the rows of a mask.

    >>> import torchshim as torch
    >>> mask = torch.tensor([[False, True]])
    >>> torch._nested_tensor_from_mask_left_aligned(torch.ones(1, 2, 3), mask)
    False
    """
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(
            "Expected mask to be of ScalarType Bool, but got "
            f"{mask.dtype.scalar_name} instead."
        )
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if mask.shape != t.shape[:2]:
        raise RuntimeError("Mask size should match input size")
    host = mask.detach().cpu().numpy()
    return bool((host[:, :-1] | ~host[:, 1:]).all())


@public
def _nested_from_padded(
    padded: Any, cpu_nested_shape_example: Any, fuse_transform_0213: bool = False
) -> Any:
    """A nested tensor of the leading elements of each row of a padded tensor.

    Their sizes are the rows of `cpu_nested_shape_example`.

    >>> import torchshim as torch
    >>> sizes = torch.tensor([[1], [2]])
    >>> torch._nested_from_padded(torch.ones(2, 3), sizes).size(0)
    2
    """
    if fuse_transform_0213:
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    return from_padded(padded, Arrangement(cpu_nested_shape_example.numpy()))


@public
def _nested_view_from_buffer(
    self: Any, nested_size: Any, nested_strides: Any, offsets: Any
) -> Any:
    """A nested tensor on the memory of a tensor of one dimension.

    The rows of `nested_size` and `nested_strides` are those of its tensors, `offsets`
    says where each begins.

    >>> import torchshim as torch
    >>> sizes, strides = torch.tensor([[1], [2]]), torch.tensor([[1], [1]])
    >>> offsets = torch.tensor([0, 1])
    >>> torch._nested_view_from_buffer(torch.arange(3), sizes, strides, offsets)[1]
    tensor([1, 2])
    """
    parts = [part.numpy() for part in (nested_size, nested_strides, offsets)]
    return strided(viewed(self, "NestedViewFromBuffer"), Arrangement(*parts))


@public
def _nested_compute_contiguous_strides_offsets(nested_size: Any) -> tuple[Any, Any]:
    """The strides and beginnings of tensors that lie one after the other.

    >>> import torchshim as torch
    >>> torch._nested_compute_contiguous_strides_offsets(torch.tensor([[2, 3], [1, 4]]))
    (tensor([[3, 1],
            [4, 1]]), tensor([0, 6]))
    """
    laid = Arrangement(nested_size.numpy())
    cpu = nested_size.device
    return placed(laid.strides, cpu), placed(laid.begins, cpu)
