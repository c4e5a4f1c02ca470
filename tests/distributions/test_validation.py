"""Which arguments are refused, when, and with what text."""

from __future__ import annotations

import pytest

import torchshim
from tests.oracle import attempt, case, evaluate


@case.lines("""
D.Normal(0., -1.)
D.Normal(torch.tensor([0., float('nan')]), 1.)
D.Normal(torch.zeros(2), torch.tensor([1., -1.]))
D.Normal(0., -1., validate_args=False)
D.Normal('a', 1.)
D.Normal(torch.zeros(2), torch.ones(3))
D.Normal(0., 1.).log_prob(torch.tensor(float('nan')))
D.Normal(0., 1.).log_prob(1.)
D.Normal(torch.zeros(3), 1.).log_prob(torch.zeros(2))
D.Normal(0., 1., validate_args=False).log_prob(torch.tensor(float('nan')))
D.Categorical(torch.tensor(1.))
D.Categorical(logits=torch.tensor(1.))
D.Categorical(torch.ones(3)).log_prob(torch.tensor(3))
D.Categorical(torch.ones(3)).log_prob(torch.tensor(1.5))
D.Bernoulli(1.5)
D.Bernoulli(0.5).log_prob(torch.tensor(0.5))
D.Geometric(torch.tensor([0., 0.5]))
D.ContinuousBernoulli(1.5, validate_args=True)
D.Dirichlet(torch.tensor(1.))
D.Dirichlet(torch.tensor([[1., -1.]]))
D.Dirichlet(torch.ones(2)).log_prob(torch.tensor([0.4, 0.4]))
D.Dirichlet(torch.ones(2)).log_prob(torch.tensor([0.4, 0.4, 0.2]))
D.Uniform(1., 0.)
D.Uniform(0., 1.).log_prob(torch.tensor(2.))
D.Uniform(torch.zeros(2), torch.tensor([1., -1.]))
D.Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor(3.))
D.Binomial(-2, torch.tensor(0.5))
D.Multinomial(3, torch.ones(2)).log_prob(torch.tensor([2., 2.]))
D.MultivariateNormal(torch.zeros(2), torch.tensor([[1., 2.], [2., 1.]]))
D.MultivariateNormal(torch.zeros(2), torch.tensor([[1., 2.], [0., 1.]]))
D.MultivariateNormal(torch.zeros(2), scale_tril=torch.tensor([[1., 2.], [0., 1.]]))
D.constraints.lower_cholesky.check(torch.ones(2))
D.Wishart(3., scale_tril=torch.tensor([[-1., 0.], [0., 1.]]))
D.LKJCholesky(2).log_prob(torch.tensor([[2., 0.], [0., 2.]]))
D.OneHotCategorical(torch.ones(2)).log_prob(torch.tensor([1., 1.]))
D.Poisson(-1.)
D.Poisson(1.).log_prob(torch.tensor(0.5))
D.Pareto(1., 1.).log_prob(torch.tensor(0.5))
D.Gamma(1., 1.).log_prob(-1.)
D.Distribution.set_default_validate_args(3)
D.Beta(1., 2.).cdf(torch.ones(1))
""")
def refused(torch, line):
    return evaluate(torch, line, D=torch.distributions)


@case
def told_once(torch):
    # Where a distribution is made of others, the error is not told again by these.
    D = torch.distributions
    makers = (
        lambda: D.StudentT(-1.0),
        lambda: D.StudentT(2.0, 0.0, -1.0),
        lambda: D.LKJCholesky(2, -1.0),
        lambda: D.LKJCholesky(3, torch.tensor([1.0, -1.0])),
    )
    for make in makers:
        yield type(attempt(make)), (torch.ones(1) + 1).tolist()


@case
def constraints_of_programs(torch):
    D = torch.distributions

    class Small(type(D.constraints.positive)):
        def check(self, value):
            return super().check(value.detach()) & value.norm().lt(3)

    for constraint in (Small(0.0), D.constraints.independent(Small(0.0), 1)):

        class Scaled(D.Normal):
            arg_constraints = {"loc": constraint, "scale": D.constraints.positive}  # noqa: RUF012

        yield Scaled(torch.tensor([1.0, 2.0]), 1.0).mean
        yield attempt(Scaled, torch.tensor([3.0, 2.0]), 1.0)


@case
def replaced_checks(torch):
    # As Pyro does, to allow for rounding.
    kind = type(torch.distributions.constraints.corr_cholesky)
    usual = kind.check
    kind.check = lambda self, value: value.detach().norm(dim=-1).gt(0.5).all(-1)
    try:
        distribution = torch.distributions.LKJCholesky(2)
        yield distribution.log_prob(torch.eye(2) * 0.75)
    finally:
        kind.check = usual


