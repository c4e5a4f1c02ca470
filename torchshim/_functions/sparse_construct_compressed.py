"""Compressed sparse tensors from indices and values, and empty ones of each layout.

https://docs.pytorch.org/docs/2.13/generated/torch.sparse_compressed_tensor.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.storage import TensorBase
from torchshim._derived import public
from torchshim._functions._arguments import (
    check_options,
    device_of,
    dtype_of,
    size_of,
)
from torchshim._functions._family import described
from torchshim._functions.composed import host_indices, planned
from torchshim._functions.creation import filled
from torchshim._functions.sparse_compressed import (
    LAYOUT_NAMES,
    by_rows,
    compressed,
    halves,
    in_blocks,
)
from torchshim._functions.sparse_construct import (
    as_part,
    check_pinned,
    checked,
    empty_coo,
    lengths_of,
    sparse_coo_tensor,
    with_role,
)
from torchshim._tensor import Tensor


def of_size(
    function: str,
    value: Any,
    size: Sequence[int],
    out: Any,
    layout: Any,
    dtype: Any,
    device: Any,
    pin_memory: Any,
    requires_grad: Any,
) -> Any:
    """`zeros` and `empty` of a sparse layout."""
    name = getattr(layout, "name", None)
    if name not in ("sparse_coo", *LAYOUT_NAMES) or value not in (0, None):
        if name == "sparse_coo" and value == 1:
            raise RuntimeError("full(...) is not implemented for sparse layout")
        check_options(function, layout, pin_memory, requires_grad)
    check_options(function, None, pin_memory, requires_grad)
    if out is not None and out.layout is not layout:
        kinds = [LAYOUT_TEXTS[each.name] for each in (layout, out.layout)]
        raise RuntimeError(
            f"layout {kinds[0]} does not match layout of out parameter ({kinds[1]})"
        )
    dtype = dtype_of(function, dtype)
    if name == "sparse_coo":
        made = empty_coo(size, dtype, device, bool(requires_grad))
        return made if out is None else out.copy_(made)
    if in_blocks(layout):
        made_by = "zeros" if function == "zeros" else "empty"
        raise RuntimeError(
            f"{made_by}_sparse_compressed expected sparse compressed (non-block) "
            f"tensor layout but got {LAYOUT_TEXTS[name]}"
        )
    if len(size) < 2:
        raise RuntimeError(
            f"torch.{function}: Only batched sparse compressed (non-block) tensors are "
            f"supported, but got size {list(size)}"
        )
    where = device_of(function, device)
    batch, lines = tuple(size[:-2]), size[-2 if by_rows(layout) else -1]
    starts = filled("zeros", (*batch, lines + 1), 0, dtypes.int64, where)
    places = filled("zeros", (*batch, 0), 0, dtypes.int64, where)
    kind = dtype or dtypes.get_default_dtype()
    values = filled("zeros", (*batch, 0), 0, kind, where)
    options = {"requires_grad": requires_grad, "check_invariants": False}
    made = _compressed(function, layout, (starts, places, values), size, options)
    return made if out is None else out.copy_(made)


def _compressed(
    function: str,
    layout: Any,
    given: tuple[Any, Any, Any],
    size: Any,
    options: dict[str, Any],
) -> Any:
    check_pinned(options.pop("pin_memory", False))
    dtype = dtype_of(function, options.pop("dtype", None))
    device = options.pop("device", None)
    grad = bool(options.pop("requires_grad", False))
    check = checked(options.pop("check_invariants", None))
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    values = as_part(function, given[2], dtype, device)
    outer, inner = (
        as_part(
            function,
            g,
            None if isinstance(g, TensorBase) else dtypes.int64,
            values.device,
        )
        for g in given[:2]
    )
    if size is None:
        shape = _estimated(layout, outer, inner, values)
    else:
        shape = size_of(function, (size,))
    if check:
        _check_compressed(layout, outer, inner, values, shape)
    values = with_role(values, grad, "SparseCompressedTensor")
    return compressed(layout, outer, inner, values, shape)


def _dimensions(layout: Any, outer: Any, inner: Any, values: Any) -> tuple[int, int]:
    """How many dimensions the batch and a block have; RuntimeError if parts differ."""
    first, second = LAYOUT_NAMES[layout.name]
    if not outer.ndim:
        raise RuntimeError(f"{first} must have dimensionality >= 1 but got 0")
    if outer.ndim != inner.ndim:
        raise RuntimeError(
            f"{first} and {second} dimensionalities must be equal but got {outer.ndim} "
            f"and {inner.ndim}, respectively"
        )
    batch, block = outer.ndim - 1, 2 if in_blocks(layout) else 0
    if values.ndim <= batch + block:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {block}) but got {values.ndim}"
        )
    return batch, block


def _estimated(layout: Any, outer: Any, inner: Any, values: Any) -> tuple[int, ...]:
    """The size that indices and values ask for."""
    batch, block = _dimensions(layout, outer, inner, values)
    if inner.dtype.category != dtypes.INTEGER:
        raise NotImplementedError(
            '"estimate_sparse_compressed_tensor_size" not implemented for '
            f"'{inner.dtype.scalar_name}'"
        )
    lengths = planned("lengths", lambda i: lengths_of(i.reshape(1, -1)), inner)
    pair = (outer.shape[-1] - 1, *lengths)
    if not by_rows(layout):
        pair = pair[::-1]
    if block:
        high, wide = values.shape[batch + 1 : batch + 3]
        pair = (pair[0] * high, pair[1] * wide)
    return (*outer.shape[:-1], *pair, *values.shape[batch + 1 + block :])


def _check_compressed(
    layout: Any, outer: Any, inner: Any, values: Any, shape: Sequence[int]
) -> None:
    first, second = LAYOUT_NAMES[layout.name]
    batch, block = _dimensions(layout, outer, inner, values)
    dense = values.ndim - batch - block - 1
    if len(shape) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense "
            f"dimensionalities (={batch} + 2 + {dense}) but got {len(shape)}"
        )
    lengths = [*shape[batch : batch + 2]]
    for at, high in enumerate(values.shape[batch + 1 : batch + 1 + block]):
        if lengths[at] % max(high, 1):
            raise RuntimeError(
                f"tensor shape[{batch + at}] (={lengths[at]}) must be divisible with "
                f"blocksize[{at}] (={high}) as defined by values shape"
            )
        lengths[at] //= max(high, 1)
    given = [[*t.shape[:batch]] for t in (outer, inner, values)]
    if any(each != [*shape[:batch]] for each in given):
        raise RuntimeError(
            f"all batch dimensions of {first} (={given[0]}), {second} (={given[1]}), "
            f"and values (={given[2]}) must be equal to tensor batch dimensions "
            f"(={[*shape[:batch]]})"
        )
    rows = by_rows(layout)
    lines, across = lengths if rows else lengths[::-1]
    if outer.shape[-1] != lines + 1:
        what = ("row" if rows else "column") + (" block" if block else "") + "s"
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of {what} + 1 "
            f"(={lines + 1}), but got {outer.shape[-1]}"
        )
    if inner.shape[-1] != values.shape[batch]:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={values.shape[batch]}) as "
            f"defined by values.shape[{batch}], but got {inner.shape[-1]}"
        )
    if outer.dtype is not inner.dtype:
        kinds = " and ".join(each.dtype.scalar_name for each in (outer, inner))
        raise RuntimeError(
            f"{first} and {second} must have the same dtype, bot got {kinds}, "
            "respectively"
        )
    if outer.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            f"{first} and {second} dtype must be Int or Long, but got "
            f"{outer.dtype.scalar_name}"
        )
    _check_places(layout, host_indices(outer), host_indices(inner), across)


def _check_places(layout: Any, counts: Any, places: Any, across: int) -> None:
    """RuntimeError for the first invariant that does not hold."""
    first, second = LAYOUT_NAMES[layout.name]
    length, other = halves(layout)
    counts, nnz = counts.reshape(-1, counts.shape[-1]), places.shape[-1]
    places = places.reshape(len(counts), nnz)
    steps = np.diff(counts)
    piece = f"{second}[..., {first}[..., i - 1]:{first}[..., i]]"

    def each_sorted() -> bool:
        rising = np.diff(places) > 0
        # Between the last of a line and the first of the next it may fall.
        for row, ends in zip(rising, counts, strict=True):
            row[[at - 1 for at in ends[1:-1] if 0 < at < nnz]] = True
        return bool(rising.all())

    for holds, text in (
        (
            lambda: bool(((places >= 0) & (places < across)).all()),
            f"0 <= {second} < {other}",
        ),
        (lambda: (counts[:, 0] == 0).all(), f"{first}[..., 0] == 0"),
        (lambda: (counts[:, -1] == nnz).all(), f"{first}[..., -1] == nnz"),
        (
            lambda: ((steps >= 0) & (steps <= across)).all(),
            f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {other}",
        ),
        (
            each_sorted,
            f"{piece} for all i = 1, ..., {length} are sorted and distinct along the "
            "last dimension values",
        ),
    ):
        if not holds():
            raise RuntimeError(f"`{text}` is not satisfied.")


@public
def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """A matrix with its values row by row: where rows begin, and columns.

    All three may have the same first dimensions, those of a batch; the values may have
    others after their first, dense ones.
    `options` are dtype, device, pin_memory, requires_grad and check_invariants.
    https://docs.pytorch.org/docs/2.13/generated/torch.sparse_csr_tensor.html

    >>> import warnings
    >>> import torchshim as torch
    >>> parts = [0, 1, 2], [1, 0], [3.0, 4.0]
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.sparse_csr_tensor(*parts).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    given = crow_indices, col_indices, values
    layout = LAYOUTS["sparse_csr"]
    return _compressed("sparse_csr_tensor", layout, given, size, options)


