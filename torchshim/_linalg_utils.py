"""Helpers of linear algebra by the names that PyTorch's own tests import."""

from __future__ import annotations

from typing import Any

from torchshim._core import dtypes
from torchshim._core.layout import NAMES
from torchshim._derived import fns, namespace
from torchshim._functions.lobpcg import symmetric_pairs
from torchshim._tensor import Tensor

_removed = namespace("torch")
eig, lstsq, matrix_rank, solve, _symeig = (
    _removed[name] for name in ("eig", "lstsq", "matrix_rank", "solve", "symeig")
)


def is_sparse(A: Any) -> bool:
    """Whether a tensor is sparse."""
    if isinstance(A, Tensor):
        return A.layout is NAMES["sparse_coo"]
    raise TypeError(f"expected Tensor but got {type(A)}")


def get_floating_dtype(A: Tensor) -> dtypes.dtype:
    """The dtype of floating tensors; float32 for all others."""
    dtype = A._tmeta.dtype
    return dtype if dtype.is_floating_point else dtypes.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """`A @ B`; None is the identity."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """`X^T A Y`."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """`S^T A S`."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthogonal basis of the columns."""
    return fns.linalg_qr(A)[0]


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and vectors by the upper triangle, the largest first if asked."""
    return symmetric_pairs(A, bool(largest))
