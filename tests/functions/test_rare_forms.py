"""Calls that are rare: of nothing, of numbers for dtypes, of shapes that broadcast."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case.lines("""
torch.matrix_power(torch.tensor([[1, 2], [3, 4]]), -1)
torch.linalg.matrix_power(torch.tensor([[1, 2], [3, 4]]), -2)
torch.tensor([[True]]).matrix_power(-1)
torch.matrix_power(torch.tensor([[1, 2], [3, 4]]), 2)
torch.narrow_copy(torch.ones(3), 0, torch.tensor([1]), 1)
torch.narrow_copy(torch.ones(3), 0, torch.tensor(1), 1)
torch.narrow(torch.ones(3), 0, torch.tensor([1]), 1)
torch.softmax(torch.zeros(0, dtype=torch.int64), 0)
torch.log_softmax(torch.zeros(0, dtype=torch.int64), 0)
torch.softmax(torch.zeros(0, dtype=torch.bool), 0)
F.softmin(torch.zeros(0, dtype=torch.int64), 0)
torch.softmax(torch.zeros(0, 3), 0, dtype=torch.complex64)
torch.log_softmax(torch.zeros(0, 3), 0, dtype=torch.complex64)
torch.softmax(torch.zeros(0, 3), 1, dtype=torch.int32)
torch.softmax(torch.zeros(0, 3), 2, dtype=torch.int32)
torch.softmax(torch.zeros(1, dtype=torch.int64), 0)
torch.nanmean(torch.zeros(0, 3), 0, dtype=torch.complex64)
torch.nanmean(torch.zeros(0, 3), 1, dtype=torch.complex64)
torch.nansum(torch.zeros(0, 3), 0, dtype=torch.complex64)
torch.nansum(torch.zeros(2, 3), 0, dtype=torch.complex64)
torch.diff(torch.ones(3), 0, 5)
torch.diff(torch.ones(3), 0, 5, torch.ones(2))
torch.diff(torch.ones(3), 1, 5)
torch.ones(2).to(1.5)
torch.ones(2, dtype=torch.int64).to(1.5)
torch.ones(2).to(True)
torch.ones(2).to(1j)
torch.ones(2).to(2., True)
x = torch.ones(2, dtype=torch.float64); x.to(1.5) is x
torch.ones(2).to([1.])
torch.ones(2).to("cpu", 1.5)
torch.ones(2).to(dtype=1.5)
""")
def forms(torch, line):
    return evaluate(torch, line)


@case
def logits_that_broadcast(torch):
    loss = torch.binary_cross_entropy_with_logits
    x, y = torch.tensor([0.5, -1.0, 2.0]), torch.tensor([[0.0, 1, 1], [1, 0, 0.5]])
    yield loss(x, y), loss(x, y, None, None, 1), loss(x, y, y, None, 2)
    yield attempt(loss, y, x)
    yield attempt(loss, y, torch.ones(2))
    yield attempt(loss, x, y, torch.ones(2, 1), torch.ones(3))
    yield attempt(loss, y, y, torch.ones(4, 2, 3))
    yield loss(y, y, torch.ones(2, 1), torch.tensor([1.0, 2.0, 3.0]))
    yield attempt(torch.nn.functional.binary_cross_entropy_with_logits, x, y)
