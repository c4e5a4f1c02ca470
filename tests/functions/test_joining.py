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
