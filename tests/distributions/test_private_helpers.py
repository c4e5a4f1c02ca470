"""Helpers of `torch.distributions` that libraries call."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case


def module(torch, name):
    return importlib.import_module(f"{torch.__name__}.distributions.{name}")


@case
def divergences_by_name(torch):
    kl, D = module(torch, "kl"), torch.distributions
    a, b = torch.tensor([0.3, 0.6]), torch.tensor([0.5, 0.2])
    one, two = torch.ones(2), torch.full((2,), 2.0)
    for name, p, q in (
        ("bernoulli_bernoulli", D.Bernoulli(a), D.Bernoulli(b)),
        ("bernoulli_poisson", D.Bernoulli(a), D.Poisson(b)),
        ("beta_infinity", D.Beta(a, b), None),
        ("beta_normal", D.Beta(a, b), D.Normal(a, b)),
        ("cauchy_cauchy", D.Cauchy(a, one), D.Cauchy(b, two)),
        ("gamma_gamma", D.Gamma(a, one), D.Gamma(b, two)),
        ("laplace_infinity", D.Laplace(a, b), None),
        ("normal_normal", D.Normal(a, one), D.Normal(b, two)),
        ("pareto_infinity", D.Pareto(one, a), None),
        ("uniform_gumbel", D.Uniform(a, two), D.Gumbel(b, one)),
        ("halfnormal_halfnormal", D.HalfNormal(a), D.HalfNormal(b)),
    ):
        yield getattr(kl, f"_kl_{name}")(p, q)
    x = torch.randn(3, 2, 2)
    yield kl._batch_trace_XXT(x), kl._infinite_like(x[0]), kl._x_log_x(a)


@case
def helpers(torch):
    low = module(torch, "lowrank_multivariate_normal")
    W, D = torch.randn(2, 3, 2), torch.rand(2, 3) + 0.5
    factor = low._batch_capacitance_tril(W, D)
    yield factor, low._batch_lowrank_logdet(W, D, factor)
    yield low._batch_lowrank_mahalanobis(W, D, torch.randn(2, 3), factor)
    matrix = torch.eye(3) * 2 + 0.1
    yield module(torch, "multivariate_normal")._precision_to_scale_tril(matrix)
    x = torch.tensor([-30.0, -1.0, 0.0, 2.0, 40.0])
    yield module(torch, "transforms")._clipped_sigmoid(x)
    yield module(torch, "binomial")._clamp_by_zero(x)
    bessel = module(torch, "von_mises")
    yield bessel._log_modified_bessel_fn(x.abs() + 1), bessel._eval_poly(x, [1, 2, 3])
    yield bessel._log_modified_bessel_fn(x.abs() + 1, order=1)
    yield attempt(bessel._log_modified_bessel_fn, x, 2)
    wishart = module(torch, "wishart")
    yield wishart._mvdigamma(torch.tensor([2.5, 4.0]), 3)
    yield attempt(wishart._mvdigamma, torch.tensor([0.5, 4.0]), 3)
    yield wishart._clamp_above_eps(x)
    yield wishart.Wishart(4.0, torch.eye(2))._bartlett_sampling((2,))
    yield module(torch, "kumaraswamy")._moments(x[1:4].abs() + 1, x[1:4].abs() + 2, 2)
    registry = module(torch, "constraint_registry")
    constraint = torch.distributions.constraints.greater_than(2.0)
    yield registry._transform_to_greater_than(constraint)(x[:4])


@case
def distributions_broadcast_what_overrides(torch):
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return [getattr(func, "__name__", func), len(args)]

    broadcast = module(torch, "utils").broadcast_all
    yield list(broadcast(Like(), torch.ones(1))), list(broadcast(Like(), 1.0))
    yield attempt(broadcast, object(), 1.0)
