"""Multivariate normal: a covariance of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions._shared import (
    batch_mv,
    log_diagonal,
    mahalanobis,
    solve_lower,
)
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import _standard_normal as _standard_normal
from torchshim.distributions.utils import lazy_property, standard_normal

__all__ = ["LowRankMultivariateNormal"]

# PyTorch's names, which other distributions import.
_batch_mahalanobis, _batch_mv = mahalanobis, batch_mv


def _batch_capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """The Cholesky factor of 1 + W^T D^-1 W."""
    weighted = factor.mT / diagonal.unsqueeze(-2)
    return _cholesky_of_one_plus(weighted @ factor)


def _cholesky_of_one_plus(matrix: Tensor) -> Tensor:
    n = matrix.size(-1)
    eye = torchshim.eye(n, dtype=matrix.dtype, device=matrix.device)
    return torchshim.linalg.cholesky(matrix + eye)


def _batch_lowrank_logdet(
    factor: Tensor, diagonal: Tensor, capacitance: Tensor
) -> Tensor:
    """log det (W W^T + D), by the determinant lemma."""
    return 2 * log_diagonal(capacitance) + diagonal.log().sum(-1)


def _batch_lowrank_mahalanobis(
    factor: Tensor, diagonal: Tensor, x: Tensor, capacitance: Tensor
) -> Tensor:
    """x^T (W W^T + D)^-1 x, by Woodbury's identity."""
    weighted = factor.mT / diagonal.unsqueeze(-2)
    inner = mahalanobis(capacitance, batch_mv(weighted, x))
    return (x.pow(2) / diagonal).sum(-1) - inner


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with the covariance `cov_factor @ cov_factor.T + diag(cov_diag)`.

    ValueError for shapes that do not go together.
    https://docs.pytorch.org/docs/2.13/distributions.html#lowrankmultivariatenormal
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading "
                "batch dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                "cov_factor must be a batch of matrices with shape "
                f"{event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(
                f"cov_diag must be a batch of vectors with shape {event_shape}"
            )
        try:
            whole_loc, self.cov_factor, whole_diag = torchshim.broadcast_tensors(
                loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1)
            )
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor "
                f"{cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = whole_loc[..., 0], whole_diag[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expand_parameters(LowRankMultivariateNormal, batch_shape, _instance)
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril
        return new

    def _whole(self, matrix: Tensor) -> Tensor:
        shape = self._batch_shape + self._event_shape + self._event_shape
        return matrix.expand(shape)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        own = self._unbroadcasted_cov_factor.pow(2).sum(-1)
        variance = own + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        scale = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / scale
        return self._whole(scale * _cholesky_of_one_plus(scaled @ scaled.mT))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        diagonal = torchshim.diag_embed(self._unbroadcasted_cov_diag)
        return self._whole(factor @ factor.mT + diagonal)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        diagonal = self._unbroadcasted_cov_diag
        weighted = self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
        solved = solve_lower(self._capacitance_tril, weighted)
        inverse = torchshim.diag_embed(diagonal.reciprocal()) - solved.mT @ solved
        return self._whole(inverse)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        shape = self._extended_shape(sample_shape)
        low = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        full = standard_normal(shape, self.loc)
        moved = self.loc + batch_mv(self._unbroadcasted_cov_factor, low)
        return moved + self._unbroadcasted_cov_diag.sqrt() * full

    def _log_determinant(self) -> Tensor:
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            self._capacitance_tril,
        )

    def log_prob(self, value: Tensor) -> Tensor:
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor,
            self._unbroadcasted_cov_diag,
            self._checked(value) - self.loc,
            self._capacitance_tril,
        )
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_determinant() + distance)

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        entropy = 0.5 * (constant + self._log_determinant())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
