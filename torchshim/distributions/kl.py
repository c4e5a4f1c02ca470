"""The Kullback-Leibler divergence: its registry, and pairs of one kind.

https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.kl
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._tensor import Tensor
from torchshim.distributions._shared import (
    _batch_trace_XXT,
    log_diagonal,
    mahalanobis,
    replaced,
    solve_lower,
)
from torchshim.distributions.bernoulli import Bernoulli
from torchshim.distributions.beta import Beta
from torchshim.distributions.binomial import Binomial
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.cauchy import Cauchy
from torchshim.distributions.continuous_bernoulli import ContinuousBernoulli
from torchshim.distributions.dirichlet import Dirichlet
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.exp_family import (
    ExponentialFamily,
    normalizer_with_slopes,
)
from torchshim.distributions.exponential import Exponential
from torchshim.distributions.gamma import Gamma
from torchshim.distributions.geometric import Geometric
from torchshim.distributions.gumbel import Gumbel
from torchshim.distributions.half_normal import HalfNormal
from torchshim.distributions.independent import Independent
from torchshim.distributions.laplace import Laplace
from torchshim.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_mahalanobis,
)
from torchshim.distributions.multivariate_normal import MultivariateNormal
from torchshim.distributions.normal import Normal
from torchshim.distributions.one_hot_categorical import OneHotCategorical
from torchshim.distributions.pareto import Pareto
from torchshim.distributions.poisson import Poisson
from torchshim.distributions.transformed_distribution import TransformedDistribution
from torchshim.distributions.uniform import Uniform
from torchshim.distributions.utils import _sum_rightmost as _sum_rightmost
from torchshim.distributions.utils import euler_constant, sum_rightmost
from torchshim.nn.functional import softplus

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[..., Any]] = {}


def register_kl(type_p: type, type_q: type) -> Callable[..., Any]:
    """A decorator: the function gives `kl_divergence` of these classes.

    Subclasses find the function of the nearest classes; where two are equally near, a
    RuntimeWarning asks for one more registration. TypeError for what is no
    distribution.
    """
    for given in (type_p, type_q):
        if not isinstance(given, type):
            raise TypeError("issubclass() arg 1 must be a class")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _find.cache_clear()
        return function

    return register


@functools.lru_cache(maxsize=1024)
def _find(type_p: type, type_q: type) -> Callable[..., Any] | None:
    """The function of the nearest classes, by the first class and by the second."""
    found = [
        (p, q)
        for p, q in _KL_REGISTRY
        if issubclass(type_p, p) and issubclass(type_q, q)
    ]
    if not found:
        return None

    def distance(own: type, base: type) -> int:
        return own.__mro__.index(base)

    left = min(found, key=lambda m: (distance(type_p, m[0]), distance(type_q, m[1])))
    right = min(found, key=lambda m: (distance(type_q, m[1]), distance(type_p, m[0])))
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def _infinite_like(tensor: Tensor) -> Tensor:
    return torchshim.full_like(tensor, torchshim.inf)


def _x_log_x(x: Tensor) -> Tensor:
    return torchshim.xlogy(x, x)


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The mean, over samples of `p`, of how much likelier they are than under `q`.

    Of shape `batch_shape`; NotImplementedError for pairs that are not registered.

    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    function = _find(type(p), type(q))
    if function is None:
        raise NotImplementedError(
            "No KL(p || q) is implemented for p type "
            f"{p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return function(p, q)


# Pairs of one kind --------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = replaced(ones, q.probs == 0, torchshim.inf)
    ones = replaced(ones, p.probs == 0, 0)
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = replaced(zeros, q.probs == 1, torchshim.inf)
    return ones + replaced(zeros, p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    p1, p0, q1, q0 = (
        p.concentration1,
        p.concentration0,
        q.concentration1,
        q.concentration0,
    )
    norm = q1.lgamma() + q0.lgamma() + (p1 + p0).lgamma()
    norm = norm - p1.lgamma() - p0.lgamma() - (q1 + q0).lgamma()
    slopes = (p1 - q1) * p1.digamma() + (p0 - q0) * p0.digamma()
    return norm + slopes + ((q1 + q0) - (p1 + p0)) * (p1 + p0).digamma()


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    # Which counts are allowed decides what is raised: a read.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not "
            "implemented"
        )
    odds = p.probs * (p.logits - q.logits)
    kl = p.total_count * (odds + (-p.probs).log1p() - (-q.probs).log1p())
    return replaced(kl, p.total_count > q.total_count, torchshim.inf)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    terms = terms.masked_fill(q.probs == 0, torchshim.inf)
    return terms.masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    own = p._cont_bern_log_norm() + torchshim.log1p(-p.probs)
    other = -q._cont_bern_log_norm() - torchshim.log1p(-q.probs)
    return p.mean * (p.logits - q.logits) + own + other


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    norm = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    slopes = a.digamma() - total.digamma().unsqueeze(-1)
    return norm + ((a - b) * slopes).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the log-normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot "
            "                            be computed using Bregman divergences"
        )
    value, natural, slopes = normalizer_with_slopes(p)
    others = q._natural_params
    kl = q._log_normalizer(*others) - value
    for own, other, slope in zip(natural, others, slopes, strict=True):
        kl = kl - sum_rightmost((other - own) * slope, len(q.event_shape))
    return kl


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    norm = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norm + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, q.loc / q.scale - p.loc / q.scale
    linear = -ratio.log() - away + ratio * euler_constant
    return linear + torchshim.exp(away + (1 + ratio).lgamma()) - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - torchshim.log1p(-q.probs) / p.probs - q.logits


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    spread = ratio * torchshim.exp(-away / p.scale)
    return away / q.scale - ratio.log() + spread - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    away = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + away - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return replaced(kl, p.scale < q.scale, torchshim.inf)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return replaced(kl, (q.low > p.low) | (q.high < p.high), torchshim.inf)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    above = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return above.log() - (4 * p.scale * q.scale).log()


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    dims = p.reinterpreted_batch_ndims
    if dims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), dims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


# Multivariate normal ------------------------------------------------------------------


def _same_event(p: Any, q: Any, kind: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind}Multivariate Normals with"
            "                          different event shapes cannot be computed"
        )


def _batched(p: Tensor, q: Tensor, matrix: Tensor) -> Tensor:
    batch = torchshim.broadcast_shapes(p.shape[:-2], q.shape[:-2])
    return matrix.expand(batch + matrix.shape[-2:])


def _solved_squares(q_tril: Tensor, right: Tensor) -> Tensor:
    """The squares of `q_tril`'s inverse times `right`, the batches broadcast."""
    q_whole = _batched(q_tril, right, q_tril)
    return _batch_trace_XXT(solve_lower(q_whole, _batched(q_tril, right, right)))


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    _same_event(p, q, "")
    p_tril, q_tril = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    logs = log_diagonal(q_tril) - log_diagonal(p_tril)
    spread = _solved_squares(q_tril, p_tril)
    away = mahalanobis(q_tril, q.loc - p.loc)
    return logs + 0.5 * (spread + away - p.event_shape[0])


