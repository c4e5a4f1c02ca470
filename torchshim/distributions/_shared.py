"""What several distributions have in common."""

from __future__ import annotations

from typing import Any

import torchshim
from torchshim._tensor import Tensor


def enumerate_integers(
    distribution: Any, count: int, like: Tensor, expand: bool, dtype: Any = None
) -> Tensor:
    """0 … count - 1 in dimension 0, for `enumerate_support`."""
    batch = distribution.batch_shape
    values = torchshim.arange(count, dtype=dtype or like.dtype, device=like.device)
    values = values.view((-1,) + (1,) * len(batch))
    return values.expand((-1, *batch)) if expand else values


def replaced(values: Tensor, mask: Tensor, number: Any) -> Tensor:
    """`values` with a number, or a tensor's elements, where the mask is true.

    As an assignment by index, so that the graph shows what PyTorch's shows.
    """
    values = values.clone()
    values[mask] = number
    return values


def batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Products of matrices and vectors."""
    return torchshim.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def log_diagonal(factor: Tensor) -> Tensor:
    """The sum of the logarithms of a triangular factor's diagonal."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """`right` multiplied by the inverse of lower triangular matrices."""
    return torchshim.linalg.solve_triangular(factor, right, upper=False)


def mahalanobis(factor: Tensor, vector: Tensor) -> Tensor:
    """Squared lengths of vectors after `solve_lower`; the batches are broadcast."""
    batch = torchshim.broadcast_shapes(factor.shape[:-2], vector.shape[:-1])
    n = vector.shape[-1]
    if factor.dim() == 2:
        # One factor for all: a single system with many right-hand sides.
        flat = solve_lower(factor, vector.reshape((-1, n)).mT)
        return flat.pow(2).sum(-2).reshape(vector.shape[:-1])
    whole = factor.expand((*batch, n, n))
    solved = solve_lower(whole, vector.expand((*batch, n)).unsqueeze(-1))
    return solved.squeeze(-1).pow(2).sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower factor of the inverse of positive definite matrices."""
    # The factor of the matrix turned by half a turn, turned back, is an upper one.
    turned = torchshim.linalg.cholesky(torchshim.flip(precision, (-2, -1)))
    upper = torchshim.transpose(torchshim.flip(turned, (-2, -1)), -2, -1)
    n = precision.shape[-1]
    eye = torchshim.eye(n, dtype=precision.dtype, device=precision.device)
    return solve_lower(upper, eye.expand(upper.shape))


def _batch_trace_XXT(matrix: Tensor) -> Tensor:
    """The sum of the squares of each matrix of a batch."""
    return matrix.pow(2).sum((-2, -1))
