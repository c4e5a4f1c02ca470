"""Random matrices with chosen properties."""

# ruff: noqa: E741 -- PyTorch's arguments are named so

from __future__ import annotations

import math
from typing import Any

import torchshim as torch


def _square(shape: tuple[int, ...]) -> None:
    if shape[-1] != shape[-2]:
        raise AssertionError(
            f"expected square matrix, got shape[-1]={shape[-1]} != "
            f"shape[-2]={shape[-2]}"
        )


def _normal(rows: int, columns: int, batches: tuple[int, ...], kwargs: Any) -> Any:
    dtype = kwargs.get("dtype", torch.double)
    device = kwargs.get("device", "cpu")
    return torch.randn(*batches, rows, columns, dtype=dtype, device=device)


def random_square_matrix_of_rank(
    l: int, rank: int, dtype: Any = torch.double, device: Any = "cpu"
) -> Any:
    """A square matrix of this rank."""
    if rank > l:
        raise AssertionError(f"rank must be <= l, got rank={rank}, l={l}")
    u, s, vh = torch.linalg.svd(_normal(l, l, (), {"dtype": dtype, "device": device}))
    kept = torch.where(s == 0, torch.ones_like(s), s)
    kept = kept * (torch.arange(l, device=device) < rank)
    return (u * kept.to(dtype).unsqueeze(-2)) @ vh


def random_well_conditioned_matrix(
    *shape: int, dtype: Any, device: Any, mean: float = 1.0, sigma: float = 0.001
) -> Any:
    """Matrices whose singular values are normally distributed."""
    x = torch.rand(shape, dtype=dtype, device=device)
    u, _, vh = torch.linalg.svd(x, full_matrices=False)
    size = (*shape[:-2], min(shape[-2:]))
    real = x.abs().dtype
    s = torch.randn(*size, dtype=real, device=device) * sigma + mean
    s = s.sort(-1, descending=True).values.to(dtype)
    return (u * s.unsqueeze(-2)) @ vh


def random_symmetric_matrix(l: int, *batches: int, **kwargs: Any) -> Any:
    """Symmetric matrices."""
    a = _normal(l, l, batches, kwargs)
    return (a + a.mT).div_(2)


def random_hermitian_matrix(l: int, *batches: int, **kwargs: Any) -> Any:
    """Hermitian matrices."""
    a = _normal(l, l, batches, kwargs)
    return (a + a.mH).div_(2)


def random_symmetric_psd_matrix(l: int, *batches: int, **kwargs: Any) -> Any:
    """Symmetric positive semi-definite matrices."""
    a = _normal(l, l, batches, kwargs)
    return a @ a.mT


def random_hermitian_psd_matrix(
    matrix_size: int,
    *batch_dims: int,
    dtype: Any = torch.double,
    device: Any = "cpu",
) -> Any:
    """Hermitian positive semi-definite matrices."""
    given = {"dtype": dtype, "device": device}
    a = _normal(matrix_size, matrix_size, batch_dims, given)
    return a @ a.mH


def random_symmetric_pd_matrix(
    matrix_size: int, *batch_dims: int, **kwargs: Any
) -> Any:
    """Symmetric positive definite matrices."""
    a = _normal(matrix_size, matrix_size, batch_dims, kwargs)
    return a @ a.mT + _eye_like(a) * 1e-5


def random_hermitian_pd_matrix(
    matrix_size: int, *batch_dims: int, dtype: Any, device: Any
) -> Any:
    """Hermitian positive definite matrices."""
    given = {"dtype": dtype, "device": device}
    a = _normal(matrix_size, matrix_size, batch_dims, given)
    return a @ a.mH + _eye_like(a)


def _eye_like(a: Any) -> Any:
    return torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def make_symmetric_matrices(*shape: int, device: Any, dtype: Any) -> Any:
    """Symmetric matrices of this whole shape."""
    _square(shape)
    t = torch.testing.make_tensor(shape, device=device, dtype=dtype)
    return (t + t.mT).div_(2)


def make_symmetric_pd_matrices(*shape: int, device: Any, dtype: Any) -> Any:
    """Symmetric positive definite matrices of this whole shape."""
    _square(shape)
    t = torch.testing.make_tensor(shape, device=device, dtype=dtype)
    return t @ t.mT + _eye_like(t) * 1e-5


def make_fullrank_matrices_with_distinct_singular_values(
    *shape: int, device: Any, dtype: Any, requires_grad: bool = False
) -> Any:
    """Matrices of full rank, no two of whose singular values are the same."""
    with torch.no_grad():
        t = torch.testing.make_tensor(shape, device=device, dtype=dtype)
        u, _, vh = torch.linalg.svd(t, full_matrices=False)
        # About one, so that the matrix is well conditioned: 1 + 1 / (2, -3, 4, …).
        values = [1 + (-1) ** i / (i + 2) for i in range(min(shape[-2:]))]
        s = torch.tensor(values, dtype=t.abs().dtype, device=device)
        x = (u * s.to(u.dtype)) @ vh
    return x.requires_grad_(requires_grad)


def random_matrix(rows: int, columns: int, *batch_dims: int, **kwargs: Any) -> Any:
    """Matrices with evenly spread singular values, or with `singular` singular ones."""
    a = _normal(rows, columns, batch_dims, kwargs)
    if a.numel() == 0:
        return a
    u, _, vh = torch.linalg.svd(a, full_matrices=False)
    k = min(rows, columns)
    s = torch.linspace(1 / (k + 1), 1, k, dtype=a.dtype, device=a.device)
    if kwargs.get("singular", False):
        s[k - 1] = 0
        if k > 2:
            s[0] = 0
    return (u * s.unsqueeze(-2)) @ vh


def random_matrix_with_scaled_reduction_dim(
    rows: int, columns: int, *batch_dims: int, **kwargs: Any
) -> Any:
    """Matrices whose product with themselves has entries of variance one."""
    scale = math.sqrt((rows, columns)[kwargs.get("reduction_dim", -1)])
    made = _normal(rows, columns, batch_dims, kwargs) / scale
    return made.requires_grad_(kwargs.get("requires_grad", False))


def random_lowrank_matrix(
    rank: int, rows: int, columns: int, *batch_dims: int, **kwargs: Any
) -> Any:
    """Matrices of this rank."""
    left = random_matrix(rows, rank, *batch_dims, **kwargs)
    return left.matmul(random_matrix(rank, columns, *batch_dims, **kwargs))