@public
def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """A matrix with its values column by column: where columns begin, and rows.

    Otherwise as `sparse_csr_tensor`.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse_csc_tensor.html

    >>> import torchshim as torch
    >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0]).to_dense()
    tensor([[0., 4.],
            [3., 0.]])
    """
    given = ccol_indices, row_indices, values
    layout = LAYOUTS["sparse_csc"]
    return _compressed("sparse_csc_tensor", layout, given, size, options)


@public
def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """A matrix of blocks, row by row of these; each value is a block.

    Otherwise as `sparse_csr_tensor`.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse_bsr_tensor.html

    >>> import torchshim as torch
    >>> torch.sparse_bsr_tensor([0, 1], [1], [[[3.0, 4.0]]]).to_dense()
    tensor([[0., 0., 3., 4.]])
    """
    given = crow_indices, col_indices, values
    layout = LAYOUTS["sparse_bsr"]
    return _compressed("sparse_bsr_tensor", layout, given, size, options)


@public
def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Tensor:
    """A matrix of blocks, column by column of these; each value is a block.

    Otherwise as `sparse_csr_tensor`.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse_bsc_tensor.html

    >>> import torchshim as torch
    >>> torch.sparse_bsc_tensor([0, 0, 1], [0], [[[3.0, 4.0]]]).to_dense()
    tensor([[0., 0., 3., 4.]])
    """
    given = ccol_indices, row_indices, values
    layout = LAYOUTS["sparse_bsc"]
    return _compressed("sparse_bsc_tensor", layout, given, size, options)


