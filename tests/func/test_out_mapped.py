"""`out=` within `vmap`: refused where a tensor is mapped, by the form's name."""

from __future__ import annotations

from tests.oracle import attempt, case

CALLS = """
sin(t, out=t)
sin(t, out=torch.empty(3))
sin(torch.ones(3), out=t)
sin(t, out=torch.empty(3, dtype=torch.long))
sin(t, out=None)
abs(t, out=t)
add(t, 1, out=t)
sub(t, t, out=t)
mul(t, t, out=t)
div(t, 2, out=t)
div(t, 2, rounding_mode="floor", out=t)
clamp(t, 0, 1, out=t)
pow(t, 2, out=t)
pow(2, t, out=t)
pow(t, t, out=t)
eq(t, 0, out=torch.empty(3).bool())
lt(t, t, out=torch.empty(3).bool())
where(t > 0, t, t, out=torch.empty(3))
maximum(t, t, out=t)
max(t, t, out=t)
max(t, 0, out=(torch.empty(()), torch.empty(()).long()))
median(t, 0, out=(torch.empty(()), torch.empty(()).long()))
sort(t, out=(torch.empty(3), torch.empty(3).long()))
topk(t, 1, out=(torch.empty(3), torch.empty(3).long()))
sum(t, 0, out=torch.empty(()))
mean(t, 0, out=torch.empty(()))
mean(t, out=torch.empty(()))
prod(t, 0, out=torch.empty(()))
amax(t, 0, out=torch.empty(()))
cumsum(t, 0, out=torch.empty(3))
dot(t, t, out=torch.empty(()))
matmul(t, t, out=torch.empty(()))
outer(t, t, out=torch.empty(3, 3))
linalg.vector_norm(t, out=torch.empty(()))
cat([t, t], out=torch.empty(6))
stack([t, t], out=torch.empty(2, 3))
gather(t, 0, torch.tensor([0]), out=torch.empty(1))
arange(3, out=t)
zeros(3, out=t)
rand(3, out=t)
normal(t, t, out=t)
bernoulli(t, out=t)
"""


@case.lines(CALLS)
def refused(torch, line):
    call = eval(f"lambda t: torch.{line}", {"torch": torch})
    yield attempt(torch.vmap(call, randomness="different"), torch.ones(2, 3))


@case
def not_mapped(torch):
    out = torch.empty(3)
    yield torch.vmap(lambda t: t + torch.sin(torch.ones(3), out=out))(torch.ones(2, 3))
    yield out


@case.lines("""
rand(3, out=y)
normal(x, y, out=y)
normal(0.0, 1.0, (3,), out=y)
bernoulli(x, out=y)
multinomial(x, 2, out=n)
randperm(3, out=n)
""")
def random_numbers_not_mapped(torch, line):
    known = {"torch": torch, "x": torch.ones(3), "y": torch.ones(3)}
    call = eval(f"lambda t: torch.{line}", known | {"n": torch.ones(3).long()})
    for randomness in ("same", "different", "error"):
        yield attempt(torch.vmap(call, randomness=randomness), torch.ones(2, 3))
