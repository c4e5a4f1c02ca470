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
from torchshim._core.meta import Size
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._derived import public
from torchshim._functions._arguments import (
    check_gradient,
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


def as_part(function: str, value: Any, dtype: Any, device: Any) -> Any:
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


def with_role(values: Any, requires_grad: bool, node: str) -> Any:
    """The values of a new tensor: part of their history, or those of a leaf."""
    check_gradient(values.dtype, requires_grad)
    tracked = values.requires_grad
    if tracked and local.rec.grad:
        return named(values, node)
    if tracked or requires_grad:
        return values.detach().requires_grad_(requires_grad)
    return values


def check_pinned(pin_memory: Any) -> None:
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
    check_pinned(pin_memory)
    dtype = dtype_of(function, dtype)
    check = checked(check_invariants)
    if values is None:
        given = indices if size is None else size
        if given is None:
            raise TypeError(f"{function}() missing required argument 'indices'")
        where = device_of(function, device, linked)
        shape = countable(size_of(function, (given,)))
        return empty_coo(shape, dtype, where, requires_grad)
    values = as_part(function, values, dtype, device)
    indices = as_part(function, indices, dtypes.int64, values.device)
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
        lengths = planned("lengths", lengths_of, indices)
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
    values = with_role(values, bool(requires_grad), "SparseCooTensorWithDimsAndTensors")
    return coo(indices, values, shape, nnz < 2 or bool(is_coalesced))


def lengths_of(indices: np.ndarray) -> tuple[int, ...]:
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


_OF_DIAGONALS = "sparse_coo", "sparse_csr", "sparse_csc"


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
    if layout is not None and layout.name not in _OF_DIAGONALS:
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
