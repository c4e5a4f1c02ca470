"""`gradient`, `histogramdd` and small functions on shapes, compared with PyTorch."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case.lines(r"""
torch.gradient(x)
torch.gradient(x, spacing=2.0, dim=1, edge_order=2)
torch.gradient(x, spacing=[0.5, 2])
torch.gradient(x, spacing=(torch.tensor([1., 2, 4, 5]),), dim=1)
torch.gradient(x, spacing=(torch.tensor([1., 2, 4, 5]),), dim=1, edge_order=2)
torch.gradient(torch.arange(4))
torch.gradient(x, dim=(1, 1))
torch.gradient(x, edge_order=3)
torch.gradient(x[:1])
torch.gradient(x, spacing=[1.0, 2.0, 3.0])
torch.gradient(x, spacing=(torch.tensor([1., 2, 4, 5]), torch.ones(2, device="meta")))
torch.gradient(torch.ones(3, dtype=torch.uint8))
torch.autograd.grad(torch.gradient(x, dim=1, edge_order=2)[0].square().sum(), x)
""")
def gradient(torch, line):
    x = torch.tensor([[1.0, -2, 3, 7], [4, 5, -6, 0], [2, 2, 1, 9]], requires_grad=True)
    return evaluate(torch, line, x=x)


@case.lines(r"""
torch.histogramdd(p, bins=[2, 3])
torch.histogramdd(p, 2, range=[0, 1, -1, 3], density=True)
torch.histogramdd(p, [torch.tensor([0., 0.5, 2]), torch.tensor([0., 1])])
torch.histogramdd(p, [2, 2], weight=torch.tensor([1., 2, 3]))
torch.histogramdd(p, [2, 2], weight=torch.ones(2))
torch.histogramdd(p, [2])
torch.histogramdd(p, [2, 0])
torch.histogramdd(p, [2, 2], range=[0, 1])
torch.histogramdd(p[0], [2, 2])
torch.histogramdd(p.int(), [2, 2])
torch.histogramdd(p, [torch.tensor(3.), torch.tensor([1., 2])])
torch.histogramdd(p, [torch.tensor([1., 2]), torch.ones(0)])
torch.histogramdd(p, [torch.tensor([1., 2]), torch.ones(1, 2)])
torch.histogramdd(p, [torch.tensor([1., 2]), torch.ones(1, 2).double()])
torch.histogramdd(p.int(), [torch.tensor([0, 1]).int()] * 2)
torch.histogramdd(p.int(), [2, 2], range=[0, 1, 0, 1])
torch.histogramdd(p.int()[:, :0], [])
torch.histogramdd(p[:, :0], [])
torch.histogramdd(torch.ones(2, 3, 0), 2, density=True)
torch.histogramdd(torch.ones(0, 0), [])
torch.histogramdd(p[:, :0], [], weight=torch.ones(3))
torch.histogramdd(p[:, :0], [], weight=torch.ones(2))
torch.histogram(p, torch.tensor(3.).double())
torch.histogram(p, torch.ones(0).double())
torch.histogram(p, torch.ones(1, 2))
""")
def histogramdd(torch, line):
    return evaluate(torch, line, p=torch.tensor([[0.2, 1], [0.7, 0], [0.9, 2]]))


@case.lines(r"""
torch.histogram(p, 4).hist
torch.histogram(p, 4).bin_edges
torch.histogram(q, torch.tensor([0., 0.5, 1]), weight=p, density=True).hist
torch.histogram(q, torch.tensor([0., 0.5, 1]) * p.sum()).bin_edges
torch.histogramdd(p, [2, 2]).hist
torch.histogramdd(p, [2, 2]).bin_edges[1]
torch.histogramdd(q, 2, weight=p[:, 0]).bin_edges[0]
torch.histogramdd(q, [p[0].sort()[0], q[0].sort()[0]]).hist
torch.histogramdd(p, [q[0].sort()[0], q[0].sort()[0]]).bin_edges[0]
""")
def histories_of_histograms(torch, line):
    """They have a node, whose gradient is refused."""
    q = torch.tensor([[0.2, 1], [0.7, 0], [0.9, 2]])
    p = q.clone().requires_grad_()
    x = eval(line, {"torch": torch, "p": p, "q": q})
    return repr(x), x, attempt(x.sum().backward)


@case.lines(r"""
x.sum_to_size(1, 3)
x.sum_to_size(3)
x.sum_to_size((2, 1))
x.sum_to_size(2, 3) is x
x.sum_to_size(4)
(x * 1).fill_diagonal_(9)
torch.zeros(5, 3).fill_diagonal_(1, wrap=True)
torch.zeros(2, 2, 2).fill_diagonal_(1)
torch.zeros(5, 2).t().fill_diagonal_(1)
torch.zeros(2).fill_diagonal_(1)
torch.zeros(2, 2, 3).fill_diagonal_(1)
torch.unravel_index(torch.tensor([5, 1, 13, -1]), (3, 4))
torch.unravel_index(torch.tensor(5), 7)
torch.unravel_index(torch.tensor(5.0), (3, 4))
torch.unravel_index(torch.tensor(5), (3, -4))
torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
torch.empty_permuted((2, 3), (0, 0))
torch.empty_permuted((2, 3), (0,))
torch.empty_permuted((2, 3), (0, 5))
""")
def shapes(torch, line):
    x = torch.tensor([[1.0, -2, 3], [4, 5, -6]], requires_grad=True)
    return evaluate(torch, line, x=x)
