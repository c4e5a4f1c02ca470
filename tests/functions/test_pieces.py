"""Pieces of tensors: the numbers that their sizes may be."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case


@case.over(kind=["int64", "int32", "bool_", "float64", "array", "list", "mixed"])
def sizes_of_numpy(torch, kind):
    x = torch.arange(6.0)
    size = {
        "array": np.array(2),
        "list": [np.int64(2), np.int64(4)],
        "mixed": (np.int64(2), 4),
    }.get(kind)
    if size is None:
        size = getattr(np, kind)(2)
    yield attempt(torch.split, x, size)
    yield attempt(x.split, size)
    if kind != "array":
        yield attempt(torch.unsafe_split, x, size) if kind == "int64" else None
        yield attempt(torch.tensor_split, x, size)
        yield attempt(torch.hsplit, x, size)
        yield attempt(torch.vsplit, x.view(2, 3), size)
    if kind.startswith("int"):
        yield torch.chunk(x, size), x.narrow(0, 0, size), x.topk(size)


@case.over(kind=["bool", "int64", "float32"])
def truths_of_numpy(torch, kind):
    """PyTorch takes them for floats."""
    x = torch.tensor([1, 0, 1], dtype=getattr(torch, kind))
    for truth in (np.bool_(True), np.bool_(False)):
        yield attempt(x.__and__, truth), attempt(x.__or__, truth)
        yield attempt(x.__add__, truth), attempt(x.__rmul__, truth)
        yield attempt(x.__sub__, truth), attempt(x.__pow__, truth)
        yield attempt(x.clone().add_, truth), attempt(x.add, x, alpha=truth)
        yield x == truth, torch.where(x > 0, x, truth), x.clamp(min=truth)
        yield x.masked_fill(x > 0, truth), torch.full((1,), truth)
        yield x.sum(0, keepdim=truth)
