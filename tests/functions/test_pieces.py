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


@case
def keywords_of_one_of_several_forms(torch):
    x = torch.arange(24).reshape(4, 2, 3)
    calls = {
        "tensor_split": ({"sections": 3}, {"indices": (1, 2)}, {"indices": 1}),
        "hsplit": ({"sections": 2}, {"indices": [1]}, {"sections": 5}),
        "vsplit": ({"sections": 2}, {"indices": (-1,)}, {"section": 2}),
        "dsplit": ({"sections": 3}, {"indices": ()}),
    }
    for name, given in calls.items():
        for kwargs in given:
            yield attempt(getattr(torch, name), x, **kwargs)
            yield attempt(getattr(x, name), **kwargs)
    yield x.tensor_split(indices=(1,), dim=2), torch.tensor_split(x, dim=1, sections=2)
    yield torch.hsplit(input=x, sections=2), torch.tensor_split(input=x, sections=2)
    for wrong in ({"none_such": 1}, {"sections": 2}):
        yield attempt(x.tensor_split, 2, **wrong)
    yield attempt(torch.tensor_split, x, indices_or_sections=2)
    yield attempt(torch.hsplit, x, indices_or_sections=2)
    yield (
        x.view(size=(6, 4)).shape,
        x.sum_to_size(size=(1, 2, 1)),
        x.view(dtype=x.dtype),
    )
    yield x.clone().resize_(size=(3,)), x.clone().resize_as_(the_template=x[0]).shape
    yield torch.where(condition=x > 3, self=x, other=-x)[0]
    yield (
        torch.float_power(self=2, exponent=x[0]),
        torch.repeat_interleave(repeats=x[0, 0]),
    )
    yield torch.result_type(tensor=x, other=1.5)
