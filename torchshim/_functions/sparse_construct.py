"""Sparse tensors from indices and values, and from dense tensors.

https://docs.pytorch.org/docs/2.13/generated/torch.sparse_coo_tensor.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchshim._core import dtypes
from torchshim._core.device import current_accelerator, linked
from torchshim._core.layout import LAYOUT_TEXTS
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.meta import Size
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._derived import public
from torchshim._functions._arguments import (
    check_gradient,
    check_options,
    device_of,
    dtype_of,
    kind_of,
    only_bools,
    size_of,
    warn_once,
)
from torchshim._functions.composed import host_indices, planned
from torchshim._functions.construct import tensor_from
from torchshim._functions.creation import filled, placed
from torchshim._functions.sparse_compressed import (
    LAYOUT_NAMES,
    compressed,
    halves,
)
from torchshim._functions.sparse_tensor import (
    coo,
    countable,
    handles,
    keys_of,
    named,
)
from torchshim._tensor import Tensor

#: Whether invariants are checked where a call does not say; None: nobody has said.
invariants: list[bool | None] = [None]
_UNCHECKED = (
    "Sparse invariant checks are implicitly disabled. Memory errors (e.g. SEGFAULT) "
    "will occur when operating on a sparse tensor which violates the invariants, but "
    "checks incur performance overhead. To silence this warning, explicitly opt in or "
    "out. See `torch.sparse.check_sparse_tensor_invariants.__doc__` for guidance.  "
    "(Triggered internally at /__w/pytorch/pytorch/aten/src/ATen/Context.cpp:816.)"
)


def checked(asked: bool | None) -> bool:
    """Whether a constructor checks what it is given."""
    if asked is None and invariants[0] is None:
        warn_once(_UNCHECKED)
    return bool(invariants[0] if asked is None else asked)


def _tensor(function: str, value: Any, dtype: Any, device: Any) -> Any:
    """An argument as a tensor: one that is given, or data."""
    if isinstance(value, TensorBase):
        given: Any = value
        if device is None and dtype is None:
            return given
        return given.to(
            device=given.device
            if device is None
            else device_of(function, device, linked),
            dtype=given.dtype if dtype is None else dtype,
        )
    return tensor_from(value, dtype, device_of(function, device, linked))


def _role(values: Any, requires_grad: bool, node: str) -> Any:
    """The values of a new tensor: part of their history, or those of a leaf."""
    check_gradient(values.dtype, requires_grad)
    tracked = values.requires_grad
    if tracked and local.rec.grad:
        return named(values, node)
    if tracked or requires_grad:
        return values.detach().requires_grad_(requires_grad)
    return values


def _pinned(pin_memory: Any) -> None:
    if pin_memory and current_accelerator() is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")


@public
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A tensor with values at the columns of `indices` and zero elsewhere.

    Values for the same place are added up when that is needed. Without a size it is as
    large as the indices need. Raises RuntimeError where the shapes do not fit together;
    the indices themselves are looked at where `check_invariants` asks for it.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse_coo_tensor.html

    >>> import torchshim as torch
    >>> i, v = [[0, 1], [2, 0]], [3.0, 4.0]
    >>> s = torch.sparse_coo_tensor(i, v, (2, 3), check_invariants=True)
    >>> s.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    function = "sparse_coo_tensor"
    flags = (f for f in (check_invariants, is_coalesced) if f is not None)
    only_bools(pin_memory, requires_grad, *flags)
    _pinned(pin_memory)
    dtype = dtype_of(function, dtype)
    check = checked(check_invariants)
    if values is None:
        given = indices if size is None else size
        if given is None:
            raise TypeError(f"{function}() missing required argument 'indices'")
        where = device_of(function, device, linked)
        shape = countable(size_of(function, (given,)))
        return empty_coo(shape, dtype, where, requires_grad)
    values = _tensor(function, values, dtype, device)
    indices = _tensor(function, indices, dtypes.int64, values.device)
    if not values.ndim:
        values = values.reshape(1)
    if indices.ndim != 2:
        raise RuntimeError(
            f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}"
        )
    sparse_dim, nnz = indices.shape
    if nnz != values.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{nnz}, nnz from values: {values.shape[0]}"
        )
    dense = tuple(values.shape[1:])
    if size is None:
        lengths = planned("lengths", _lengths, indices)
        shape = (*lengths, *dense)
    else:
        shape = size_of(function, (size,))
        if len(shape) != sparse_dim + len(dense):
            raise RuntimeError(
                "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
                f"{len(shape)}, sparse_dim = {sparse_dim}, dense_dim = {len(dense)}"
            )
        if shape[sparse_dim:] != dense:
            expected = [nnz, *shape[sparse_dim:]]
            raise RuntimeError(
                f"values has incorrect size, expected {expected}, got "
                f"{list(values.shape)}"
            )
    if check:
        _check(host_indices(indices), shape[:sparse_dim], bool(is_coalesced))
    countable(shape)
    values = _role(values, bool(requires_grad), "SparseCooTensorWithDimsAndTensors")
    return coo(indices, values, shape, nnz < 2 or bool(is_coalesced))


def _lengths(indices: np.ndarray) -> tuple[int, ...]:
    """How long each dimension must be for the indices."""
    _check(indices, None, False)
    return tuple(int(row.max(initial=-1)) + 1 for row in indices)


def _check(indices: np.ndarray, size: Any, is_coalesced: bool) -> None:
    for dim, row in enumerate(indices):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {dim}")
        if size is not None and row.size and row.max() >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is "
                f"{size[dim]} but found index {row.max()}"
            )
    if is_coalesced and (np.diff(keys_of(indices, size or ())) <= 0).any():
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO "
            "tensor"
        )


def empty_coo(
    size: Sequence[int],
    dtype: Any,
    device: Any,
    requires_grad: bool = False,
    dense_dim: int = 0,
) -> Any:
    """A sparse tensor without values."""
    where = device_of("sparse_coo_tensor", device)
    kind = dtype or dtypes.get_default_dtype()
    check_gradient(kind, requires_grad)
    cut = len(size) - dense_dim
    indices = filled("empty", (cut, 0), 0, dtypes.int64, where)
    values = filled("empty", (0, *size[cut:]), 0, kind, where, requires_grad)
    return coo(indices, values, size, True)


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
    if len(size) != 2:
        raise RuntimeError(
            f"torch.{function}: Only batched sparse compressed (non-block) tensors are "
            f"supported, but got size {list(size)}"
        )
    where = device_of(function, device)
    starts = filled("zeros", (size[name == "sparse_csc"] + 1,), 0, dtypes.int64, where)
    places = filled("zeros", (0,), 0, dtypes.int64, where)
    values = filled("zeros", (0,), 0, dtype or dtypes.get_default_dtype(), where)
    options = {"requires_grad": requires_grad, "check_invariants": False}
    made = _compressed(function, layout, (starts, places, values), size, options)
    return made if out is None else out.copy_(made)


# -- compressed ------------------------------------------------------------------------


def _compressed(
    function: str,
    layout: Any,
    given: tuple[Any, Any, Any],
    size: Any,
    options: dict[str, Any],
) -> Any:
    _pinned(options.pop("pin_memory", False))
    dtype = dtype_of(function, options.pop("dtype", None))
    device = options.pop("device", None)
    grad = bool(options.pop("requires_grad", False))
    check = checked(options.pop("check_invariants", None))
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    values = _tensor(function, given[2], dtype, device)
    outer, inner = (
        _tensor(
            function,
            g,
            None if isinstance(g, TensorBase) else dtypes.int64,
            values.device,
        )
        for g in given[:2]
    )
    if outer.ndim != 1 or inner.ndim != 1 or values.ndim != 1:
        raise NotImplementedError(
            f"{function}(): batches, blocks and dense dimensions of compressed sparse "
            "tensors are not supported"
        )
    if size is None:
        if inner.dtype.category != dtypes.INTEGER:
            raise NotImplementedError(
                '"estimate_sparse_compressed_tensor_size" not implemented for '
                f"'{inner.dtype.scalar_name}'"
            )
        lengths = planned("lengths", lambda i: _lengths(i[None]), inner)
        pair = (outer.shape[0] - 1, *lengths)
        shape = pair if layout.name == "sparse_csr" else pair[::-1]
    else:
        shape = size_of(function, (size,))
    if check:
        _check_compressed(layout, outer, inner, values, shape)
    values = _role(values, grad, "SparseCompressedTensor")
    return compressed(layout, outer, inner, values, shape)


def _check_compressed(
    layout: Any, outer: Any, inner: Any, values: Any, shape: Sequence[int]
) -> None:
    first, second = LAYOUT_NAMES[layout.name]
    if len(shape) != 2:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense "
            f"dimensionalities (=0 + 2 + 0) but got {len(shape)}"
        )
    by_rows = layout.name == "sparse_csr"
    lines, across = shape if by_rows else shape[::-1]
    if outer.shape[0] != lines + 1:
        raise RuntimeError(
            f"{first}.shape[-1] must be equal to the number of "
            f"{'rows' if by_rows else 'columns'} + 1 (={lines + 1}), but got "
            f"{outer.shape[0]}"
        )
    if inner.shape[0] != values.shape[0]:
        raise RuntimeError(
            f"{second}.shape[-1] must be equal to nnz (={values.shape[0]}) as defined "
            f"by values.shape[0], but got {inner.shape[0]}"
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
    length, other = halves(layout.name)
    steps = np.diff(counts)
    piece = f"{second}[..., {first}[..., i - 1]:{first}[..., i]]"

    def each_sorted() -> bool:
        rising = np.diff(places) > 0
        # Between the last of a line and the first of the next it may fall.
        rising[[at - 1 for at in counts[1:-1] if 0 < at < len(places)]] = True
        return bool(rising.all())

    for holds, text in (
        (
            lambda: not len(places) or (places.min() >= 0 and places.max() < across),
            f"0 <= {second} < {other}",
        ),
        (lambda: counts[0] == 0, f"{first}[..., 0] == 0"),
        (lambda: counts[-1] == len(places), f"{first}[..., -1] == nnz"),
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
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    layout: Any = None,
    **options: Any,
) -> Tensor:
    """`sparse_csr_tensor` or `sparse_csc_tensor`, by `layout`.

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
    if name in (None, "strided", "sparse_coo"):
        got = LAYOUT_TEXTS[name] if name else "none"
        raise RuntimeError(
            f"{function} expected sparse compressed tensor layout but got {got}"
        )
    if name not in LAYOUT_NAMES:
        raise NotImplementedError(f"{function}(): layout={layout} is not supported")
    given = compressed_indices, plain_indices, values
    return _compressed(function, layout, given, size, options)