@public
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    layout: Any = None,
    **options: Any,
) -> Tensor:
    """`sparse_csr_tensor` and its like, by `layout`.

    RuntimeError without one.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse_compressed_tensor.html

    >>> import torchshim as torch
    >>> parts = [0, 1, 2], [1, 0], [3.0, 4.0]
    >>> torch.sparse_compressed_tensor(*parts, layout=torch.sparse_csr).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    function = "sparse_compressed_tensor"
    name = getattr(layout, "name", None)
    if name not in LAYOUT_NAMES:
        got = LAYOUT_TEXTS[name] if name else "none"
        raise RuntimeError(
            f"{function} expected sparse compressed tensor layout but got {got}"
        )
    given = compressed_indices, plain_indices, values
    return _compressed(function, layout, given, size, options)


# -- checks ----------------------------------------------------------------------------


@public
def _validate_sparse_coo_tensor_args(
    indices: Any,
    values: Any,
    size: Any,
    is_coalesced: bool | None = None,
    check_pinning: bool | None = None,
) -> None:
    """Raises RuntimeError where these do not make a tensor in coordinates.

    `check_pinning` finds nothing, as no memory is pinned.

    >>> import torchshim as torch
    >>> i, v = torch.tensor([[0, 1]]), torch.ones(2)
    >>> torch._validate_sparse_coo_tensor_args(i, v, (2,))
    """
    sparse_coo_tensor(
        indices, values, size, check_invariants=True, is_coalesced=is_coalesced
    )


@public
def _validate_sparse_compressed_tensor_args(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any,
    layout: Any,
    check_pinning: bool | None = None,
) -> None:
    """Raises RuntimeError where these do not make a compressed tensor.

    `check_pinning` finds nothing, as no memory is pinned.

    >>> import torchshim as torch
    >>> at, where, v = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
    >>> csr = torch.sparse_csr
    >>> torch._validate_sparse_compressed_tensor_args(at, where, v, (2, 2), csr)
    """
    parts = compressed_indices, plain_indices, values, size
    sparse_compressed_tensor(*parts, layout=layout, check_invariants=True)


def _validation(layout: str) -> None:
    def validate(
        compressed: Any,
        plain: Any,
        values: Any,
        size: Any,
        check_pinning: bool | None = None,
    ) -> None:
        """`check_pinning` finds nothing, as no memory is pinned.

        >>> import torchshim as torch
        >>> at, where, v = torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones(2)
        >>> torch._validate_sparse_csr_tensor_args(at, where, v, (2, 2))
        """
        parts = compressed, plain, values, size
        _validate_sparse_compressed_tensor_args(*parts, LAYOUTS[layout])

    name = f"_validate_{layout}_tensor_args"
    described(validate, name, f"Raises where these do not make a {layout} tensor.")
    public(validate)


for _layout in LAYOUT_NAMES:
    _validation(_layout)
