"""Where the elements of a view lie: shapes, strides and offsets, PyTorch's rules.

Nothing here knows of JAX. The texts are PyTorch's (ATen's TensorShape and TensorUtils).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Ints = tuple[int, ...]
Geometry = tuple[Ints, Ints, int]

NOT_VIEWABLE = (
    "view size is not compatible with input tensor's size and stride (at least one "
    "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
)


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the end made positive; PyTorch's error outside."""
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{bound}, "
            f"{bound - 1}], but got {dim})"
        )
    return dim % bound


def size_at(shape: Sequence[int], dim: int) -> int:
    """The size of a dimension, or PyTorch's error of `size(dim)`."""
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return shape[wrap_dim(dim, len(shape))]


def wrap_dims(dims: int | Sequence[int], ndim: int) -> Ints:
    """Several dimensions made positive; none may appear twice."""
    if isinstance(dims, int):
        dims = (dims,)
    wrapped: list[int] = []
    for dim in dims:
        dim = wrap_dim(dim, ndim)
        if dim in wrapped:
            raise RuntimeError(f"dim {dim} appears multiple times in the list of dims")
        wrapped.append(dim)
    return tuple(wrapped)


def infer_size(shape: Sequence[int], numel: int) -> Ints:
    """A requested shape with its -1 filled in."""
    inferred = None
    known = 1
    for i, size in enumerate(shape):
        if size == -1:
            if inferred is not None:
                raise RuntimeError("only one dimension can be inferred")
            inferred = i
        elif size < 0:
            raise RuntimeError(
                f"invalid shape dimension {size} at index {i} of shape {list(shape)}"
            )
        else:
            known *= size
    fits = numel == known or (inferred is not None and known > 0 and numel % known == 0)
    if not fits:
        raise RuntimeError(
            f"shape '{list(shape)}' is invalid for input of size {numel}"
        )
    if inferred is None:
        return tuple(shape)
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            "unspecified dimension size -1 can be any value and is ambiguous"
        )
    return (*shape[:inferred], numel // known, *shape[inferred + 1 :])


def view_strides(shape: Ints, strides: Ints, new: Ints) -> Ints | None:
    """Strides under which the same memory has another shape; None if there are none.

    Neighbouring dimensions that lie densely in memory form a chunk; each chunk must be
    split among whole new dimensions.
    """
    if math.prod(shape) == 0:
        if tuple(shape) == tuple(new):
            return strides
        out: list[int] = []
        step = 1
        for size in reversed(new):
            out.append(step)
            step *= max(size, 1)
        return tuple(reversed(out))
    if not shape:
        return (1,) * len(new)
    result = [0] * len(new)
    at = len(new) - 1
    base = strides[-1]
    chunk = covered = 1
    for d in reversed(range(len(shape))):
        chunk *= shape[d]
        last = d == 0
        if last or (shape[d - 1] != 1 and strides[d - 1] != chunk * base):
            while at >= 0 and (covered < chunk or new[at] == 1):
                result[at] = covered * base
                covered *= new[at]
                at -= 1
            if covered != chunk:
                return None
            if not last:
                base = strides[d - 1]
                chunk = covered = 1
    return tuple(result) if at == -1 else None


def viewed(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry:
    """Geometry of `view(size)`; raises where the memory does not allow it."""
    new = infer_size(size, math.prod(shape))
    found = view_strides(shape, strides, new)
    if found is None:
        raise RuntimeError(NOT_VIEWABLE)
    return new, found, offset


def reshaped(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry | None:
    """Geometry of `reshape(size)`; None where it has to copy."""
    new = infer_size(size, math.prod(shape))
    found = view_strides(shape, strides, new)
    return None if found is None else (new, found, offset)


def flat_shape(shape: Ints, start: int, end: int) -> Ints:
    """The shape with the dimensions from `start` to `end` made one."""
    ndim = len(shape)
    first, last = wrap_dim(start, ndim), wrap_dim(end, ndim)
    if first > last:
        raise RuntimeError(
            "flatten() has invalid args: start_dim cannot come after end_dim"
        )
    if not ndim:
        return (1,)
    return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


def split_shape(shape: Ints, dim: int, sizes: Ints) -> Ints:
    """The shape with one dimension made several."""
    dim = wrap_dim(dim, len(shape))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError(
            "unflatten got an unexpected error:\n"
            f"Dimension specified as {dim} but tensor has no dimensions"
        )
    n = shape[dim]
    try:
        new = infer_size(sizes, n)
    except RuntimeError as error:
        if str(error).startswith(("only one", "invalid", "cannot")):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of "
            f"dim {dim} ({n}) in the input tensor"
        ) from None
    return (*shape[:dim], *new, *shape[dim + 1 :])


def permutation(ndim: int, dims: Sequence[int]) -> Ints:
    """The dimensions of `permute` made positive."""
    if len(dims) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not "
            "match the length of the desired ordering of dimensions i.e. input.dim() = "
            f"{ndim} is not equal to len(dims) = {len(dims)}"
        )
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    if len(set(wrapped)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return wrapped


def moved(ndim: int, source: Sequence[int], destination: Sequence[int]) -> Ints:
    """The permutation that moves dimensions to other places."""
    if len(source) != len(destination):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(source)} dims) should contain the same number of dims as "
            f"destination ({list(destination)} dims)"
        )
    src = [wrap_dim(d, ndim) for d in source]
    dst = [wrap_dim(d, ndim) for d in destination]
    for name, dims, given in (
        ("source", src, source),
        ("destination", dst, destination),
    ):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    if not ndim:
        return ()
    order = [-1] * ndim
    for s, d in zip(src, dst, strict=True):
        order[d] = s
    rest = iter(d for d in range(ndim) if d not in src)
    return tuple(next(rest) if d < 0 else d for d in order)


