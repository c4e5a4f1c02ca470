"""Samples of `torch.linalg` that test files call by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from torchshim.testing import make_tensor
from torchshim.testing._internal._matrices import (
    make_fullrank_matrices_with_distinct_singular_values as make_fullrank,
)
from torchshim.testing._internal.opinfo.core import SampleInput


def sample_inputs_linalg_solve(
    op_info: Any,
    device: Any,
    dtype: Any,
    requires_grad: bool = False,
    vector_rhs_allowed: bool = True,
    **kwargs: Any,
) -> Iterator[SampleInput]:
    """Regular matrices, empty ones and batches too, each with right sides."""
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    batches: tuple[tuple[int, ...], ...] = ((), (0,), (2,), (2, 2))
    sides: tuple[tuple[int, ...], ...] = ((1,), (3,))
    if vector_rhs_allowed:
        sides = ((), *sides)
    for n, batch, side in itertools.product((5, 0), batches, sides):
        matrix = make_fullrank(*batch, n, n, **options)
        yield SampleInput(matrix, make_tensor((*batch, n, *side), **options))
