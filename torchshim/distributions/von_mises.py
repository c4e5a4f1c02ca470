"""The von Mises distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._core.meta import Size
from torchshim._tensor import Tensor
from torchshim.distributions import constraints
from torchshim.distributions.distribution import Distribution
from torchshim.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun 9.8.1 to 9.8.4: I0 and I1 up to 3.75, and beyond.
_COEF_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_COEF_LARGE = (
    (
        *(0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2),
        *(-0.2057706e-1, 0.2635537e-1, -0.1647633e-1, 0.392377e-2),
    ),
    (
        *(0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1),
        *(0.2282967e-1, -0.2895312e-1, 0.1787654e-1, -0.420059e-2),
    ),
)


def _eval_poly(y: Tensor, coefficients: Sequence[float]) -> Tensor:
    *rest, last = coefficients
    value: Any = last
    for coefficient in reversed(rest):
        value = coefficient + y * value
    return value


def _log_modified_bessel_fn(x: Tensor, order: int = 0) -> Tensor:
    """log I0(x) or log I1(x) for x >= 0."""
    if order not in (0, 1):
        raise AssertionError(f"order must be 0 or 1, got {order}")
    near = _eval_poly((x / 3.75) ** 2, _COEF_SMALL[order])
    if order == 1:
        near = x.abs() * near
    far = x - 0.5 * x.log() + _eval_poly(3.75 / x, _COEF_LARGE[order]).log()
    return torchshim.where(x < 3.75, near.log(), far)


class VonMises(Distribution):
    """Angles around `loc`, the closer the larger `concentration` is.

    https://docs.pytorch.org/docs/2.13/distributions.html#vonmises
    """

    arg_constraints = {  # noqa: RUF012
        "loc": constraints.real,
        "concentration": constraints.positive,
    }
    support = constraints.real
    has_rsample = False

    def __init__(
        self, loc: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        loc = self.loc.expand(batch_shape)
        concentration = self.concentration.expand(batch_shape)
        validate_args = self.__dict__.get("_validate_args")
        return type(self)(loc, concentration, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        towards = self.concentration * torchshim.cos(self._checked(value) - self.loc)
        return (
            towards
            - math.log(2 * math.pi)
            - _log_modified_bessel_fn(self.concentration, 0)
        )

    @lazy_property
    def _loc(self) -> Tensor:
        return self.loc.to(torchshim.double)

    @lazy_property
    def _concentration(self) -> Tensor:
        return self.concentration.to(torchshim.double)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """The parameter of the wrapped Cauchy distribution that samples come from."""
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        series = 1 / kappa + kappa  # exact enough below 1e-5
        return torchshim.where(kappa < 1e-5, series, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = Size()) -> Tensor:  # noqa: B008
        """Samples by Best's and Fisher's rejection method (1979), in double."""
        shape = self._extended_shape(sample_shape)
        with torchshim.no_grad():
            kappa, r = self._concentration, self._proposal_r
            x = torchshim.zeros(shape, dtype=r.dtype, device=r.device)
            done = torchshim.zeros(shape, dtype=torchshim.bool, device=r.device)
            # How often all are drawn again depends on the values: a read each time.
            while not done.all():
                u = torchshim.rand((3, *shape), dtype=r.dtype, device=r.device)
                u1, u2, u3 = u.unbind()
                z = torchshim.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = torchshim.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            angle = (x + math.pi + self._loc) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        own = self.concentration
        return (
            1
            - (_log_modified_bessel_fn(own, 1) - _log_modified_bessel_fn(own, 0)).exp()
        )
