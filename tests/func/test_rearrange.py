"""`torch.func.rearrange`: its patterns and what it says of wrong ones."""

from __future__ import annotations

from tests.oracle import attempt, case

PATTERNS = """
a b c -> c b a
a b c -> (c b) a
a b (c d) -> d a (b c)
a (b c) d -> b a d c
... c -> c ...
a ... -> (...) a
a ... c -> a (...) c
... -> (...)
a b c -> a 1 b c 1
a b c -> a b c ()
a b c -> (a 1) (b c)
a b c
a b -> a b -> a b
a b c -> a b
a b c -> a b c d
a a c -> a c
a b -> a b
a b c d -> a b c d
a b c d ... -> a b c d ...
a b c -> ... a b c
a (b ...) c -> a b ... c
a ((b)) c -> a b c
a b) c -> a b c
a (b c -> a b c
a b 4 -> a b 4
a b 0 -> a b 0
a _b c -> a _b c
a 3b c -> a 3b c
a . c -> a . c
a ... ... -> a
a * c -> a c
a if c -> if a c
""".strip().splitlines()


@case(stride=True).over(*PATTERNS)
def patterns(torch, pattern):
    x = torch.arange(24).view(2, 3, 4)
    lengths = {"c": 2} if "d" in pattern and "(c d)" in pattern else {}
    if "(b c)" in pattern.partition("->")[0]:
        lengths = {"b": 3}
    return torch.func.rearrange(x, pattern, **lengths)


@case
def sizes(torch):
    rearrange = torch.func.rearrange
    x = torch.arange(6).view(2, 3)
    yield rearrange(x, "a (b c) -> a b c", b=3, c=1), rearrange(x, "a b -> b a", b=3)
    yield attempt(rearrange, x, "a b -> a b", c=2)
    yield attempt(rearrange, x, "a b -> a b", b=2.5)
    yield rearrange([x, x + 1], "n a b -> a (n b)")
    yield rearrange(torch.ones(()), "->"), rearrange(x[:1], "1 b -> b")
    y = torch.ones(2, 3, requires_grad=True)
    (rearrange(y, "a b -> (b a)") * torch.arange(6.0)).sum().backward()
    yield y.grad


@case(message=False)
def wrong_sizes(torch):
    """PyTorch names the dimensions by numbers."""
    x = torch.arange(6).view(2, 3)
    for lengths in ({}, {"b": 2}, {"b": 2, "c": 2}):
        found = attempt(torch.func.rearrange, x, "a (b c) -> a b c", **lengths)
        yield type(found).__name__


def test_functorch_has_it_too() -> None:
    from torchshim.func import rearrange
    from torchshim.functorch import einops

    assert einops.rearrange is rearrange
