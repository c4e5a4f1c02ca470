"""Views of pieces of a tensor: selecting, slicing, splitting, iterating."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from numbers import Number
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.record import local
from torchshim._core.storage import TensorBase, placement
from torchshim._derived import fns, public
from torchshim._functions._arguments import as_index, kind_of, number_of, unfit
from torchshim._functions._family import described
from torchshim._functions.indexing import basic
from torchshim._ops.splits import even_sizes
from torchshim._ops.view_geometry import KEEP, PICK, wrap_dim
from torchshim._overrides import overriding
from torchshim._refusal import refuse
from torchshim._tensor import Tensor


@public(method=True)
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One slice along a dimension, as a view.

    https://docs.pytorch.org/docs/2.13/generated/torch.select.html

    >>> import torchshim as torch
    >>> torch.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    dim, at = selected(input, dim, index)
    return basic(input, (at,), (KEEP,) * dim + (PICK,))


def selected(input: Tensor, dim: int, index: int) -> tuple[int, int]:
    """The dimension and the index of `select`, as numbers from 0 up."""
    shape = input._tmeta.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    at = as_index(index, single=True)
    if at is None:
        raise TypeError(
            f"select(): argument 'index' (position 3) must be int, not {kind_of(index)}"
        )
    n = shape[dim]
    if not -n <= at < n:
        raise IndexError(
            f"select(): index {at} out of range for tensor of size {list(shape)} at "
            f"dimension {dim}"
        )
    return dim, at + n if at < 0 else at


def piece(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A range of a dimension (positive, in range), as a view."""
    return basic(input, (start,), (KEEP,) * dim + ((length, 1),))


@public(method=True)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A range of a dimension, as a view.

    https://docs.pytorch.org/docs/2.13/generated/torch.narrow.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2, 3, 4]).narrow(0, 1, 2)
    tensor([2, 3])
    """
    dim, start = narrowed(input, dim, start, length)
    return piece(input, dim, start, length)


def narrowed(input: Tensor, dim: int, start: Any, length: int) -> tuple[int, int]:
    """The dimension and the start of `narrow`, as numbers from 0 up."""
    shape = input._tmeta.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, TensorBase) and (
        start._tmeta.shape
        or start._tmeta.dtype.is_floating_point
        or start._tmeta.dtype is dtypes.bool_
    ):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start, length = _whole(start), _whole(length)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    dim = wrap_dim(dim, len(shape))
    n = shape[dim]
    if not -n <= start <= n:
        raise IndexError(
            f"start out of range (expected to be in range of [-{n}, {n}], but got "
            f"{start})"
        )
    if start < 0:
        start += n
    if start > n - length:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({n})."
        )
    return dim, start


def _whole(value: Any) -> int:
    """An integer; TypeError for anything else, for which the parser has its words."""
    if value.__class__ is int:
        return value
    found = as_index(value, single=True)
    if found is None:
        raise TypeError(f"an int was expected, not {kind_of(value)}")
    return found


def has_history(input: Tensor) -> bool:
    """Whether views of this tensor are differentiable now."""
    return input._tmeta.requires_grad and local.rec.grad


def pieces_of(input: Tensor, sizes: Sequence[int], dim: int, op: Any) -> Any:
    """Neighbouring pieces of a dimension.

    Without history each is a view of its own, whose start may become a runtime scalar:
    a loop over the pieces of a data set then compiles one program.
    """
    if has_history(input):
        return op(input, tuple(sizes), dim)
    found, start = [], 0
    for n in sizes:
        found.append(one_of_several(piece(input, dim, start, n)))
        start += n
    return tuple(found)


def one_of_several(view: Tensor) -> Tensor:
    """A view that PyTorch makes together with others: its writes are restricted."""
    if local.rec.grad and view._view_note != "inference":
        view._view_note = "multi"
    return view


def splittable(input: Tensor, name: str, dim: int) -> int:
    """The dimension to split, as a number from 0 up."""
    shape = input._tmeta.shape
    if not shape:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")
    return wrap_dim(dim, len(shape))


def checked_sizes(input: Tensor, sizes: Sequence[int], dim: int) -> list[int]:
    """The sizes of pieces, which must add up to the dimension's."""
    sizes = list(map(_whole, sizes))
    n = input._tmeta.shape[dim]
    if any(s < 0 for s in sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but "
            f"got split_sizes={sizes}"
        )
    if sum(sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input "
            f"tensor's size at dimension {dim}), but got split_sizes={sizes}"
        )
    return sizes


