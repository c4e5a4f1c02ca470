"""Warnings: imaginary parts that are dropped, variances without degrees of freedom."""

from __future__ import annotations

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate
from torchshim.autograd import forward_ad as fwAD


@case.lines("""
torch.tensor([1+1j, 2]).sum(dtype=torch.float32)
torch.tensor([1+1j, 2]).prod(0, dtype=torch.int32)
torch.tensor([1+1j, 2]).mean(dtype=torch.float64)
torch.tensor([1+1j, 2]).cumsum(0, dtype=torch.float32)
torch.tensor([1+1j, 2]).cumprod(0, dtype=torch.float64)
torch.tensor([1+1j, 2]).softmax(0, dtype=torch.float32)
torch.tensor([1+1j, 2]).log_softmax(0, dtype=torch.float32)
torch.tensor([1+1j, 2]).sum(dtype=torch.bool)
torch.tensor([1+1j, 2]).sum(dtype=torch.complex128)
torch.zeros(1).copy_(1j)
torch.zeros(1).copy_(1 + 0j)
torch.zeros(1, dtype=torch.bool).copy_(1j)
torch.zeros(1).fill_(torch.tensor(2 + 1j))
torch.tensor([1.]).ne_(1j)
torch.tensor([1.]).eq_(torch.tensor([1+0j]))
torch.tensor([1.]).ne(1j)
torch.tensor([1.]).logical_and_(torch.tensor(1j))
torch.tensor([1.]).logical_xor_(torch.tensor([1j]))
torch.as_strided_scatter(torch.zeros(2), torch.tensor([1j]), (1,), (1,))
x = torch.zeros(2); x[torch.tensor([0])] = 1 + 0j; x
x = torch.zeros(2); x[torch.tensor([True, False])] = 1 + 0j; x
torch.ctc_loss(torch.zeros(5, 1, 3), torch.tensor([[1j, 2]]), [5], [2])
""")
def dropped(torch, line):
    return evaluate(torch, line)


@case.over("var", "std", "var_mean", "std_mean")
def no_freedom(torch, name):
    function = getattr(torch, name)
    for shape in ((0, 3), (3, 0), (2, 1)):
        for dim in (0, 1, (0, 1), None):
            yield attempt(function, torch.ones(shape), dim)
            yield attempt(function, torch.ones(shape), dim, correction=0)


def test_complex_tangents_of_real_tensors_are_refused():
    # PyTorch's operators do not agree: products keep imaginary parts, `sin` drops them.
    x, c = torchshim.ones(2), torchshim.tensor([1j, 2])
    text = "complex tangents of real tensors are not supported"
    with fwAD.dual_level(), pytest.raises(NotImplementedError, match=text):
        fwAD.make_dual(x, c)
    with pytest.raises(NotImplementedError, match=text):
        torchshim.func.jvp(lambda x: x * 2, (x,), (c,))
    _, moved = torchshim.func.jvp(lambda x: x * 2, (c,), (x,))
    assert moved.tolist() == [2, 2]
