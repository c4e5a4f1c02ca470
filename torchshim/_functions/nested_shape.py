"""Views, pieces and joins of nested tensors of layout jagged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.layout import contiguous_format
from torchshim._core.ragged import SymInt
from torchshim._derived import fns, public
from torchshim._errors import warn_once
from torchshim._functions.composed import refreshed
from torchshim._functions.creation import empty
from torchshim._functions.joining import cat as _cat
from torchshim._functions.nested_construct import offsets_of
from torchshim._functions.nested_elements import on_values
from torchshim._functions.nested_nodes import renamed
from torchshim._functions.nested_tensor import (
    bounds_of,
    fits,
    handles,
    inner,
    inner_dim,
    is_jagged,
    njt,
    padded_length,
    refuse,
    strict,
    to_padded,
    wrapped,
)
from torchshim._functions.shape import _T_DEPRECATED
from torchshim._tensor import Tensor


def _dims_of(given: Sequence[Any]) -> tuple[Any, ...]:
    """Sizes or dimensions given one by one, or as one sequence."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        return tuple(given[0])
    return tuple(given)


# The batch ----------------------------------------------------------------------------


@handles("unbind")
def unbind(func: Any, input: Any, dim: int = 0) -> Any:
    """The tensors of the batch, as views of the values."""
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    begins, lengths = bounds_of(input)
    values, at = input.values(), input._ragged_idx - 1
    if input._lengths is None:
        if not lengths:
            return ()
        pieces = values.split(lengths, at)
        return tuple(renamed(part, "Unbind") for part in pieces)
    total = values.shape[at]
    if any(b + n > total for b, n in zip(begins, lengths, strict=True)):
        raise RuntimeError(
            "unbind(): nested tensor offsets and lengths do not match ragged_idx "
            "dimension"
        )
    pairs = zip(begins, lengths, strict=True)
    pieces = (values.narrow(at, begin, length) for begin, length in pairs)
    return tuple(renamed(part, "Unbind") for part in pieces)


@handles("__iter__")
def _iter(func: Any, self: Any) -> Any:
    return iter(self.unbind())


@handles("select")
def select(func: Any, input: Any, dim: int, index: int) -> Any:
    """As `torch.select`; of the batch it gives one tensor."""
    ndim = len(input._size)
    if wrapped(ndim, dim) == 0:
        begins, lengths = bounds_of(input)
        begin, length = tuple(begins)[index], lengths[index]
        part = input.values().narrow(input._ragged_idx - 1, begin, length)
        return renamed(part, "Select")
    at = inner_dim(input, dim, "select")
    if input._lengths is not None:
        raise ValueError(
            "select(): not yet supported on dim != 0 for non-contiguous nested tensor "
            "with holes"
        )
    moved = input._ragged_idx - (at < input._ragged_idx - 1)
    values = renamed(func(input._v, at, index), "Select")
    return input._like(values, ragged_idx=moved)


@handles("__getitem__")
def getitem(func: Any, self: Any, index: Any) -> Any:
    """Integers, slices, None and an ellipsis, one dimension after the other."""
    given = list(index) if isinstance(index, tuple) else [index]
    taken = sum(each is not None and each is not Ellipsis for each in given)
    if taken > len(self._size):
        raise IndexError(f"too many indices for tensor of dimension {len(self._size)}")
    if any(each is Ellipsis for each in given):
        at = next(i for i, each in enumerate(given) if each is Ellipsis)
        rest = len(self._size) - taken
        given[at : at + 1] = [_ALL] * rest
    made, dim = self, 0
    for each in given:
        if each is _ALL:
            dim += 1
        elif each is None:
            made, dim = made.unsqueeze(dim), dim + 1
        elif isinstance(each, slice):
            if is_jagged(made):
                strict(made, _SLICE)
                at = inner_dim(made, dim, "slice")
                made = made._like(made._v[(slice(None),) * at + (each,)])
            else:
                made = made[(slice(None),) * dim + (each,)]
            dim += 1
        elif isinstance(each, int) and not isinstance(each, bool):
            made = made.select(dim, each)
        elif isinstance(each, Tensor) and not each.ndim and not is_jagged(each):
            made = made.select(dim, int(each))
        else:
            refuse("indexing by tensors")
    return made


_ALL = object()
_SLICE = "slice_tensor(self: jt, dim: any?, start: any?, end: any?, step: any?)"


