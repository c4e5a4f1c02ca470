"""Every distribution: samples, densities, moments, gradients, expansion, repr."""

from __future__ import annotations

from tests.oracle import attempt, case

# Constructor arguments: tensors of these values, all requiring grad.
FAMILIES = {
    "Bernoulli": ([0.2, 0.7],),
    "Beta": ([0.5, 2.0], [1.5, 7.0]),
    "Categorical": ([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]],),
    "Cauchy": ([0.0, 1.0], [1.0, 2.5]),
    "Chi2": ([1.0, 5.0],),
    "ContinuousBernoulli": ([0.2, 0.5],),
    "Dirichlet": ([[0.5, 1.0, 3.0], [8.0, 9.0, 7.0]],),
    "Exponential": ([0.5, 3.0],),
    "FisherSnedecor": ([3.0, 5.0], [2.0, 6.0]),
    "Gamma": ([0.5, 5.0], [1.0, 2.0]),
    "GeneralizedPareto": ([0.0, 1.0], [1.0, 2.0], [0.0, 0.3]),
    "Geometric": ([0.3, 1.0],),
    "Gumbel": ([0.0, 1.0], [1.0, 2.5]),
    "HalfCauchy": ([1.0, 2.5],),
    "HalfNormal": ([1.0, 2.5],),
    "InverseGamma": ([0.5, 3.0], [1.0, 2.0]),
    "Kumaraswamy": ([0.5, 2.0], [1.5, 3.0]),
    "Laplace": ([0.0, 1.0], [1.0, 2.5]),
    "LogNormal": ([0.0, 1.0], [1.0, 0.5]),
    "LogisticNormal": ([[0.0, 1.0]], [[1.0, 0.5]]),
    "LowRankMultivariateNormal": (
        [0.0, 1.0, 2.0],
        [[1.0], [0.5], [0.2]],
        [1.0, 2.0, 3.0],
    ),
    "MultivariateNormal": ([0.0, 1.0], [[2.0, 0.3], [0.3, 1.0]]),
    "Normal": ([0.0, 1.0], [1.0, 2.5]),
    "OneHotCategorical": ([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]],),
    "OneHotCategoricalStraightThrough": ([[0.1, 0.6, 0.3]],),
    "Pareto": ([1.0, 2.0], [2.5, 0.5]),
    "Poisson": ([0.5, 13.0],),
    "StudentT": ([0.5, 1.5, 4.0], [0.0, 1.0, 2.0], [1.0, 2.0, 0.5]),
    "Uniform": ([0.0, 1.0], [1.0, 4.0]),
    "VonMises": ([0.0, 1.0], [0.5, 5.0]),
    "Weibull": ([1.0, 2.0], [1.5, 3.0]),
}
MOMENTS = ("mean", "mode", "variance", "stddev")


def leaves(torch, arguments):
    return [torch.tensor(values, requires_grad=True) for values in arguments]


@case.over(*FAMILIES)
def family(torch, name):
    # One list at the end: what is computed is read at once.
    parameters = leaves(torch, FAMILIES[name])
    d = getattr(torch.distributions, name)(*parameters)
    seen = [str(d), d.batch_shape, d.event_shape, d.has_rsample]
    seen += [d.has_enumerate_support, str(d.support), str(d.arg_constraints)]
    x = d.sample((3,))
    log_prob = d.log_prob(x)
    grad = torch.autograd.grad
    seen += [x, d.sample(), torch.rand(1), log_prob]
    seen.append(grad(log_prob.sum(), parameters, retain_graph=True, allow_unused=True))
    if d.has_rsample:
        y = d.rsample((2,))
        seen += [y, grad((y * y).sum(), parameters, retain_graph=True)]
    for moment in MOMENTS:
        value = attempt(getattr, d, moment)
        if isinstance(value, Exception):  # its text has the name of the module
            value = type(value)
        elif name == "Dirichlet":
            value = value.detach()
        seen.append(value)
    seen += [attempt(d.entropy), attempt(d.perplexity), attempt(d.cdf, x)]
    seen.append(attempt(d.icdf, torch.tensor(0.3)))
    seen += [attempt(d.enumerate_support), attempt(d.enumerate_support, False)]
    wide = d.expand((4, *d.batch_shape))
    seen += [str(wide), wide.batch_shape, wide.event_shape, wide._validate_args]
    seen += [wide.log_prob(x[:1]).shape, wide.sample((1,))[0, 0]]
    return seen


