"""The samplers beneath the distributions, bit for bit."""

from __future__ import annotations

from tests.oracle import attempt, case


@case(exact=True)
def rejection(torch):
    rate = torch.tensor([0.0, 0.3, 5.0, 10.0, 300.0]).repeat(12)
    yield torch.poisson(rate), torch.poisson(rate.double()), torch.poisson(rate.half())
    n, p = torch.tensor([0.0, 3.0, 40.0, 400.0]), torch.tensor([[0.3], [0.97], [0.0]])
    count, prob = torch.broadcast_tensors(n, p)
    yield torch.binomial(count, prob), torch.binomial(count.double(), prob.double())
    yield attempt(torch.binomial, count.bfloat16(), prob.bfloat16())
    yield attempt(torch.binomial, count.half(), prob.half())
    shape = torch.tensor([0.01, 0.5, 1.0, 3.0, 200.0]).repeat(9)
    yield torch._standard_gamma(shape), torch._standard_gamma(shape.double())
    yield torch._sample_dirichlet(shape.reshape(9, 5)), torch.randn(3), torch.rand(2)
    g = torch.Generator().manual_seed(4)
    yield (
        torch.poisson(rate[:4], generator=g),
        torch._standard_gamma(shape[:3], generator=g),
    )
    yield torch.poisson(torch.empty(0)), torch.get_rng_state()[:40]


@case
def gradients_and_errors(torch):
    a = torch.tensor([0.5, 3.0], requires_grad=True)
    for draw in (torch.poisson, torch._standard_gamma):
        x = draw(a)
        yield x, torch.autograd.grad(x.sum(), a)
    x = torch.distributions.Dirichlet(a).rsample((2,))
    yield x, torch.autograd.grad(x[:, 0].sum(), a)
    yield attempt(torch.poisson, torch.tensor([-1.0])), attempt(torch.poisson, 3)
    yield attempt(torch.poisson, torch.tensor([1])), attempt(torch.poisson, a.isnan())
    yield attempt(torch.binomial, torch.tensor([2]), a), attempt(torch.binomial, a, 0.5)
    yield attempt(torch.binomial, a.detach(), a.double()), torch.rand(1)
    yield attempt(torch._standard_gamma, torch.tensor([1]))
    yield attempt(torch._sample_dirichlet, torch.ones(2).half())
    yield attempt(torch.binomial(a, a / 4).sum().backward)


@case
def single_numbers(torch):
    rate = torch.tensor(5.0)
    yield (
        torch.poisson(rate),
        torch._standard_gamma(rate),
        torch.binomial(rate, rate / 9),
    )
    two = torch.tensor(2.0, requires_grad=True)
    for made in (torch.distributions.Chi2(3.0), torch.distributions.Gamma(two, 1.0)):
        yield made.rsample(), made.sample(()), made.sample((1,))
    yield torch.distributions.StudentT(3.0).sample(), torch.randn(1)