@handles("__setitem__")
def setitem(func: Any, self: Any, index: Any, value: Any) -> None:
    """Writes to what an index of integers, slices and an ellipsis gives."""
    first = index[0] if isinstance(index, tuple) and index else index
    count = self._size[0]
    if isinstance(first, int) and not -count <= first < count:
        raise IndexError(
            f"index {first} is out of bounds for dimension 0 with size {count}"
        )
    piece = self[index]
    if not is_jagged(piece):
        piece[...] = value
    elif is_jagged(value):
        piece.copy_(value)
    elif not isinstance(value, Tensor):
        piece.fill_(value)
    else:
        refuse("assignment of a dense tensor to a nested one")
    refreshed(self)


# Views --------------------------------------------------------------------------------


@handles("transpose", "swapaxes", "swapdims")
def transpose(func: Any, input: Any, dim0: int, dim1: int) -> Any:
    """As `torch.transpose`, of two dimensions other than the batch."""
    ndim, at = len(input._size), input._ragged_idx
    first, second = wrapped(ndim, dim0), wrapped(ndim, dim1)
    if at not in (first, second):
        one = inner_dim(input, first, "transpose")
        return input._like(func(input._v, one, inner_dim(input, second, "transpose")))
    if 0 in (first, second):
        raise ValueError(
            "Transpose is not supported on the batch dimension for jagged NT"
        )
    values = func(input._v, inner(first, at), inner(second, at))
    return input._like(values, ragged_idx=second if first == at else first)


@handles("permute")
def permute(func: Any, input: Any, *dims: Any, **named: Any) -> Any:
    """As `torch.permute`, the batch staying first."""
    given, ndim = _dims_of(dims or (named["dims"],)), len(input._size)
    if len(given) != ndim:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({ndim}) does not "
            f"match the length of the desired ordering of dimensions ({len(given)})."
        )
    order = [wrapped(ndim, dim) for dim in given]
    if len({*order}) != ndim:
        raise ValueError("permute(): duplicate dims are not allowed.")
    if input._lengths is not None:
        raise ValueError(
            "permute(): not supported on jagged layout nested tensor with holes"
        )
    if order[0] != 0:
        raise ValueError(
            "Permute is not supported on the batch dimension for jagged NT"
        )
    at = input._ragged_idx
    values = fns.permute(input._v, [inner(dim, at) for dim in order[1:]])
    return input._like(values, ragged_idx=order.index(at))


@handles("unsqueeze")
def unsqueeze(func: Any, input: Any, dim: int) -> Any:
    """As `torch.unsqueeze`, behind the batch."""
    at = inner_dim(input, dim, "unsqueeze", ragged=True, more=1)
    moved = input._ragged_idx + (at <= input._ragged_idx - 1)
    return input._like(func(input._v, at), ragged_idx=moved)


@handles("squeeze")
def squeeze(func: Any, input: Any, dim: Any = None) -> Any:
    """As `torch.squeeze`, of one dimension."""
    if dim is None or not isinstance(dim, int):
        refuse("squeeze of several dimensions")
    strict(input, "squeeze_dim(self: jt, dim: any)")
    at = inner_dim(input, dim, "squeeze")
    gone = input._v.shape[at] == 1 and at < input._ragged_idx - 1
    values = renamed(func(input._v, at), "Squeeze")
    return input._like(values, ragged_idx=input._ragged_idx - gone)


