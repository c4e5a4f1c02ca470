"""Copies of what views show, or with that replaced, as the arguments decide.

The rest are operators, see `_ops/view_copies.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchshim._core import dtypes
from torchshim._core.meta import contiguous_strides
from torchshim._core.promotion import note_lost_part
from torchshim._core.record import local, untracked
from torchshim._core.storage import TensorBase, bits_of, placement
from torchshim._derived import fns, public
from torchshim._functions import pieces
from torchshim._functions._family import described
from torchshim._functions.memory import put_into, put_unfollowed
from torchshim._functions.resizing import resize_output, take_size
from torchshim._functions.sparse_tensor import handles
from torchshim._functions.strided import strided_arguments
from torchshim._ops.view_geometry import KEEP, PICK, diagonal_geometry, wrap_dim
from torchshim._out import refuse_followed, refuse_leaf, refuse_tracked
from torchshim._tensor import Tensor


def _resolved(x: Tensor) -> Tensor:
    """The tensor itself, or a copy of one that its view conjugates or negates."""
    return fns.clone(x) if bits_of(x) else x


@public
def view_copy(input: Tensor, size: Any, *, out: Tensor | None = None) -> Tensor:
    """`Tensor.view` as a copy: another shape, or read as another dtype.

    >>> import torchshim as torch
    >>> torch.view_copy(torch.tensor([1, 2, 3, 4]), (2, 2))
    tensor([[1, 2],
            [3, 4]])
    >>> torch.view_copy(torch.tensor([1.0]), torch.int32)
    tensor([1065353216], dtype=torch.int32)
    """
    if isinstance(size, dtypes.dtype):
        found = fns.clone(_resolved(input).view(size))
        return _taken("view_copy", found, out, True)
    return _taken("view_copy", fns.view_copy(input, size), out)


@public
def select_copy(
    input: Tensor, dim: int, index: int, *, out: Tensor | None = None
) -> Tensor:
    """`select` as a copy.

    >>> import torchshim as torch
    >>> x = torch.tensor([[1, 2], [3, 4]])
    >>> column = torch.select_copy(x, dim=1, index=0).zero_()
    >>> x
    tensor([[1, 2],
            [3, 4]])
    """
    at, index = pieces.selected(input, dim, index)
    plan = (KEEP,) * at + (PICK,)
    made = fns.piece_copy(input, (index,), plan, "SelectBackward0_copy")
    return _taken("select_copy", made, out)


@public
def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A range of a dimension, as a copy.

    >>> import torchshim as torch
    >>> torch.slice_copy(torch.arange(5), start=1, end=4, step=2)
    tensor([1, 3])
    """
    at, first, length = pieces.sliced(input, dim, start, end, step)
    plan = (KEEP,) * at + ((length, step),)
    made = fns.piece_copy(input, (first,), plan, "SliceBackward0_copy")
    return _taken("slice_copy", made, out)


@public(method=True)
def narrow_copy(
    input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None
) -> Tensor:
    """`narrow` as a copy.

    https://docs.pytorch.org/docs/2.13/generated/torch.narrow_copy.html

    >>> import torchshim as torch
    >>> torch.narrow_copy(torch.tensor([1, 2, 3]), 0, 1, 2)
    tensor([2, 3])
    """
    if isinstance(start, TensorBase):
        start = start.__index__()
    if dim >= len(input._tmeta.shape) > 0:
        raise RuntimeError(
            "Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but "
            "got false.  (Could this error message be improved?  If so, please report "
            "an enhancement request to PyTorch.)"
        )
    if length < 0:
        at, first = pieces.narrowed(input, dim, start, 0)
        raise RuntimeError(
            f"start ({first}) + length ({length}) exceeds dimension size "
            f"({input._tmeta.shape[at]})."
        )
    at, first = pieces.narrowed(input, dim, start, length)
    plan = (KEEP,) * at + ((length, 1),)
    if out is None:
        return fns.piece_copy(input, (first,), plan, "NarrowCopyBackward0")
    refuse_followed(local.rec, "narrow_copy", (input, out))
    made = fns.piece_copy(input, (first,), plan, "NarrowCopyBackward0")
    _check_dtype(out, made)
    take_size(out, made._tmeta.shape)  # without a warning
    put_into(out, made)
    return out