def even(input: Tensor, size: int, dim: int) -> tuple[int, ...]:
    """The sizes of pieces of one size; the last may be smaller."""
    n = input._tmeta.shape[dim]
    if size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={size}"
        )
    if size == 0 and n:
        raise RuntimeError(
            "split_size can only be 0 if dimension size is 0, but got dimension size "
            f"of {n}"
        )
    return even_sizes(n, size)


@public
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    """The tensor in pieces of one size, or of given sizes, as views.

    https://docs.pytorch.org/docs/2.13/generated/torch.split.html

    >>> import torchshim as torch
    >>> torch.split(torch.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    if isinstance(split_size_or_sections, Tensor):
        split_size_or_sections = int(split_size_or_sections)
    try:
        at = splittable(tensor, "split", dim)
        if isinstance(split_size_or_sections, (tuple, list)):
            sizes = checked_sizes(tensor, split_size_or_sections, dim)
            return pieces_of(tensor, sizes, at, fns.split_sizes)
        size = split_size_or_sections
        if isinstance(size, (np.generic, np.ndarray)):
            raise TypeError("split(): neither an int nor a sequence")
        size = _whole(size)
        return pieces_of(tensor, even(tensor, size, at), at, fns.split_pieces)
    except Exception:
        several = "" if isinstance(split_size_or_sections, int) else "_with_sizes"
        refuse("torch", f"split{several}", (tensor, split_size_or_sections, dim), {})
        raise


def _split_method(self: Tensor, split_size: Any, dim: int = 0) -> Any:
    """The tensor in pieces of one size, or of given sizes, as views.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.split.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2, 3]).split(2)
    (tensor([1, 2]), tensor([3]))
    """
    return split(self, split_size, dim)


_split_method.__name__ = "split"
Tensor.split = _split_method


@public(method=True)
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Any:
    """The tensor in pieces of given sizes, as views.

    The sizes add up to the dimension's, else RuntimeError.

    https://docs.pytorch.org/docs/2.13/generated/torch.split.html

    >>> import torchshim as torch
    >>> torch.split_with_sizes(torch.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    at = splittable(input, "split_with_sizes", dim)
    sizes = checked_sizes(input, split_sizes, dim)
    return pieces_of(input, sizes, at, fns.split_sizes)


def _chunk_sizes(input: Tensor, chunks: int, dim: int) -> tuple[int, ...]:
    chunks = _whole(chunks)
    if chunks <= 0:
        raise RuntimeError(
            f"chunk expects `chunks` to be greater than 0, got: {chunks}"
        )
    n = input._tmeta.shape[dim]
    size = -(-n // chunks)
    return (0,) * chunks if size == 0 else even_sizes(n, size)


@public(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """The tensor in so many pieces (or fewer), as views.

    https://docs.pytorch.org/docs/2.13/generated/torch.chunk.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2, 3]).chunk(2)
    (tensor([1, 2]), tensor([3]))
    """
    at = splittable(input, "chunk", dim)
    return pieces_of(input, _chunk_sizes(input, chunks, at), at, fns.split_pieces)


def _loosened(pieces: Sequence[Tensor]) -> Any:
    # Each piece may be written to in place, unlike those of `split`.
    for each in pieces:
        each._view_note = None
    return tuple(pieces)


@public(method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> Any:
    """`chunk` whose pieces may be written to in place.

    Autograd takes them for tensors of their own.

    https://docs.pytorch.org/docs/2.13/generated/torch.unsafe_chunk.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> first, _ = (x * 3).unsafe_chunk(2)
    >>> first.mul_(2).detach()
    tensor([6.])
    """
    at = splittable(input, "chunk", dim)
    return _loosened(fns.unsafe_pieces(input, _chunk_sizes(input, chunks, at), at))


@public(method=True)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """`split` whose pieces may be written to in place.

    https://docs.pytorch.org/docs/2.13/generated/torch.unsafe_split.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> first, _ = (x * 3).unsafe_split(2)
    >>> first.mul_(2).detach()
    tensor([ 6., 12.])
    """
    at = splittable(input, "split", dim)
    return _loosened(fns.unsafe_pieces(input, even(input, split_size, at), at))


@public(method=True)
def unsafe_split_with_sizes(
    input: Tensor, split_sizes: Sequence[int], dim: int = 0
) -> Any:
    """`split_with_sizes` whose pieces may be written to in place.

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> _, rest = (x * 3).unsafe_split_with_sizes([1, 2])
    >>> rest.mul_(2).detach()
    tensor([12., 18.])
    """
    at = splittable(input, "split_with_sizes", dim)
    sizes = tuple(checked_sizes(input, split_sizes, dim))
    return _loosened(fns.unsafe_sizes(input, sizes, at))


def _is_place(value: Any) -> bool:
    return hasattr(value, "__index__")


@public(method=True)
def tensor_split(input: Tensor, indices_or_sections: Any, /, dim: int = 0) -> Any:
    """The tensor in so many pieces as even as can be, or cut at given places.

    https://docs.pytorch.org/docs/2.13/generated/torch.tensor_split.html

    >>> import torchshim as torch
    >>> torch.tensor([1, 2, 3]).tensor_split(2)
    (tensor([1, 2]), tensor([3]))
    """
    if not input._tmeta.shape:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor "
            "with 0 dims"
        )
    at = wrap_dim(dim, len(input._tmeta.shape))
    n = input._tmeta.shape[at]
    given = indices_or_sections
    if isinstance(given, TensorBase):
        if given._tmeta.device.type != "cpu":
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be on cpu, but "
                f"it's on {given._tmeta.device}"
            )
        if given._tmeta.dtype is not dtypes.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of "
                f"long, but got {given._tmeta.dtype.scalar_name}"
            )
        if len(given._tmeta.shape) > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a "
                "zero-dimensional or one-dimensional tensor, but got a tensor with "
                f"{len(given._tmeta.shape)} dims"
            )
        given = given.tolist()  # type: ignore[attr-defined]
    if isinstance(given, bool):
        raise unfit("tensor_split")
    if isinstance(given, (int, np.integer)):
        given = int(given)
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        size, more = divmod(n, given)
        cuts = [i * size + min(i, more) for i in range(given + 1)]
        return tuple(piece(input, at, a, b - a) for a, b in itertools.pairwise(cuts))
    places = isinstance(given, (tuple, list)) and all(map(_is_place, given))
    if not places:
        raise unfit("tensor_split")
    cuts = [0, *(int(c) for c in given), n]
    found = []
    for a, b in itertools.pairwise(cuts):
        start, stop, _ = slice(a, b).indices(n)
        found.append(piece(input, at, start, max(stop - start, 0)))
    return tuple(found)


