"""Floating-point numbers that integers cannot hold: they wrap, or are refused."""

from __future__ import annotations

from tests.oracle import attempt, case

KINDS = ("uint8", "int8", "int16", "int32", "int64", "bool")
NUMBERS = [-1.5, 300.7, 256, -300, 3e9, -3e9, 1e19]
NUMBERS += [float("nan"), float("inf"), -float("inf")]

WRITES = {
    "slice": lambda x, t: x.__setitem__(slice(None), t),
    "all": lambda x, t: x.__setitem__(..., t),
    "element": lambda x, t: x.__setitem__(0, t[1]),
    "column": lambda x, t: x.unsqueeze(0).t().__setitem__(slice(2), t[:2, None]),
    "data": lambda x, t: x.data.__setitem__(slice(None), t),
    "expanded": lambda x, t: x.view(1, -1)[0].copy_(t),
    "view": lambda x, t: x[:2].copy_(t[:2]),
}


@case.over(kind=KINDS, how=WRITES)
def written(torch, kind, how):
    for source in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.zeros(len(NUMBERS), dtype=getattr(torch, kind))
        WRITES[how](x, torch.tensor(NUMBERS).to(source))
        yield x


@case.over(*KINDS)
def scattered(torch, kind):
    t = torch.tensor(NUMBERS)
    n = len(NUMBERS)
    x = torch.zeros(n, dtype=getattr(torch, kind))
    yield torch.as_strided_scatter(x, t, (n,), (1,))
    yield torch.slice_scatter(x, t)
    yield torch.select_scatter(x.view(1, n), t, 0, 0)


@case.over(*KINDS)
def reduced(torch, kind):
    kind = getattr(torch, kind)
    t = torch.tensor(NUMBERS)
    for function in (torch.sum, torch.nansum, torch.prod, torch.cumsum, torch.cumprod):
        yield attempt(function, t[:, None], 1, dtype=kind)
    for function in (torch.sum, torch.nansum, torch.prod):
        yield function(t[:4], dtype=kind)
    for function in (torch.cumsum, torch.cumprod, torch.masked.sum):
        yield attempt(function, t[:4], 0, dtype=kind)
    yield torch.nansum(t.half()[-3:, None], 1, dtype=kind)


@case.over("bool", "uint8", "int64")
def complex_reduced(torch, kind):
    t = torch.tensor([1 + 1j, 1j])
    for function in (torch.sum, torch.prod):
        yield function(t, dtype=getattr(torch, kind))


FILLERS = {
    "-0.5": -0.5,
    "-1.5": -1.5,
    "-1": -1,
    "-256": -256,
    "256": 256,
    "70000": 70000,
    "2**40": 2**40,
    "1e39": 1e39,
    "inf": float("inf"),
    "nan": float("nan"),
    "1+0j": 1 + 0j,
    "1j": 1j,
    "True": True,
}


@case.over(kind=(*KINDS, "float16", "bfloat16", "float32", "complex64"), filler=FILLERS)
def filled(torch, kind, filler):
    """By a tensor, whose value PyTorch reads: it has to fit."""
    value = FILLERS[filler]
    value = torch.tensor(value, dtype=torch.float64 if value == 1e39 else None)
    x = torch.zeros(2, dtype=getattr(torch, kind))
    for index in ([0], []):
        index = torch.tensor(index, dtype=torch.int64)
        yield attempt(lambda i=index: x.clone().index_fill_(0, i, value).tolist())
    for mask in ([True, False], [False, False]):
        mask = torch.tensor(mask)
        yield attempt(lambda m=mask: x.clone().masked_fill_(m, value).tolist())

    def assigned():
        y = x.clone()
        y[y == 0] = value
        return y.tolist()

    yield attempt(assigned)
