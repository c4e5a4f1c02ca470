"""Sparse tensors of random shapes to time (``torch.utils.benchmark``)."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

import torchshim as torch
from torchshim.utils.benchmark.utils.fuzzer import FuzzedTensor

__all__ = ["FuzzedSparseTensor"]


class FuzzedSparseTensor(FuzzedTensor):
    """A sparse COO tensor made for each example.

    The parameters "density", "coalesced" and "sparse_dim" say how it is filled.
    """

    def __init__(
        self,
        name: str,
        size: tuple[str | int, ...],
        min_elements: int | None = None,
        max_elements: int | None = None,
        dim_parameter: str | None = None,
        sparse_dim: str | None = None,
        nnz: str | None = None,
        density: str | None = None,
        coalesced: str | None = None,
        dtype: Any = torch.float32,
        cuda: bool = False,
    ) -> None:
        super().__init__(
            name=name,
            size=size,
            min_elements=min_elements,
            max_elements=max_elements,
            dim_parameter=dim_parameter,
            dtype=dtype,
            cuda=cuda,
        )
        self._density = density
        self._coalesced = coalesced
        self._sparse_dim = sparse_dim

    @staticmethod
    def sparse_tensor_constructor(
        size: Any, dtype: Any, sparse_dim: int, nnz: int, is_coalesced: bool
    ) -> Any:
        """`nnz` values at random places; twice as many, in pairs, if not coalesced."""
        if isinstance(size, Number):
            size = [size] * sparse_dim
        if all(size[d] <= 0 for d in range(sparse_dim)) and nnz != 0:
            raise AssertionError("invalid arguments")
        shape = [nnz, *size[sparse_dim:]]
        if dtype.is_floating_point:
            values = torch.rand(size=shape, dtype=dtype, device="cpu")
        else:
            values = torch.randint(1, 127, size=shape, dtype=dtype, device="cpu")
        places = torch.rand(sparse_dim, nnz, device="cpu")
        places.mul_(torch.tensor(size[:sparse_dim]).unsqueeze(1).to(places))
        places = places.to(torch.long)
        if not is_coalesced:
            values = torch.cat([values, torch.randn_like(values)], 0)
            places = torch.cat([places, places], 1)
        made = torch.sparse_coo_tensor(places, values, torch.Size(size))
        return made.coalesce() if is_coalesced else made

    def _make_tensor(self, params: dict[str, Any], state: Any) -> tuple[Any, Any]:
        size, _, _ = self._get_size_and_steps(params)
        density = params["density"]
        nnz = math.ceil(sum(size) * density)
        if nnz > sum(size):
            raise AssertionError("nnz cannot exceed total number of elements")
        wanted = params["sparse_dim"] if self._sparse_dim else len(size)
        tensor = self.sparse_tensor_constructor(
            size, self._dtype, min(wanted, len(size)), nnz, params["coalesced"]
        )
        if self._cuda:
            tensor = tensor.cuda()
        return tensor, {
            "numel": int(tensor.numel()),
            "shape": tensor.size(),
            "is_coalesced": tensor.is_coalesced(),
            "density": density,
            "sparsity": 1.0 - density,
            "sparse_dim": tensor.sparse_dim(),
            "dense_dim": tensor.dense_dim(),
            "is_hybrid": len(size[tensor.sparse_dim() :]) > 0,
            "dtype": str(self._dtype),
        }
