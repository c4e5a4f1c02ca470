"""The Kullback-Leibler divergence between distributions of different kinds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.distributions import kl as registry
from torchshim.distributions._shared import replaced
from torchshim.distributions.bernoulli import Bernoulli
from torchshim.distributions.beta import Beta
from torchshim.distributions.binomial import Binomial
from torchshim.distributions.continuous_bernoulli import ContinuousBernoulli
from torchshim.distributions.exponential import Exponential
from torchshim.distributions.gamma import Gamma
from torchshim.distributions.gumbel import Gumbel
from torchshim.distributions.kl import _infinite_like, _x_log_x, register_kl
from torchshim.distributions.laplace import Laplace
from torchshim.distributions.normal import Normal
from torchshim.distributions.pareto import Pareto
from torchshim.distributions.poisson import Poisson
from torchshim.distributions.uniform import Uniform
from torchshim.distributions.utils import euler_constant

_INF = torchshim.inf


def _infinite(parameter: str) -> Callable[[Any, Any], Tensor]:
    return lambda p, q: _infinite_like(getattr(p, parameter))


# Where q has no density at some of p's samples: p, what has the shape, the qs.
_DISJOINT: list[tuple[type, str, tuple[type, ...]]] = [
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (
        Gumbel,
        "loc",
        (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    ),
    (
        Laplace,
        "loc",
        (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    ),
    (
        Normal,
        "loc",
        (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    ),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
]
for _p, _parameter, _qs in _DISJOINT:
    for _q in _qs:
        register_kl(_p, _q)(_infinite(_parameter))


def _gamma_norm(q: Gamma) -> Tensor:
    return q.concentration.lgamma() - q.concentration * q.rate.log()


# From Bernoulli, beta and continuous Bernoulli ----------------------------------------


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    cross = p.mean * q.logits + torchshim.log1p(-q.probs) + q._cont_bern_log_norm()
    return -p.entropy() - cross


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _to_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    a, total = p.concentration1, p.concentration1 + p.concentration0
    slope = (q.concentration - 1) * (a.digamma() - total.digamma())
    return -p.entropy() + _gamma_norm(q) - slope + q.rate * a / total


def _square_away(p: Any, q: Any) -> Tensor:
    """The mean of (x - loc)^2 over samples of p."""
    return p.variance + p.mean.pow(2) - 2.0 * q.loc * p.mean + q.loc.pow(2)


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
def _bounded_normal(p: Any, q: Any) -> Tensor:
    log_scale = 0.5 * math.log(2.0 * math.pi) + q.scale.log()
    return -p.entropy() + log_scale + _square_away(p, q) / (2.0 * q.scale.pow(2))


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    kl = -p.entropy() + (q.high - q.low).log()
    return replaced(kl, (q.low > 0.0) | (q.high < 1.0), _INF)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    kl = -p.entropy() + (q.high - q.low).log()
    # The bounds are compared this way round in PyTorch.
    return torchshim.where((q.low >= 0.0) | (q.high <= 1.0), _INF, kl)


# From exponential and gamma -----------------------------------------------------------


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio, a = q.rate / p.rate, q.concentration
    linear = ratio - a * ratio.log() + a.lgamma()
    return linear + a * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    product, away = p.rate * q.scale, q.loc / q.scale
    tail = torchshim.exp(away) * product / (product + 1)
    return product.log() - 1 - away + tail + product.reciprocal()


@register_kl(Exponential, Normal)
def _exponential_normal(p: Any, q: Any) -> Tensor:
    variance, square = q.scale.pow(2), p.rate.pow(2)
    logs = 0.5 * torchshim.log(square * variance * 2 * math.pi)
    away = square.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return logs - 1 + away / variance


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    product, away, a = p.rate * q.scale, q.loc / q.scale, p.concentration
    own = (a - 1) * a.digamma() - a.lgamma() - a
    tail = torchshim.exp(away) * (1 + product.reciprocal()).pow(-a) - away
    return own + product.log() + a / product + tail


@register_kl(Gamma, Normal)
def _gamma_normal(p: Any, q: Any) -> Tensor:
    variance, square, a = q.scale.pow(2), p.rate.pow(2), p.concentration
    logs = 0.5 * torchshim.log(square * variance * 2 * math.pi) - a - a.lgamma()
    away = 0.5 * (a.pow(2) + a) / square - q.loc * a / p.rate + 0.5 * q.loc.pow(2)
    return logs + (a - 1) * a.digamma() + away / variance


# From Gumbel, Laplace and normal ------------------------------------------------------


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    spread = (math.pi * ratio * 0.5).pow(2) / 3
    away = ((p.loc + p.scale * euler_constant - q.loc) / q.scale).pow(2) * 0.5
    logs = (ratio / math.sqrt(2 * math.pi)).log()
    return spread + away - logs - (euler_constant + 1)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.pow(2)
    ratio = p.scale.pow(2) / variance
    away = 0.5 * (p.loc - q.loc).pow(2) / variance
    return ratio - 0.5 * torchshim.log(2 * ratio / math.pi) + away - 1


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    away, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    tail = torchshim.exp(0.5 * ratio - away)
    return away + tail - ratio.log() * 0.5 - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    away, ratio = p.loc - q.loc, p.scale / q.scale
    z = away / p.scale
    bell = math.sqrt(2 / math.pi) * p.scale * torchshim.exp(-0.5 * z.pow(2))
    mean = (bell + away * torchshim.erf(math.sqrt(0.5) * z)) / q.scale
    return mean - ratio.log() - 0.5 * (1 + math.log(0.5 * math.pi))


# From Pareto --------------------------------------------------------------------------


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    product = p.scale * q.rate
    mean = p.alpha * product / (p.alpha - 1)
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + mean - 1
    return replaced(kl, p.alpha <= 1, _INF)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    log_mean = p.scale.log() + p.alpha.reciprocal()
    own = p.alpha.log() - log_mean
    cross = (1 - q.concentration) * log_mean + q.rate * p.alpha * p.scale / (
        p.alpha - 1
    )
    return replaced(own + _gamma_norm(q) + cross - 1, p.alpha <= 1, _INF)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    mean = p.scale / (p.alpha - 1)
    logs = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    square = p.alpha * mean.pow(2) / (p.alpha - 2) + (p.alpha * mean - q.loc).pow(2)
    kl = logs - p.alpha.reciprocal() + square / (2 * q.scale.pow(2)) - 1
    return replaced(kl, p.alpha <= 2, _INF)


# From uniform -------------------------------------------------------------------------


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """The mean of log(x) over the interval."""
    width = high - low
    return (_x_log_x(high) - _x_log_x(low) - width) / width


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b = q.concentration1, q.concentration0
    cross = (a - 1) * _mean_log(p.low, p.high)
    cross = cross + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    kl = norm - (p.high - p.low).log() - cross
    return replaced(kl, (p.high > 1.0) | (p.low < 0.0), _INF)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    kl = _to_continuous_bernoulli(p, q)
    # The bounds are compared this way round in PyTorch.
    return torchshim.where((p.high >= 1.0) | (p.low <= 0.0), _INF, kl)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return replaced(kl, p.low < 0.0, _INF)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    cross = (1 - q.concentration) * _mean_log(p.low, p.high)
    cross = cross + q.rate * (p.high + p.low) / 2
    kl = _gamma_norm(q) - (p.high - p.low).log() + cross
    return replaced(kl, p.low < 0.0, _INF)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    unit = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    tail = unit * (torchshim.exp(-high) - torchshim.exp(-low))
    return unit.log() + 0.5 * (high + low) - tail


@register_kl(Uniform, Normal)
def _uniform_normal(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    logs = (math.sqrt(math.pi * 2) * q.scale / width).log()
    away = width.pow(2) / 12 + ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return logs + 0.5 * away / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    norm = (q.alpha * q.scale.pow(q.alpha) * width).log()
    kl = _mean_log(p.low, p.high) * (q.alpha + 1) - norm
    return replaced(kl, p.low < q.scale, _INF)


# Each function under PyTorch's name, too.
_SHORT = {"ContinuousBernoulli": "continuous_bernoulli"}
_SHORT["TransformedDistribution"] = "transformed"


def _short(cls: type) -> str:
    return _SHORT.get(cls.__name__, cls.__name__.lower())


for (_p, _q), _function in list(registry._KL_REGISTRY.items()):
    setattr(registry, f"_kl_{_short(_p)}_{_short(_q)}", _function)
for _p, _parameter, _qs in _DISJOINT:
    setattr(registry, f"_kl_{_short(_p)}_infinity", _infinite(_parameter))
