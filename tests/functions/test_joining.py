"""Tensors joined into others: what `out=` may be."""

from __future__ import annotations

from tests.oracle import attempt, case


@case(warnings=False)
def joined_into_other_kinds(torch):
    one, out = torch.ones(1), torch.ones(2, dtype=torch.int)
    for join in (torch.cat, torch.stack, torch.hstack):
        yield attempt(lambda join=join: join((one, one), out=out))
    yield attempt(lambda: torch.cat((one.cfloat(), one), out=torch.ones(2)))
    yield torch.cat((one, one), out=torch.ones(2, dtype=torch.double))


def test_what_a_memory_gives_is_no_new_program_each_time():
    """What is sampled and joined enters as one tensor, whichever it is."""
    import random

    import torchshim as torch
    from torchshim._core import program

    random.seed(0)
    memory = [torch.tensor([[float(i), 1.0]]) for i in range(20)]
    w = torch.ones(2, 2, requires_grad=True)
    for turn in range(6):
        chosen = [None, *(random.choice(memory) for _ in range(12)), None]
        random.shuffle(chosen)
        rows = torch.cat([torch.zeros(1, 2) if c is None else c for c in chosen])
        total = (rows @ w).sum()
        expected = 2 * sum(float(c.sum()) for c in chosen if c is not None)
        assert total.item() == expected
        if not turn:
            before = program.count()
    assert program.compiled_since(before) == []
