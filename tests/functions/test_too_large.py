"""Numbers that a tensor's elements cannot hold: refused, or they wrap around."""

from __future__ import annotations

import math

from tests.oracle import attempt, case, evaluate

# What PyTorch converts to the dtype of the computation, and refuses.
REFUSED = {
    "clamp(max)": lambda torch, x, n: x.clamp(max=n),
    "clamp(min)": lambda torch, x, n: x.clamp(min=n),
    "clamp(both)": lambda torch, x, n: x.clamp(n, n),
    "clamp_": lambda torch, x, n: x.clone().clamp_(n),
    "clamp_max_": lambda torch, x, n: x.clone().clamp_max_(n),
    "where": lambda torch, x, n: torch.where(x == 1, x, n),
    "where other": lambda torch, x, n: torch.where(x == 1, n, x),
    "threshold": lambda torch, x, n: torch.nn.functional.threshold(x, 1, n),
    "hardtanh": lambda torch, x, n: torch.nn.functional.hardtanh(x, n, n + 1),
    "masked_fill": lambda torch, x, n: x.masked_fill(x == 1, n),
    "index_fill": lambda torch, x, n: x.index_fill(0, torch.tensor([0]), n),
    "scatter": lambda torch, x, n: x.scatter(0, torch.tensor([0]), n),
    "pad": lambda torch, x, n: torch.nn.functional.pad(x, (1, 1), value=n),
    "add": lambda torch, x, n: x.add(x, alpha=n),
    "sub": lambda torch, x, n: x.sub(x, alpha=n),
    "rsub": lambda torch, x, n: torch.rsub(x, 1, alpha=n),
    "pow": lambda torch, x, n: x.pow(n),
    "addcmul": lambda torch, x, n: x.addcmul(x, x, value=n),
    "addmv": lambda torch, x, n: x.addmv(x.view(-1, 1) * x, x, alpha=n),
    "addr": lambda torch, x, n: (x.view(-1, 1) * x).addr(x, x, beta=n),
    "index_add": lambda torch, x, n: x.index_add(0, x.long() * 0, x, alpha=n),
    "linspace": lambda torch, x, n: torch.linspace(0, n, 3, dtype=x.dtype),
    "fill_": lambda torch, x, n: (x * 1).fill_(n),
    "item assignment": lambda torch, x, n: (x * 1).__setitem__(0, n),
}
# And what becomes a tensor of another dtype first.
WRAPPED = {
    "sum": lambda torch, x, n: x + n,
    "product": lambda torch, x, n: n * x,
    "comparison": lambda torch, x, n: x < n,
    "bits": lambda torch, x, n: x & n,
}


def each(torch, functions, x):
    for name, function in functions.items():
        for number in (300, -1, -300, 2**40):
            if name == "linspace" and number < 0:
                continue
            yield name, number, attempt(lambda n=number, f=function: f(torch, x, n))


@case.over(dtype=["uint8", "int8", "int16", "int32", "bool"])
def integers(torch, dtype):
    x = torch.tensor([1, 0]).to(getattr(torch, dtype))
    yield from each(torch, REFUSED, x)
    yield from each(torch, WRAPPED, x)


FLOATS = [
    *("clamp(max)", "clamp(min)", "clamp(both)", "where", "where other", "threshold"),
    *("masked_fill", "index_fill", "scatter", "pad", "addcmul", "addmv", "addr"),
    *("index_add", "fill_", "item assignment"),
]


@case.over(dtype=["uint8", "int8", "int32", "int64", "bool"])
def fractions_for_whole_elements(torch, dtype):
    x = torch.tensor([1, 0]).to(getattr(torch, dtype))
    for name in FLOATS:
        # The same statement with one that fits, and others that do not.
        for number in (2.5, 300.5, -1.0, 1e30, math.inf, math.nan, 3.5):
            if name == "fill_" and dtype == "bool":
                continue
            yield name, number, attempt(REFUSED[name], torch, x, number)


@case.over(
    dtype=["float16", "bfloat16", "float32", "complex64"], number=[1e300, 1e5, math.inf]
)
def floats_for_shorter_ones(torch, dtype, number):
    # Of another size each: events that are known are not looked at again.
    size = 12 + [1e300, 1e5, math.inf].index(number)
    x = (torch.arange(size) < 2).to(getattr(torch, dtype))
    for name in FLOATS:
        if name.startswith(("clamp", "thr")) and dtype == "complex64":
            continue
        if name == "threshold" and dtype.endswith("16"):
            continue
        if name.startswith("add") and (dtype.endswith("16") or number == math.inf):
            continue  # computed in float32; NaN in both parts
        yield name, attempt(REFUSED[name], torch, x, number)
    if dtype == "float32":
        yield attempt(x.lerp, x + 1, number)


@case.over(dtype=["int64", "float32", "float64", "complex64"])
def wide(torch, dtype):
    x = torch.tensor([1, 0]).to(getattr(torch, dtype))
    for name in ("where", "masked_fill", "fill_", "item assignment", "clamp(max)"):
        for number in (2**62, 2**63, 2**64 - 1, -(2**63)):
            if name == "clamp(max)" and dtype == "complex64":
                continue
            yield name, number, attempt(REFUSED[name], torch, x, number)


@case.over(dtype=["int8", "uint8", "int16", "int32", "int64", "float32"])
def beyond_64_bits(torch, dtype):
    x = torch.tensor([5, 7]).to(getattr(torch, dtype))
    for n in (2**63, 2**63 + 3, 2**64, 2**70, -(2**63), -(2**63) - 1):
        for name in ("add", "sub", "mul", "div", "eq", "lt"):
            yield name, n, attempt(getattr(x, name), n)
    # Divisors that wrap around to 0.
    for n in (2**8, 2**16 + 2**8, 2**32, 2**63, 2**63 + 3, -(2**63), 0):
        for name in ("floor_divide", "remainder", "fmod"):
            yield name, n, attempt(getattr(x, name), n)
        yield n, attempt(x.div, n, rounding_mode="trunc"), attempt(x[:0].remainder, n)


@case
def divisors_that_vary(torch):
    x = torch.tensor([5, 7], dtype=torch.int8)
    for n in (3, 4, 5, 256, 512, 261):
        yield n, attempt(lambda n=n: (x % n + 1).tolist())


@case.lines(
    """
    torch.tensor([1], dtype=torch.uint8).clamp_(1.5)
    torch.tensor([1], dtype=torch.int16).clamp_max_(1.5)
    torch.tensor([True]).clamp_(2)
    torch.tensor([1], dtype=torch.int32).clamp_(torch.tensor(1.5))
    torch.clamp(torch.tensor([1]), 1.5, out=torch.tensor([1]))
    """
)
def bounds_of_another_kind(torch, line):
    return evaluate(torch, line)