@case.over(
    "Bernoulli", "Geometric", "ContinuousBernoulli", "Categorical", "OneHotCategorical"
)
def by_logits(torch, name):
    seen = []
    logits = torch.tensor([-1.0, 0.0, 2.0], requires_grad=True)
    d = getattr(torch.distributions, name)(logits=logits)
    x = d.sample((2,))
    seen.append((d, x, d.probs, d.logits, d.mean))
    seen.append(attempt(getattr, d, "param_shape") if name != "Geometric" else None)
    seen.append(
        (attempt(d.log_prob, x), attempt(d.entropy), d.expand((2, *d.batch_shape)))
    )
    seen.append(torch.autograd.grad(d.log_prob(x).sum(), logits, retain_graph=True))
    family = getattr(torch.distributions, name)
    seen.append((attempt(family), attempt(family, logits, logits)))
    seen.append(family(logits=torch.zeros(3)).expand((2, *d.batch_shape)).probs)
    return seen


@case
def counts(torch):
    seen = []
    D, n = torch.distributions, torch.tensor([3.0, 12.0])
    p = torch.tensor([0.4, 0.9], requires_grad=True)
    for d in (D.Binomial(n, p), D.NegativeBinomial(n, logits=p)):
        x = d.sample((3,))
        seen.append(
            (d, d.support, x, d.log_prob(x), d.mean, d.mode, d.variance, d.logits)
        )
        seen.append(torch.autograd.grad(d.log_prob(x).sum(), p, retain_graph=True))
        seen.append(d.expand((2, 2)))
        seen.append((attempt(d.entropy), attempt(d.enumerate_support)))
    d = D.Binomial(3, torch.tensor([0.4]))
    seen.append((d.enumerate_support(), d.entropy(), d.sample((4,))))
    d = D.Multinomial(4, p / p.sum())
    x = d.sample((2,))
    seen.append((d, d.support, x, d.log_prob(x), d.mean, d.variance, d.entropy()))
    seen.append((d.expand((3,)), attempt(D.Multinomial, p)))
    seen.append(d.expand((3,)).sample().sum(-1))
    return seen


@case
def relaxed(torch):
    seen = []
    D, t = torch.distributions, torch.tensor(0.7, requires_grad=True)
    p = torch.tensor([0.4, 0.6], requires_grad=True)
    for name in ("RelaxedBernoulli", "RelaxedOneHotCategorical"):
        for d in (getattr(D, name)(t, p), getattr(D, name)(t, logits=p)):
            x = d.rsample((2,))
            seen.append((d, x, d.temperature, d.probs, d.logits, d.support))
            seen.append(
                (torch.autograd.grad(x.prod(), [p, t]), attempt(d.log_prob, x.detach()))
            )
            seen.append(d.expand((3, *d.batch_shape)).batch_shape)
    seen.append((D.LKJCholesky(3, 1.5), D.LKJCholesky(3, 1.5).sample((2,))))
    d = D.LKJCholesky(3, torch.tensor([0.5, 2.0]))
    x = d.sample()
    seen.append(
        (x, d.log_prob(x), d.expand((3, 2)).batch_shape, attempt(D.LKJCholesky, 1))
    )
    return seen