@public
def as_strided_copy(
    input: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`as_strided` as a copy.

    >>> import torchshim as torch
    >>> torch.as_strided_copy(torch.arange(4), (2, 2), (1, 1), storage_offset=1)
    tensor([[1, 2],
            [2, 3]])
    """
    source, *rest = strided_arguments(input, size, stride, storage_offset)
    return _taken("as_strided_copy", fns.strided_copy(source, *rest), out)


@public(method=True)
def as_strided_scatter(
    input: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy of the input with what `as_strided` would show replaced by `src`.

    https://docs.pytorch.org/docs/2.13/generated/torch.as_strided_scatter.html

    >>> import torchshim as torch
    >>> torch.as_strided_scatter(torch.zeros(2, 2), torch.ones(2), (2,), (3,))
    tensor([[1., 0.],
            [0., 1.]])
    """
    input = _resolved(input)
    source, *rest = strided_arguments(input, size, stride, storage_offset)
    shape: Any = rest[0]
    if tuple(src._tmeta.shape) != tuple(shape):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src._tmeta.shape)}, slice size = {list(shape)}"
        )
    note_lost_part(src._tmeta.dtype, input._tmeta.dtype)
    made = fns.strided_scatter(source, src, *rest)
    if source is input:
        return made
    # The memory reaches beyond the input: back to its own piece.
    shape, strides, offset = placement(input)
    return fns.strided_copy(made, shape, strides, offset, rest[-1])


def _replacing(src: Tensor, shape: Sequence[int], input: Tensor) -> None:
    """Refuses a `src` of another shape than the piece that it replaces."""
    if tuple(src._tmeta.shape) != tuple(shape):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(src._tmeta.shape)}, slice size = {list(shape)}"
        )
    note_lost_part(src._tmeta.dtype, input._tmeta.dtype)


@public(method=True)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of the input with a diagonal replaced.

    `src` has the shape of the diagonal, else RuntimeError.

    https://docs.pytorch.org/docs/2.13/generated/torch.diagonal_scatter.html

    >>> import torchshim as torch
    >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.tensor([5.0]), offset=1)
    tensor([[0., 5.],
            [0., 0.]])
    """
    shape = tuple(input._tmeta.shape)
    strides = contiguous_strides(shape)
    piece, _, _ = diagonal_geometry(shape, strides, 0, offset, dim1, dim2)
    _replacing(src, piece, input)
    return fns.diagonal_written(input, src, offset, dim1, dim2)


@public(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of the input with one slice replaced.

    `src` has the shape of `input.select(dim, index)`, else RuntimeError.

    https://docs.pytorch.org/docs/2.13/generated/torch.select_scatter.html

    >>> import torchshim as torch
    >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), dim=1, index=-1)
    tensor([[0., 1.],
            [0., 1.]])
    """
    at, index = pieces.selected(input, dim, index)
    shape = input._tmeta.shape
    _replacing(src, (*shape[:at], *shape[at + 1 :]), input)
    plan = (KEEP,) * at + (PICK,)
    return fns.piece_scatter(input, src, (index,), plan, "select_scatter")


