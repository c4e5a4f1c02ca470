"""Probability distributions, as `torch.distributions`.

https://docs.pytorch.org/docs/2.13/distributions.html
"""

from torchshim.distributions import constraints as constraints
from torchshim.distributions import transforms as transforms
from torchshim.distributions.bernoulli import Bernoulli
from torchshim.distributions.beta import Beta
from torchshim.distributions.binomial import Binomial
from torchshim.distributions.categorical import Categorical
from torchshim.distributions.cauchy import Cauchy
from torchshim.distributions.chi2 import Chi2
from torchshim.distributions.constraint_registry import biject_to, transform_to
from torchshim.distributions.continuous_bernoulli import ContinuousBernoulli
from torchshim.distributions.dirichlet import Dirichlet
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.exp_family import ExponentialFamily
from torchshim.distributions.exponential import Exponential
from torchshim.distributions.fishersnedecor import FisherSnedecor
from torchshim.distributions.gamma import Gamma
from torchshim.distributions.generalized_pareto import GeneralizedPareto
from torchshim.distributions.geometric import Geometric
from torchshim.distributions.gumbel import Gumbel
from torchshim.distributions.half_cauchy import HalfCauchy
from torchshim.distributions.half_normal import HalfNormal
from torchshim.distributions.independent import Independent
from torchshim.distributions.inverse_gamma import InverseGamma
from torchshim.distributions.kl import kl_divergence, register_kl
from torchshim.distributions.kumaraswamy import Kumaraswamy
from torchshim.distributions.laplace import Laplace
from torchshim.distributions.lkj_cholesky import LKJCholesky
from torchshim.distributions.log_normal import LogNormal
from torchshim.distributions.logistic_normal import LogisticNormal
from torchshim.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
)
from torchshim.distributions.mixture_same_family import MixtureSameFamily
from torchshim.distributions.multinomial import Multinomial
from torchshim.distributions.multivariate_normal import MultivariateNormal
from torchshim.distributions.negative_binomial import NegativeBinomial
from torchshim.distributions.normal import Normal
from torchshim.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from torchshim.distributions.pareto import Pareto
from torchshim.distributions.poisson import Poisson
from torchshim.distributions.relaxed_bernoulli import RelaxedBernoulli
from torchshim.distributions.relaxed_categorical import RelaxedOneHotCategorical
from torchshim.distributions.studentT import StudentT
from torchshim.distributions.transformed_distribution import TransformedDistribution
from torchshim.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from torchshim.distributions.uniform import Uniform
from torchshim.distributions.von_mises import VonMises
from torchshim.distributions.weibull import Weibull
from torchshim.distributions.wishart import Wishart

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