def _sizes(given: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    return _dims_of(given or (next(iter(named.values())),))


@handles("view", "reshape")
def view(func: Any, input: Any, *size: Any, **named: Any) -> Any:
    """As `Tensor.view`: the batch and the ragged dimension stay."""
    sizes = _sizes(size, named)
    if func.__name__ == "reshape" and not input.is_contiguous():
        input = input.clone(memory_format=contiguous_format)
    if len(sizes) == 1 and not isinstance(sizes[0], (int, SymInt)):
        refuse("view as another dtype")
    at, mine = input._ragged_idx, input._size
    if at != 1 and mine != sizes:
        raise RuntimeError(
            "view(): does not support ragged_idx != 1 except when inp._size == size. "
            f"inp._size is ({mine}) and size is ({list(sizes)})."
        )
    if len(sizes) < 3 or not fits(input, sizes):
        raise RuntimeError(f"view(): cannot view shape {mine} as {list(sizes)}")
    own = [input._v.shape[d - 1] if d == at else sizes[d] for d in range(1, len(sizes))]
    return input._like(renamed(func(input._v, own), "View"))


@handles("view_as", "reshape_as", "expand_as")
def _as_other(func: Any, self: Any, other: Any) -> Any:
    name = func.__name__.removesuffix("_as")
    if not is_jagged(self):
        values = self.expand_as(other._v)
        return other._like(values)
    return getattr(self, name)(*other.shape)


@handles("flatten")
def flatten(func: Any, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    """As `torch.flatten`, of dimensions behind the ragged one."""
    ndim = len(input._size)
    for dim in (start_dim, end_dim):
        inner_dim(input, dim, "flatten")
    first, last = wrapped(ndim, start_dim), wrapped(ndim, end_dim)
    if first == last:
        return input
    product: Any = 1
    for size in input._size[first : last + 1]:
        product = size * product
    return input.reshape(*input._size[:first], product, *input._size[last + 1 :])


@handles("unflatten")
def unflatten(func: Any, input: Any, dim: int, sizes: Any) -> Any:
    """As `torch.unflatten`, of a dimension behind the ragged one."""
    at = wrapped(len(input._size), dim)
    length = input._size[at]
    if isinstance(length, SymInt):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of "
            f"dim {at} ({length}) in the input tensor"
        )
    if at == 0:
        refuse("unflatten of the batch")
    # Another tensor in its place, for the errors and for what -1 is.
    shape = empty((1,) * at + (length,)).unflatten(at, sizes).shape[1:]
    return input.view(
        *input._size[:at], *shape[at - 1 : at - 1 + len(sizes)], *input._size[at + 1 :]
    )


@handles("expand")
def expand(func: Any, input: Any, *size: Any, **named: Any) -> Any:
    """As `Tensor.expand`, behind the ragged dimension."""
    sizes = _sizes(size, named)
    if not fits(input, sizes) or len(sizes) != len(input._size):
        raise RuntimeError(
            f"expand(): cannot expand shape {input._size} -> {list(sizes)}"
        )
    own = [-1 if d == input._ragged_idx else sizes[d] for d in range(1, len(sizes))]
    return input._like(input._v.expand(own))


@handles("broadcast_to")
def broadcast_to(func: Any, input: Any, size: Any) -> Any:
    """As `torch.broadcast_to`, to as many dimensions."""
    if len(size) != len(input._size):
        raise ValueError(
            "broadcast_to(): broadcasting to a higher-dim shape is currently not "
            "supported for nested tensors with the jagged layout"
        )
    return input.expand(*size)


@handles("broadcast_tensors")
def broadcast_tensors(func: Any, *tensors: Any) -> Any:
    """As `torch.broadcast_tensors`, of nested tensors of one structure."""
    whole = list(_dims_of(tensors))
    if not all(is_jagged(t) and fits(whole[0], t._size) for t in whole):
        refuse("broadcast_tensors of other than nested tensors of one structure")
    values = func(*(t._v for t in whole))
    return tuple(t._like(v) for t, v in zip(whole, values, strict=True))


@handles("narrow")
def narrow(func: Any, input: Any, dim: int, start: int, length: int) -> Any:
    """As `torch.narrow`, behind the ragged dimension."""
    strict(input, "narrow(self: jt, dim: any, start: any, length: any)")
    at = inner_dim(input, dim, "narrow")
    return input._like(func(input._v, at, start, length))


def _attribute(name: str) -> None:
    def get(self: Any) -> Any:
        ndim = len(self._size)
        if name == "T":
            if ndim != 2:
                warn_once(_T_DEPRECATED)
            return self.permute(*reversed(range(ndim)))
        return self.transpose(-2, -1)

    from torchshim._functions.nested_tensor import NestedTensor

    setattr(NestedTensor, name, property(get))


for _name in ("T", "mT"):
    _attribute(_name)


# Pieces and joins ---------------------------------------------------------------------


def _pieces(func: Any, input: Any, given: Any, dim: int, name: str) -> Any:
    at = inner_dim(input, dim, name)
    parts = func(input._v, given, at)
    if name == "chunk":
        parts = [renamed(part, "Chunk") for part in parts]
    return tuple(input._like(part) for part in parts)


_SPLITS = {
    "split": "split_tensor(self: jt, split_size: any, dim: any?)",
    "split_with_sizes": (
        "split_with_sizes_default(self: jt, split_sizes: any, dim: any?)"
    ),
}


@handles("split", "split_with_sizes", "tensor_split", "unsafe_split")
def split(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `torch.split`, behind the ragged dimension."""
    given = list(args)
    dim = kwargs.pop("dim", None)
    if not given:
        given = [next(iter(kwargs.values()))]
    if dim is None:
        dim = given[1] if len(given) > 1 else 0
    name = "split" if isinstance(given[0], int) else "split_with_sizes"
    strict(input, _SPLITS[name])
    return _pieces(func, input, given[0], dim, name)


@handles("chunk")
def chunk(func: Any, input: Any, chunks: int, dim: int = 0) -> Any:
    """As `torch.chunk`, of the batch or behind the ragged dimension."""
    strict(input, "chunk_default(self: jt, chunks: any, dim: any?)")
    if wrapped(len(input._size), dim) != 0:
        return _pieces(func, input, chunks, dim, "chunk")
    parts = input._offsets.diff().chunk(chunks)
    _, lengths = bounds_of(input)
    sizes, begin = [], 0
    for part in parts:
        sizes.append(sum(lengths[begin : begin + part.shape[0]]))
        begin += part.shape[0]
    values = input._v.split(sizes, input._ragged_idx - 1)
    offsets = [offsets_of(part) for part in parts]
    pairs = zip([renamed(v, "Chunk") for v in values], offsets, strict=True)
    return tuple(njt(v, o, None, input._ragged_idx) for v, o in pairs)


@handles("cat", "concat", "concatenate")
def cat(func: Any, tensors: Any, dim: int = 0, **options: Any) -> Any:
    """As `torch.cat`, behind the ragged dimension; dense ones are expanded."""
    if options.get("out") is not None:
        refuse("cat with out=")
    dim = options.get("axis", dim)
    first = next(t for t in tensors if is_jagged(t))
    whole = [t if is_jagged(t) else t.expand_as(first) for t in tensors]
    at = inner_dim(first, dim, "cat")
    return whole[0]._like(_cat([t._v for t in whole], at))


@handles("stack")
def stack(func: Any, tensors: Any, dim: int = 0, *, out: Any = None) -> Any:
    """As `torch.stack`, of nested tensors with one structure."""
    for each in tensors:
        if not is_jagged(each):
            raise RuntimeError("stack(): expected all nested tensors inputs")
        if len(each._size) != len(tensors[0]._size):
            raise RuntimeError(
                "stack(): expected all nested tensors to have the same dim"
            )
        if not fits(each, tensors[0]._size):
            raise RuntimeError(
                "stack(): expected all nested tensors to have the same nested structure"
            )
    at = inner_dim(tensors[0], dim, "stack", more=1)
    return tensors[0]._like(func([t._v for t in tensors], at))


@handles("diff")
def diff(func: Any, input: Any, n: int = 1, dim: int = -1, **options: Any) -> Any:
    """As `torch.diff`, behind the ragged dimension."""
    if any(value is not None for value in options.values()):
        refuse("diff with other tensors")
    strict(input, "narrow(self: jt, dim: any, start: any, length: any)")
    return input._like(func(input._v, n, inner_dim(input, dim, "diff")))


# Padding and masks --------------------------------------------------------------------


@public(namespaces=(), method=True)
def to_padded_tensor(
    self: Any, padding: float, output_size: Any = None, out: Any = None
) -> Any:
    """A tensor with one row for each tensor of a nested batch, padded at its end.

    https://docs.pytorch.org/docs/2.13/nested.html

    >>> import torchshim as torch
    >>> parts = [torch.ones(2), torch.ones(1)]
    >>> nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    >>> nested.to_padded_tensor(5.0)
    tensor([[1., 1.],
            [1., 5.]])
    """
    raise NotImplementedError("to_padded_tensor() is for nested tensors only")


@handles("to_padded_tensor")
def padded(
    func: Any, input: Any, padding: float, output_size: Any = None, out: Any = None
) -> Any:
    """As `torch.nested.to_padded_tensor`."""
    if out is not None:
        refuse("to_padded_tensor with out=")
    length = padded_length(input)
    if output_size is not None:
        length = output_size[input._ragged_idx]
    return to_padded(input, padding, length)


@handles("masked_select")
def masked_select(func: Any, input: Any, mask: Any) -> Any:
    """As `torch.masked_select`, which keeps the batch, of two dimensions."""
    if len(input._size) > 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if input.shape != mask.shape:
        raise RuntimeError(
            f"Mask with shape {mask.shape} is not compatible with input's shape "
            f"{input.shape}"
        )
    values = input._v.masked_select(mask._v)
    offsets = offsets_of(mask._v)[input._offsets]
    return njt(values, offsets, None, input._ragged_idx)


@handles("one_hot")
def one_hot(func: Any, tensor: Any, num_classes: int = -1) -> Any:
    """As `nn.functional.one_hot`."""
    return on_values(func, tensor, num_classes)