@public(method=True)
def slice_scatter(
    input: Tensor,
    src: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """A copy of the input with a range of a dimension replaced.

    `src` has the shape of what it replaces, else RuntimeError.

    https://docs.pytorch.org/docs/2.13/generated/torch.slice_scatter.html

    >>> import torchshim as torch
    >>> torch.slice_scatter(torch.zeros(5), torch.ones(2), start=1, end=4, step=2)
    tensor([0., 1., 0., 1., 0.])
    """
    at, first, length = pieces.sliced(input, dim, start, end, step)
    shape = input._tmeta.shape
    _replacing(src, (*shape[:at], length, *shape[at + 1 :]), input)
    plan = (KEEP,) * at + ((length, step),)
    made = fns.piece_scatter(input, src, (first,), plan, "slice_scatter")
    return _taken("slice_scatter", made, out)


def _taken(
    name: str, result: Tensor, out: Tensor | None, counted: bool = False
) -> Tensor:
    """The result; or `out` with it, which autograd does not follow.

    `counted`: PyTorch's version counts that it takes another shape, too.
    """
    if out is None:
        return result
    refuse_leaf(local.rec, name, out)
    _check_dtype(out, result)
    resize_output(out, result._tmeta.shape, counted)
    return put_unfollowed(name, result, out)


def _check_dtype(out: Tensor, result: Tensor) -> None:
    want, have = result._tmeta.dtype, out._tmeta.dtype
    if want is not have:
        raise RuntimeError(
            f"Expected out tensor to have dtype {want.cpp_name}, but got "
            f"{have.cpp_name} instead"
        )


def _check_count(name: str, made: Sequence[Tensor], out: Sequence[Tensor]) -> None:
    if len(out) != len(made):
        raise RuntimeError(
            f"{name} expected an out= argument of size {len(made)}, got size {len(out)}"
        )


def _into(name: str, made: Sequence[Tensor], out: Sequence[Tensor] | None) -> Any:
    """The results; or None, when they are written to the tensors of `out`."""
    if out is None:
        return tuple(made)
    _check_count(name, made, out)
    for result, target in zip(made, out, strict=True):
        _check_dtype(target, result)
        resize_output(target, result._tmeta.shape, counted=True)
        with untracked():
            fns.copy_(target, result)
    return None


@public
def split_copy(
    input: Tensor,
    split_size: int,
    dim: int = 0,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """`split` into pieces of one size, as copies.

    With `out` the pieces are written there, and the result is None.

    >>> import torchshim as torch
    >>> torch.split_copy(torch.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """
    at = pieces.splittable(input, "split", dim)
    sizes = pieces.even(input, split_size, at)
    made = fns.split_pieces_copy(input, sizes, at)
    if out is None:
        return tuple(made)
    _check_count("split_copy_Tensor_out()", made, out)
    for result, target in zip(made, out, strict=True):
        with untracked():
            fns.copy_(target, result)  # as it is: PyTorch resizes none
    return None


@public
def split_with_sizes_copy(
    input: Tensor,
    split_sizes: Sequence[int],
    dim: int = 0,
    *,
    out: Sequence[Tensor] | None = None,
) -> Any:
    """`split_with_sizes` as copies.

    With `out` the pieces are written there, and the result is None.

    >>> import torchshim as torch
    >>> torch.split_with_sizes_copy(torch.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """
    at = pieces.splittable(input, "split_with_sizes", dim)
    sizes = tuple(pieces.checked_sizes(input, split_sizes, dim))
    made = fns.split_sizes_copy(input, sizes, at)
    return _into("split_with_sizes_copy_out", made, out)


@public
def unbind_copy(
    input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> Any:
    """`unbind` as copies.

    With `out` the slices are written there, and the result is None.

    >>> import torchshim as torch
    >>> torch.unbind_copy(torch.tensor([[1, 2], [3, 4]]), dim=1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    at = wrap_dim(dim, max(len(input._tmeta.shape), 1))
    if not input._tmeta.shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if out is not None:
        refuse_tracked(local.rec, "unbind_copy", (out,))
    made = fns.unbind_rows_copy(input, at)
    return _into("unbind_copy_int_out", made, out)


def _copied(name: str, view: Callable[..., Any]) -> None:
    def copy(input: Any, *, out: Any = None) -> Any:
        """`out` takes the copy over.

        >>> import torchshim as torch
        >>> x = torch.tensor([1 + 2j])
        >>> torch.view_as_real_copy(x)
        tensor([[1., 2.]])
        """
        return _taken(name, view(input), out, True)

    described(copy, name, f"A copy of what `{name.removesuffix('_copy')}` shows.")
    public(copy)
    handles(name)(copy)


_copied("detach_copy", lambda x: fns.unfollowed(x, x, "detach_copy"))
_copied("view_as_real_copy", lambda x: fns.clone(fns.view_as_real(x)))
_copied("view_as_complex_copy", lambda x: fns.clone(fns.view_as_complex(x)))
for _name in ("indices", "values", "crow_indices", "col_indices"):
    _copied(f"{_name}_copy", lambda x, name=_name: fns.clone(getattr(x, name)()))