def _axis_split(name: str, least: int, axis: int) -> Any:
    def function(input: Tensor, indices_or_sections: Any, /) -> Any:
        """The pieces are views; RuntimeError where a number does not divide the size.

        >>> import torchshim as torch
        >>> x = torch.arange(8).reshape(1, 2, 4)
        >>> [tuple(each.shape) for each in x.dsplit(2)]
        [(1, 2, 2), (1, 2, 2)]
        >>> [tuple(each.shape) for each in x.hsplit([1])]
        [(1, 1, 4), (1, 1, 4)]
        """
        ndim = len(input._tmeta.shape)
        if ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but "
                f"got a tensor with {ndim} dimensions!"
            )
        at = 0 if name == "hsplit" and ndim == 1 else axis
        if isinstance(indices_or_sections, TensorBase):
            shape = indices_or_sections._tmeta.shape
            if shape.numel() != 1:
                raise unfit(name)
            found = _whole(indices_or_sections)
            indices_or_sections = (found,) if shape else found
        if isinstance(indices_or_sections, bool):
            raise unfit(name)
        if isinstance(indices_or_sections, np.integer):
            indices_or_sections = int(indices_or_sections)
        if isinstance(indices_or_sections, int):
            n = input._tmeta.shape[at]
            if indices_or_sections == 0 or n % indices_or_sections:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {at}, but the "
                    f"size of the dimension {n} is not divisible by the split_size "
                    f"{indices_or_sections}!"
                )
        return tensor_split(input, indices_or_sections, at)

    line = f"`tensor_split` along dimension {axis}, as NumPy's `{name}`."
    described(function, name, line, f"torch.{name}")

    def method(self: Tensor, *indices_or_sections: Any) -> Any:
        """The places of cuts may be single arguments.

        >>> import torchshim as torch
        >>> [tuple(each.shape) for each in torch.ones(1, 2, 4).dsplit(1, 3)]
        [(1, 2, 1), (1, 2, 2), (1, 2, 1)]
        """
        if not indices_or_sections:
            raise unfit(name)
        single = len(indices_or_sections) == 1
        return function(self, indices_or_sections[0] if single else indices_or_sections)

    described(method, name, f"`torch.{name}` as a method.")
    public(method, namespaces=(), method=True)
    return public(function)


