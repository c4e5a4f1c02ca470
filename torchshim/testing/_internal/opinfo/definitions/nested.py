"""Nested tensors to test operators with; the operators have no samples of them here."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import torchshim as torch

njt_op_db: list[Any] = []


def _sample_njts(
    device: Any, dtype: Any, requires_grad: bool = False, dims: Any = None
) -> Iterator[Any]:
    """Jagged tensors of random sizes: as made, of parts, transposed, with holes."""
    chosen = (2, 3, 4) if dims is None else dims
    for dim in chosen if isinstance(chosen, (list, tuple)) else (chosen,):
        count, *sizes = (random.randint(3, 7) for _ in range(dim - 1))
        rows = [
            torch.randn(random.randint(2, 5), *sizes, device=device, dtype=dtype)
            for _ in range(count)
        ]
        nested = torch.nested.nested_tensor(
            rows, layout=torch.jagged, requires_grad=requires_grad
        )
        yield nested
        values, offsets = nested.values().detach().clone(), nested.offsets().clone()
        make = torch.nested.nested_tensor_from_jagged
        yield make(values, offsets).requires_grad_(requires_grad)
        if dim > 2:
            yield nested.transpose(-1, nested._ragged_idx)
        with_holes = make(values.clone(), offsets, lengths=offsets.diff() - 1)
        yield with_holes.requires_grad_(requires_grad)