def _lowrank_parts(q: Any, *factors: Tensor) -> Tensor:
    """The trace of q's precision times the sum of the factors' squares."""
    diagonal, capacitance = q._unbroadcasted_cov_diag, q._capacitance_tril
    weighted = q._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
    solved = solve_lower(capacitance, weighted)
    total: Any = 0.0
    for factor in factors:
        total = total + _batch_trace_XXT(factor * diagonal.rsqrt().unsqueeze(-1))
        total = total - _batch_trace_XXT(solved.matmul(factor))
    return total


def _lowrank_away(p: Any, q: Any) -> Tensor:
    return _batch_lowrank_mahalanobis(
        q._unbroadcasted_cov_factor,
        q._unbroadcasted_cov_diag,
        q.loc - p.loc,
        q._capacitance_tril,
    )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank(p: Any, q: Any) -> Tensor:
    _same_event(p, q, "Low Rank ")
    logs = q._log_determinant() - p._log_determinant()
    diagonal = torchshim.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    spread = _lowrank_parts(q, p._unbroadcasted_cov_factor, diagonal)
    return 0.5 * (logs + spread + _lowrank_away(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_lowrank(p: Any, q: Any) -> Tensor:
    _same_event(p, q, "(Low Rank) ")
    tril = p._unbroadcasted_scale_tril
    logs = q._log_determinant() - 2 * log_diagonal(tril)
    spread = _lowrank_parts(q, tril)
    return 0.5 * (logs + spread + _lowrank_away(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_multivariate(p: Any, q: Any) -> Tensor:
    _same_event(p, q, "(Low Rank) ")
    tril = q._unbroadcasted_scale_tril
    logs = 2 * log_diagonal(tril) - p._log_determinant()
    diagonal = torchshim.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    spread = _solved_squares(tril, p._unbroadcasted_cov_factor)
    spread = spread + _solved_squares(tril, diagonal)
    away = mahalanobis(tril, q.loc - p.loc)
    return 0.5 * (logs + spread + away - p.event_shape[0])


# The pairs of different kinds register themselves.
from torchshim.distributions import _kl_pairs  # noqa: E402

assert _kl_pairs