hsplit = _axis_split("hsplit", 1, 1)
vsplit = _axis_split("vsplit", 2, 0)
dsplit = _axis_split("dsplit", 3, 2)


@public(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along a dimension, as views.

    https://docs.pytorch.org/docs/2.13/generated/torch.unbind.html

    >>> import torchshim as torch
    >>> torch.tensor([[1, 2], [3, 4]]).unbind()
    (tensor([1, 2]), tensor([3, 4]))
    """
    shape = input._tmeta.shape
    dim = wrap_dim(dim, max(len(shape), 1))
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if has_history(input):
        return fns.unbind_rows(input, dim)
    plan = (KEEP,) * dim + (PICK,)
    return tuple(one_of_several(basic(input, (i,), plan)) for i in range(shape[dim]))


def _iterate(self: Tensor) -> Iterator[Tensor]:
    if overriding((self,)) is not None and self.dim():
        return iter(self.unbind(0))
    shape = self._tmeta.shape
    if not shape:
        raise TypeError("iteration over a 0-d tensor")
    if has_history(self):
        return iter(unbind(self))
    return (one_of_several(basic(self, (i,), (PICK,))) for i in range(shape[0]))


def _contains(self: Tensor, element: Any) -> bool:
    """Whether any element equals a number or a tensor."""
    if isinstance(element, (TensorBase, Number)):  # NumPy's numbers, too
        return (self == element).any().item()  # type: ignore[attr-defined]
    raise RuntimeError(
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
        f"{type(element)}."
    )


_iterate.__name__, _iterate.__qualname__ = "__iter__", "Tensor.__iter__"
Tensor.__iter__ = _iterate
Tensor.__contains__ = _contains


def sliced(
    input: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> tuple[int, int, int]:
    """The dimension, the first place and the length of a range with such ends."""
    shape = input._tmeta.shape
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, len(shape))
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    first, stop, step = slice(start, end, step).indices(shape[at])
    return at, first, max(-(-(stop - first) // step), 0)


@public(name="slice", namespaces=("ops.aten",))
def slice_of(
    self: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Tensor:
    """A range of a dimension, as a view: what `input[start:end:step]` is made of."""
    at, first, length = sliced(self, dim, start, end, step)
    return basic(self, (first,), (KEEP,) * at + ((length, step),))


@public(namespaces=(), method=True)
def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Fills the main diagonal; with `wrap`, that of a tall matrix starts again below.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.fill_diagonal_.html

    >>> import torchshim as torch
    >>> torch.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    shape, strides, offset = placement(self)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    value = number_of("fill_diagonal_", "fill_value", 1, fill_value)
    length, step = min(shape), sum(strides)
    places = [(length, offset)]
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        width = shape[1]
        more = -(-shape[0] * width // (width + 1)) - length
        places.append((more, offset + strides[0] * (width + 1)))
    for count, start in places:
        self.as_strided((count,), (step,), start).fill_(value)
    return self