@case
def by_default(torch):
    D = torch.distributions
    D.Distribution.set_default_validate_args(False)
    try:
        yield (
            D.Normal(0.0, -1.0),
            D.Normal(0.0, 1.0).log_prob(torch.tensor(float("nan"))),
        )
        yield attempt(D.Normal, 0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)
    yield attempt(D.Normal, 0.0, -1.0)

    class Undefined(D.Distribution):
        def rsample(self, sample_shape=()):
            return torch.zeros(self._extended_shape(sample_shape))

    d = Undefined(torch.Size([2]))
    yield (
        d.sample((3,)),
        attempt(d.sample_n, 2),
        attempt(d._validate_sample, d.sample()),
    )
    yield attempt(getattr, d, "mean"), attempt(d.cdf, d.sample()), attempt(repr, d)


def test_pending_values_are_checked_by_the_program():
    torch, D = torchshim, torchshim.distributions
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    scale = x * 2
    d = D.Normal(torch.zeros(2), scale)
    y = d.log_prob(scale)
    with pytest.raises(ValueError, match="Expected parameter scale") as caught:
        y.tolist()
    assert "GreaterThan(lower_bound=0.0), but found invalid values" in str(caught.value)
    assert "Normal(loc: torch.Size([2]), scale: torch.Size([2]))" in str(caught.value)
    z = D.Uniform(0.0, 1.0).log_prob(x.detach() * 3)
    with pytest.raises(ValueError, match="to be within the support"):
        z.tolist()


def test_a_step_stays_one_program():
    torch, D = torchshim, torchshim.distributions
    w = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([w], lr=0.1)
    prior = D.Normal(torch.zeros(3), torch.ones(3))

    def step():
        q = D.Normal(w, torch.nn.functional.softplus(w))
        z = q.rsample((4,))
        loss = (prior.log_prob(z).mean() - D.kl_divergence(q, prior).sum()).neg()
        D.Bernoulli(logits=z).log_prob((z > 0).float()).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    from torchshim._core.program import count
    from torchshim._core.record import local

    for _ in range(3):
        step().item()
    programs, flushes = count(), local.rec.flushes
    for _ in range(3):
        step().item()
    assert count() == programs
    assert local.rec.flushes == flushes + 3


@case.over("Categorical(torch.ones(2))", "Categorical(torch.ones(2, 2))")
def components_without_a_batch(torch, mixed):
    D = torch.distributions
    component = D.Normal(torch.zeros(()), 1.0)
    yield attempt(D.MixtureSameFamily, evaluate(torch, f"D.{mixed}", D=D), component)


@case
def shapes_keep_their_type(torch):
    T = torch.distributions.transforms
    for kind in tuple, torch.Size, list:
        yield attempt(T.StickBreakingTransform().forward_shape, kind([3]))
        yield attempt(T.StickBreakingTransform().inverse_shape, kind([3]))
        yield attempt(T.CorrCholeskyTransform().forward_shape, kind([2, 3]))
        yield attempt(T.CorrCholeskyTransform().inverse_shape, kind([2, 3, 3]))


@case.over(2, 4, 5, 7)
def lengths_of_no_triangle(torch, count):
    yield attempt(torch.distributions.utils.vec_to_tril_matrix, torch.zeros(count))
    yield attempt(torch.distributions.utils.vec_to_tril_matrix, torch.zeros(2, count))


@case
def pending_values_where_errors_are_expected(torch):
    D = torch.distributions
    two = torch.ones(2) * 2

    def sample(distribution, value):
        return lambda: distribution.log_prob(value * 1)

    for make in (
        lambda: D.Categorical(probs=torch.tensor([-1.0, 2.0])),
        lambda: D.Categorical(logits=torch.tensor([float("nan"), 2.0])),
        lambda: D.MultivariateNormal(two, torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
        lambda: D.Normal(two, torch.tensor([-1.0, 2.0]) * 2),
        lambda: D.Uniform(two, torch.tensor([1.0, 3.0]) * 1.5),
        sample(D.Categorical(probs=two), torch.tensor(7)),
        sample(D.Normal(two, two), torch.tensor([float("nan"), 1.0])),
        sample(D.Uniform(two, two * 2), torch.tensor(100.0)),
        sample(D.Dirichlet(two), torch.tensor([2.0, 4.0])),
    ):
        try:
            make()
        except ValueError as error:
            yield str(error)