def expanded_shape(shape: Ints, size: Sequence[int], kind: str = "") -> Ints:
    """The shape of `expand(size)`: -1 keeps a size; `kind`: the tensor's type."""
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({kind}{{{list(shape)}}}, size={list(size)}): the "
            f"number of sizes provided ({len(size)}) must be greater or equal to the "
            f"number of dimensions in the tensor ({len(shape)})"
        )
    new = list(size)
    for d in reversed(range(len(size))):
        if d < lead:
            if size[d] < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({size[d]}) isn't allowed in a "
                    f"leading, non-existing dimension {d}"
                )
            continue
        have = shape[d - lead]
        if size[d] == -1:
            new[d] = have
        elif size[d] != have and (have != 1 or size[d] < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({size[d]}) must match the existing "
                f"size ({have}) at non-singleton dimension {d}.  Target sizes: "
                f"{list(size)}.  Tensor sizes: {list(shape)}"
            )
    return tuple(new)


def expanded(shape: Ints, strides: Ints, offset: int, size: Ints) -> Geometry:
    """Geometry of `expand(size)`: repeated dimensions have stride 0."""
    new = expanded_shape(shape, size)
    lead = len(new) - len(shape)
    steps: list[int] = [0] * len(new)
    for d in reversed(range(len(new))):
        if d >= lead:
            have = shape[d - lead]
            steps[d] = strides[d - lead] if have == new[d] else 0
        elif new[d] == 1 and shape:
            # As PyTorch has it for a new dimension that is not repeated.
            steps[d] = new[d + 1] * steps[d + 1]
    return new, tuple(steps), offset


def squeezed_dims(shape: Ints, dim: Any) -> tuple[int, ...]:
    """The dimensions that `squeeze(dim)` removes; `...`: all of size 1."""
    if dim is ...:
        return tuple(d for d, n in enumerate(shape) if n == 1)
    return tuple(
        sorted(d for d in wrap_dims(dim, len(shape)) if shape and shape[d] == 1)
    )


def unsqueezed(shape: Ints, strides: Ints, offset: int, dim: int) -> Geometry:
    dim = wrap_dim(dim, len(shape) + 1)
    step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (
        (*shape[:dim], 1, *shape[dim:]),
        (*strides[:dim], step, *strides[dim:]),
        offset,
    )


def diagonal_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    """The two dimensions of a diagonal, which must differ."""
    a, b = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return a, b


def diagonal_length(rows: int, columns: int, offset: int) -> int:
    if offset >= 0:
        return max(min(rows, columns - offset), 0)
    return max(min(rows + offset, columns), 0)


def diagonal_geometry(
    shape: Ints, strides: Ints, offset: int, k: int, dim1: int, dim2: int
) -> Geometry:
    a, b = diagonal_dims(len(shape), dim1, dim2)
    length = diagonal_length(shape[a], shape[b], k)
    if length:
        offset += k * strides[b] if k >= 0 else -k * strides[a]
    keep = [d for d in range(len(shape)) if d not in (a, b)]
    return (
        (*(shape[d] for d in keep), length),
        (*(strides[d] for d in keep), strides[a] + strides[b]),
        offset,
    )


def windows(shape: Ints, dimension: int, size: int, step: int) -> tuple[int, int]:
    """(dimension, number of windows) of `Tensor.unfold`."""
    dim = wrap_dim(dimension, len(shape))
    n = shape[dim] if shape else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {n} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return dim, (n - size) // step + 1


def unfolded(
    shape: Ints, strides: Ints, offset: int, dimension: int, size: int, step: int
) -> Geometry:
    dim, count = windows(shape, dimension, size, step)
    if not shape:
        return (size,), (1,), offset
    return (
        (*shape[:dim], count, *shape[dim + 1 :], size),
        (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim]),
        offset,
    )


# -- basic indexing ----------------------------------------------------------------

# Entries of an indexing plan, one a dimension of the input or a new one.
PICK = 0  # one element; takes the next start
KEEP = 1  # the whole dimension
NEW = None  # a new dimension of size 1
# A pair (length, step) is a slice; it takes the next start.


def indexed(
    shape: Ints, strides: Ints, offset: int, starts: Sequence[int], plan: Any
) -> Geometry:
    """Geometry of basic indexing: integers, slices and new dimensions."""
    size: list[int] = []
    steps: list[int] = []
    at = iter(starts)
    d = 0
    for entry in plan:
        if entry is None:
            size.append(1)
            steps.append(shape[d] * strides[d] if d < len(shape) else 1)
            continue
        if entry == PICK:
            offset += next(at) * strides[d]
        elif entry == KEEP:
            size.append(shape[d])
            steps.append(strides[d])
        else:
            length, step = entry
            offset += next(at) * strides[d]
            size.append(length)
            steps.append(strides[d] * step)
        d += 1
    return (*size, *shape[d:]), (*steps, *strides[d:]), offset


def index_node(plan: Any) -> str:
    """PyTorch's node for the last step of an index."""
    for entry in reversed(plan):
        if entry is None:
            return "UnsqueezeBackward0"
        if entry == PICK:
            return "SelectBackward0"
        if entry != KEEP:
            return "SliceBackward0"
    return "AliasBackward0"


# -- memory --------------------------------------------------------------------------


def memory_size(size: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """How many elements of memory a geometry reaches, from the memory's start."""
    if 0 in size:
        return 0
    return offset + 1 + sum((n - 1) * s for n, s in zip(size, strides, strict=True))