@case
def multivariate(torch):
    seen = []
    D, eye = torch.distributions, torch.eye(2)
    loc = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    tril = torch.tensor([[2.0, 0.0], [0.5, 1.0]], requires_grad=True)
    for d in (
        D.MultivariateNormal(loc, scale_tril=tril),
        D.MultivariateNormal(loc, precision_matrix=tril @ tril.mT),
        D.MultivariateNormal(loc[0], (tril @ tril.mT).expand(3, 2, 2)),
    ):
        x = d.rsample((2,))
        seen.append((d, x, d.log_prob(x), d.entropy(), d.variance, d.mode))
        seen.append((d.covariance_matrix, d.precision_matrix, d.scale_tril))
        seen.append(torch.autograd.grad(d.log_prob(x.detach()).sum(), [loc, tril]))
        seen.append(d.expand((2, 3)).log_prob(x))
    d = D.LowRankMultivariateNormal(loc, tril, torch.ones(3, 2))
    seen.append((d.scale_tril, d.covariance_matrix, d.precision_matrix, d.entropy()))
    seen.append((d.variance, d.log_prob(loc + 1), d.expand((2, 3)).mean.shape))
    d = D.Wishart(torch.tensor([3.0, 4.5]), scale_tril=tril)
    x = d.mean
    seen.append((d, x, d.variance, d.mode, d.log_prob(x), d.entropy(), d.support))
    seen.append((d.precision_matrix, d.expand((2, 2)).log_prob(x), d.arg_constraints))
    seen.append(
        d._bartlett_sampling((2,))
        if hasattr(d, "_bartlett_sampling")
        else d._bartlett((2,))
    )
    seen.append(
        (attempt(D.Wishart, 0.5, eye), attempt(D.Wishart, 3.0), D.Wishart(3, eye))
    )
    seen.append((attempt(D.Wishart, 3.0, torch.ones(2)), D.Wishart(1.5, eye)))
    seen.append(attempt(D.MultivariateNormal, torch.tensor(0.0), eye))
    seen.append(
        (
            attempt(D.MultivariateNormal, loc),
            attempt(D.MultivariateNormal, loc, eye, eye),
        )
    )
    seen.append(attempt(D.MultivariateNormal, loc, torch.ones(2)))
    seen.append(attempt(D.LowRankMultivariateNormal, loc, eye[:1], torch.ones(2)))
    return seen


@case
def composed(torch):
    seen = []
    D = torch.distributions
    loc = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)
    d = D.Independent(D.Normal(loc, torch.ones(3)), 1)
    x = d.rsample((2,))
    seen.append(
        (d, x, d.log_prob(x), d.entropy(), d.support, d.mean, d.has_enumerate_support)
    )
    seen.append((d.expand((4, 2)), attempt(D.Independent, D.Normal(0.0, 1.0), 1)))
    seen.append((attempt(d.enumerate_support), attempt(d.expand, (3,))))
    mix = D.Categorical(torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]))
    d = D.MixtureSameFamily(mix, D.Normal(loc, torch.ones(3)))
    x = d.sample((2,))
    seen.append((d, x, d.log_prob(x), d.mean, d.variance, d.cdf(x), d.support))
    seen.append(
        (torch.autograd.grad(d.log_prob(x).sum(), loc), d.expand((3, 2)).batch_shape)
    )
    vectors = D.Independent(D.Normal(loc.unsqueeze(-1), 1.0), 1)
    d = D.MixtureSameFamily(mix, vectors)
    seen.append((d.sample(), d.mean, d.log_prob(torch.zeros(2, 1)), d.variance))
    seen.append(attempt(D.MixtureSameFamily, mix, D.Normal(loc[:, :2], 1.0)))
    seen.append(attempt(D.MixtureSameFamily, D.Normal(0.0, 1.0), D.Normal(loc, 1.0)))
    base = D.Normal(loc, 2.0)
    steps = [D.AffineTransform(1.0, -2.0), D.SigmoidTransform()]
    d = D.TransformedDistribution(base, steps)
    x = d.rsample((2,))
    seen.append(
        (x, d.log_prob(x.detach()), d.cdf(x), d.icdf(torch.tensor(0.2)), d.support)
    )
    seen.append((d.has_rsample, d.expand((3, 2, 3)).batch_shape, d.batch_shape))
    d = D.TransformedDistribution(base, D.StickBreakingTransform())
    seen.append(
        (d.batch_shape, d.event_shape, d.sample().sum(-1), d.support, d.base_dist)
    )
    seen.append(
        (
            d.log_prob(torch.full((2, 4), 0.25)),
            attempt(D.TransformedDistribution, base, 3),
        )
    )
    seen.append(
        attempt(D.TransformedDistribution, D.Normal(0.0, 1.0), D.SoftmaxTransform())
    )
    return seen