@public(namespaces=("sparse",))
@handles("sparse.spdiags", "spdiags", "_spdiags")
def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Tensor:
    """A sparse matrix with these diagonals.

    https://docs.pytorch.org/docs/2.13/generated/torch.sparse.spdiags.html

    >>> import torchshim as torch
    >>> torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([0]), (2, 2)).to_dense()
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows = diagonals.reshape(1, -1) if diagonals.ndim == 1 else diagonals
    offsets = offsets.reshape(1) if not offsets.ndim else offsets
    if rows.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.ndim != 1:
        raise RuntimeError("Offsets must be scalar or vector")
    if offsets.shape[0] != rows.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of "
            f"offsets ({offsets.shape[0]})"
        )
    if offsets.dtype is not dtypes.int64:
        raise RuntimeError(
            f"Offset Tensor must have dtype Long but got {offsets.dtype.scalar_name}"
        )
    if layout is not None and layout.name not in ("sparse_coo", *LAYOUT_NAMES):
        raise RuntimeError(
            "Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got "
            f"{LAYOUT_TEXTS[layout.name]}"
        )
    height, width = shape
    given = offsets.tolist()
    if len(set(given)) != len(given):
        raise RuntimeError("Offset tensor contains duplicate values")
    at, which = [], []
    for k, offset in enumerate(given):
        end = min(width, height + offset, rows.shape[1])
        columns = np.arange(max(offset, 0), max(end, max(offset, 0)))
        at.append(np.stack([columns - offset, columns]))
        which.append(columns + k * rows.shape[1])
    device = diagonals.device
    none = np.zeros((2, 0), np.int64)
    places = placed(np.concatenate([none, *at], 1).astype(np.int64), device)
    order = placed(np.concatenate([none[0], *which]).astype(np.int64), device)
    made = coo(places, rows.reshape(-1).index_select(0, order), shape, False)
    return made if layout is None else made.to_sparse(layout=layout)


# -- the old ways ----------------------------------------------------------------------

_INCORRECT = (
    "new() received an invalid combination of arguments - got ({}), but expected one "
    "of:\n * (*, torch.device device = None)\n"
    " * (Tensor indices, Tensor values, *, torch.device device = None)\n"
    " * (Tensor indices, Tensor values, tuple of ints size, *, "
    "torch.device device = None)\n"
    " * (tuple of ints size, *, torch.device device = None)\n"
)


def old_arguments(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What `torch.sparse.FloatTensor` and `Tensor.new` got: elements, or a size."""
    tensors = [isinstance(a, TensorBase) for a in args]
    if not args:
        return ((0,),)
    if tensors in ([True, True], [True, True, False]):
        return args
    if all(isinstance(a, int) for a in args):
        return (args,)
    if tensors == [False] and isinstance(args[0], (list, tuple)):
        if isinstance(args[0], Size):
            return args
        raise TypeError(
            f"{name}(sequence) only accepts sizes.  Please use "
            "torch.sparse_coo_tensor() or construct a strided tensor and convert it to "
            "sparse via to_sparse."
        )
    raise TypeError(_INCORRECT.format(", ".join(map(kind_of, args))))


def old_tensor(given: tuple[Any, ...], dtype: Any, device: Any) -> Tensor:
    """A sparse tensor of such arguments; elements keep the dtype of their values."""
    if len(given) == 1:
        return sparse_coo_tensor(*given, dtype=dtype, device=device)
    kind = given[0].dtype
    if kind is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {kind.scalar_name}")
    # As PyTorch has it, nobody is told of invariants.
    return sparse_coo_tensor(
        *given, device=device, check_invariants=bool(invariants[0])
    )
