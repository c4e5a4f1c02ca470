"""The Kullback-Leibler divergence of all registered pairs."""

from __future__ import annotations

import itertools

from tests.oracle import attempt, case

PAIRS = {
    "Bernoulli": ([0.2, 1.0], [0.7, 0.4]),
    "Beta": ([0.5, 2.0], [1.5, 7.0]),
    "ContinuousBernoulli": ([0.2, 0.7],),
    "Exponential": ([0.5, 3.0],),
    "Gamma": ([0.5, 4.0], [1.0, 2.0]),
    "Gumbel": ([0.0, 1.0], [1.0, 2.5]),
    "Laplace": ([0.0, 1.0], [1.0, 2.5]),
    "Normal": ([0.0, 1.0], [1.0, 2.5]),
    "Pareto": ([1.0, 2.0], [2.5, 0.5]),
    "Poisson": ([0.5, 13.0],),
    "Uniform": ([0.2, 1.0], [0.8, 4.0]),
}


def build(torch, name, shift):
    arguments = PAIRS[name]
    if name == "Bernoulli":
        arguments = arguments[:1] if shift == 0 else arguments[1:]
        shift = 0
    scale = 1 + shift / 10
    tensors = [torch.tensor(a).mul(scale).requires_grad_() for a in arguments]
    return getattr(torch.distributions, name)(*tensors), tensors


@case.over(*PAIRS)
def pair(torch, name):
    seen = []
    p, leaves = build(torch, name, 0)
    for other in PAIRS:
        q, others = build(torch, other, 1)
        kl = attempt(torch.distributions.kl_divergence, p, q)
        seen.append((other, kl))
        if not isinstance(kl, Exception) and kl.requires_grad:
            finite = kl[torch.isfinite(kl)].sum()
            inputs = leaves if p is q else leaves + others
            seen.append(
                torch.autograd.grad(finite, inputs, None, True, False, True, True)[0]
            )
    return seen


@case
def one_kind(torch):
    seen = []
    D, kl = torch.distributions, torch.distributions.kl_divergence
    t = torch.tensor
    a, b = t([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]]), t([0.2, 0.3, 0.5])
    seen.append(
        (kl(D.Categorical(a), D.Categorical(b)), kl(D.Categorical(b), D.Categorical(a)))
    )
    seen.append(kl(D.OneHotCategorical(a), D.OneHotCategorical(b)))
    seen.append(
        (
            kl(D.Dirichlet(a + 1), D.Dirichlet(b + 2)),
            kl(D.Cauchy(0.0, 1.0), D.Cauchy(b, b)),
        )
    )
    n = t([3.0, 4.0])
    seen.append(
        kl(D.Binomial(n, t([0.3, 0.4])), D.Binomial(t([3.0, 2.0]), t([0.5, 0.5])))
    )
    seen.append(attempt(kl, D.Binomial(n, t(0.3)), D.Binomial(n + 1, t(0.3))))
    seen.append(
        (kl(D.Geometric(b), D.Geometric(b / 2)), kl(D.HalfNormal(b), D.HalfNormal(1.0)))
    )
    low = D.LowRankMultivariateNormal(b, b.unsqueeze(-1), b)
    other = D.LowRankMultivariateNormal(b + a, 1 - b.unsqueeze(-1), 2 * b)
    full = D.MultivariateNormal(a, torch.eye(3) + 0.1)
    more = D.MultivariateNormal(b, scale_tril=torch.diag(b))
    for p, q in itertools.product((low, other, full, more), repeat=2):
        seen.append(kl(p, q))
    small = D.MultivariateNormal(b[:2], torch.eye(2))
    seen.append(
        (attempt(kl, full, small), attempt(kl, low, small), attempt(kl, small, low))
    )
    one, two = D.Normal(a, 1.0), D.Normal(b, 2.0)
    seen.append(kl(D.Independent(one, 1), D.Independent(two.expand((2, 3)), 1)))
    seen.append(
        attempt(kl, D.Independent(one, 1), D.Independent(two.expand((2, 3)), 0))
    )
    seen.append(kl(D.LogNormal(a, 1.0), D.LogNormal(b, 2.0)))
    seen.append(attempt(kl, D.LogNormal(a, 1.0), D.HalfNormal(2.0)))
    seen.append(
        (attempt(kl, one, D.Cauchy(0.0, 1.0)), attempt(kl, D.Chi2(b), D.Dirichlet(b)))
    )
    seen.append(kl(D.Chi2(b), D.Chi2(b + 1)))
    return seen


@case
def registry(torch):
    D = torch.distributions

    class Left(D.Normal):
        pass

    class Right(D.Normal):
        pass

    @D.register_kl(Left, D.Normal)
    def by_left(p, q):
        return "left"

    yield D.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0))
    yield D.kl_divergence(D.Normal(0.0, 1.0), Right(0.0, 1.0))

    @D.register_kl(D.Normal, Right)
    def by_right(p, q):
        return "right"

    yield D.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0))
    yield D.kl_divergence(Left(0.0, 1.0), Left(0.0, 1.0))
    D.register_kl(Left, Right)(by_left)
    yield D.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0))
    yield attempt(D.register_kl, 3, Left)

    class Family(D.ExponentialFamily):
        arg_constraints = {"rate": D.constraints.positive}  # noqa: RUF012
        support = D.constraints.nonnegative
        _mean_carrier_measure = 0

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -torch.log(-x)

    rate = torch.tensor([0.5, 2.0], requires_grad=True)
    p, q = Family(rate), Family(rate.detach() + 1)
    yield p.entropy(), D.kl_divergence(p, q), D.Exponential(rate).entropy()
    yield attempt(D.kl_divergence, p, D.Dirichlet(torch.ones(2)))
    yield (
        attempt(Family, torch.tensor([-1.0])),
        attempt(p.log_prob, rate),
        attempt(lambda: p.mean),
    )
    yield attempt(p.expand, (2,)), attempt(p.sample)
