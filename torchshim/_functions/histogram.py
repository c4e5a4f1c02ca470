"""`torch.histogramdd`, whose bins may be numbers or tensors of edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._structseq import structseq
from torchshim._tensor import Tensor

Histogramdd = structseq("histogramdd", ("hist", "bin_edges"))


@public
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many points (the last dimension) fall into each box of a grid.

    `bins` is a number for each dimension, one for all, or a tensor of edges for each.
    Raises RuntimeError where sizes or dtypes do not fit.

    https://docs.pytorch.org/docs/2.13/generated/torch.histogramdd.html

    >>> import torchshim as torch
    >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), bins=[2, 2]).hist
    tensor([[0., 1.],
            [1., 0.]])
    """
    shape = input._tmeta.shape
    if len(shape) < 2:
        raise RuntimeError(
            "torch.histogramdd: input tensor should have at least 2 dimensions"
        )
    count = shape[-1]
    if isinstance(bins, int):
        bins = (bins,) * count
    if len(bins) != count:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of "
            "the input."
        )
    if any(isinstance(each, TensorBase) for each in bins):
        edges, given = tuple(bins), "tensors"
    else:
        if range is not None and len(range) != 2 * count:
            raise RuntimeError(
                f"torch.histogramdd: for a {count}-dimensional histogram range should "
                f"have {2 * count} elements, but got {len(range)}"
            )
        limits = None if range is None else tuple(map(float, range))
        numbers, given = tuple(map(int, bins)), "cts"
        edges = fns.histogramdd_edges(input, numbers, limits, weight)
    counts = fns.histogramdd_counts(input, edges, weight, density, given)
    return Histogramdd((counts, edges))
