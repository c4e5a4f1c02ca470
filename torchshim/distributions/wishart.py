"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim import _warnings as warnings
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._shared import (
    _precision_to_scale_tril,
    log_diagonal,
    replaced,
)
from torchshim.distributions._validation import check_later, is_known
from torchshim.distributions.chi2 import Chi2
from torchshim.distributions.exp_family import ExponentialFamily
from torchshim.distributions.utils import NUMBERS, lazy_property

__all__ = ["Wishart"]


def _digammas(x: Tensor, p: int) -> Tensor:
    steps = torchshim.arange(p, dtype=x.dtype, device=x.device) / 2
    return torchshim.digamma(x.unsqueeze(-1) - steps).sum(-1)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return _digammas(x, p)


def _clamp_above_eps(x: Tensor) -> Tensor:
    return x.clamp(min=torchshim.finfo(x.dtype).eps)


class Wishart(ExponentialFamily):
    """Sums of `df` outer products of normal vectors with mean 0: covariances.

    By the covariance of the vectors, its inverse or its Cholesky factor.
    AssertionError unless exactly one is given; ValueError for few degrees of freedom.
    https://docs.pytorch.org/docs/2.13/distributions.html#wishart
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        given = [(name, m) for name, m in matrices.items() if m is not None]
        if len(given) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril "
                "may be specified."
            )
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading "
                "batch dimensions"
            )
        if isinstance(df, NUMBERS):
            batch_shape = Size(matrix.shape[:-2])
            self.df = torchshim.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = torchshim.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        self._check_df(df, event_shape[-1])
        self.__dict__[name] = matrix.expand((*batch_shape, -1, -1))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = torchshim.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)
        self._make_chi2()

    def _check_df(self, df: Any, n: int) -> None:
        few = f"expected to be greater than ndim - 1 = {n - 1}."
        if not is_known(self.df):
            shape = tuple(self.df.shape)
            check_later(self.df > n - 1, f"Value of df of shape {shape} {few}")
            return
        values = self.df._host()
        if (values <= n - 1).any():
            raise ValueError(f"Value of df={df} {few}")
        if (values < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur "
                "for ndim - 1 < df < ndim.",
                stacklevel=3,
            )

    def _make_chi2(self) -> None:
        like = self._unbroadcasted_scale_tril
        n = self._event_shape[-1]
        row = torchshim.arange(n, dtype=like.dtype, device=like.device)
        shape = (*self._batch_shape, -1)
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - row.expand(shape))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(shape)
        self._finish_expansion(new, batch_shape)
        new._make_chi2()
        return new

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors."""
        factor = self._unbroadcasted_scale_tril
        return self._whole(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._whole(torchshim.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _times_df(self, matrix: Tensor, df: Tensor) -> Tensor:
        return df.view((*self._batch_shape, 1, 1)) * matrix

    @property
    def mean(self) -> Tensor:
        return self._times_df(self.covariance_matrix, self.df)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.event_shape[-1] - 1
        factor = replaced(factor, factor <= 0, math.nan)
        return self._times_df(self.covariance_matrix, factor)

    @property
    def variance(self) -> Tensor:
        own = self.covariance_matrix
        diagonal = own.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._times_df(own.pow(2) + outer, self.df)

    def _bartlett_sampling(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        """Samples by Bartlett's decomposition; they may be singular by rounding."""
        n = self._event_shape[-1]
        lengths = self._dist_chi2.rsample(sample_shape).sqrt()
        eps = torchshim.finfo(lengths.dtype).eps
        noise = lengths.clamp(min=eps).diag_embed(dim1=-2, dim2=-1)
        i, j = torchshim.tril_indices(n, n, offset=-1)
        noise[..., i, j] = torchshim.randn(
            (*sample_shape, *self._batch_shape, n * (n - 1) // 2),
            dtype=noise.dtype,
            device=noise.device,
        )
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.transpose(-2, -1)

    def _any_of_batch(self, flags: Tensor) -> Tensor:
        dims = [-1 - i for i in range(len(self._batch_shape))]
        return flags.amax(dims) if dims else flags

    def rsample(
        self,
        sample_shape: Any = Size(),  # noqa: B008
        max_try_correction: int | None = None,
    ) -> Tensor:
        """Samples; singular ones are drawn again, `max_try_correction` (10) times."""
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        # As in PyTorch the first test has the opposite sense: what is not singular is
        # drawn again, with a warning.
        singular = self._any_of_batch(self.support.check(sample))
        if singular.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                drawn = self._bartlett_sampling(singular[singular].shape)
                sample[singular] = drawn
                again = self._any_of_batch(~self.support.check(drawn))
                singular[singular.clone()] = again
                if not singular.any():
                    break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        value, nu, n = self._checked(value), self.df, self._event_shape[-1]
        factor = self._unbroadcasted_scale_tril
        solved = torchshim.cholesky_solve(value, factor)
        trace = solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -nu * (n * math.log(2) / 2 + log_diagonal(factor))
            - torchshim.mvlgamma(nu / 2, p=n)
            + (nu - n - 1) / 2 * torchshim.linalg.slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        nu, n = self.df, self._event_shape[-1]
        own = n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril)
        half = nu / 2
        slope = _digammas(half, n)
        norm = torchshim.mvlgamma(half, p=n)
        return (n + 1) * own + norm - (nu - n - 1) / 2 * slope + nu * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        n = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - n - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        logdet = torchshim.linalg.slogdet(-2 * x).logabsdet
        return half * (n * math.log(2) - logdet) + torchshim.mvlgamma(half, p=n)
