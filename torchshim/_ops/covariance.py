"""Covariances and correlations of variables."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from torchshim._core import dtypes
from torchshim._core.checks import Check
from torchshim._core.op import Array, op
from torchshim._core.promotion import INT_TO_FLOAT
from torchshim._errors import triggered
from torchshim._ops._common import quotient
from torchshim._ops._reducing import dense, is_complex


def _check_cov(
    input: Any, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> None:
    _check_matrix("cov", input)
    if input.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    shape = input.shape
    number = shape[1] if len(shape) == 2 else math.prod(shape)
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        if len(weights.shape) > 1:
            raise RuntimeError(
                f"cov(): expected {name} to have one or fewer dimensions but got "
                f"{name} with {len(weights.shape)} dimensions"
            )
        floating = weights.dtype.is_floating_point
        exact = weights.dtype.category == dtypes.INTEGER
        kind = "integral" if name == "fweights" else "floating point"
        if not (exact if name == "fweights" else floating):
            raise RuntimeError(
                f"cov(): expected {name} to have {kind} dtype but got {name} with "
                f"{weights.dtype.scalar_name} dtype"
            )
        if math.prod(weights.shape) != number:
            raise RuntimeError(
                f"cov(): expected {name} to have the same numel as there are "
                f"observations in the input but got {math.prod(weights.shape)} != "
                f"{number}"
            )


def _cov_warning(
    input: Any, correction: int = 1, fweights: Any = None, aweights: Any = None
) -> str | None:
    shape = input.shape
    number = shape[1] if len(shape) == 2 else math.prod(shape)
    if fweights is not None or aweights is not None or number - correction > 0:
        return None
    return triggered(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than "
        "the number of observations.",
        "aten/src/ATen/native/Correlation.cpp:129",
    )


def _check_matrix(name: str, input: Any) -> None:
    if len(input.shape) > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an "
            f"input with {len(input.shape)} dimensions"
        )


def _cov_checks(
    input: Array,
    correction: int = 1,
    fweights: Array | None = None,
    aweights: Array | None = None,
) -> list[Check]:
    found = []
    total: Any = None
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None and weights.size:
            text = f"cov(): {name} cannot be negative"
            found.append(Check((weights < 0).any(), RuntimeError, text))
            total = weights if total is None else total * weights
    if total is not None:
        text = "cov(): weights sum to zero, can't be normalized"
        found.append(Check(total.sum() == 0, RuntimeError, text))
    return found


@op(
    saves=("intermediate",),
    promote=INT_TO_FLOAT,
    layout=dense,
    grad_fn="SqueezeBackward0",
    out=False,
    typecheck=_check_cov,
    warns=_cov_warning,
    checks=_cov_checks,
)
def cov(
    input: Array,
    *,
    correction: int = 1,
    fweights: Array | None = None,
    aweights: Array | None = None,
) -> Array:
    """The covariances of variables (rows), from observations (columns)."""
    return _cov(input, correction, fweights, aweights)


def _cov(
    input: Array, correction: int, fweights: Array | None, aweights: Array | None
) -> Array:
    x = input if input.ndim == 2 else input.reshape(1, -1)
    weights = [w.reshape(-1) for w in (fweights, aweights) if w is not None]
    w = math.prod(weights[1:], start=weights[0]) if weights else None
    total: Any = float(x.shape[1]) if w is None else jnp.sum(w)
    if w is not None and aweights is not None and correction != 0:
        free = total - correction * jnp.sum(w * aweights.reshape(-1)) / total
    else:
        free = total - correction
    weighed = x if w is None else x * w
    d = x - quotient(jnp.sum(weighed, axis=1), total)[:, None]
    c = d @ jnp.conj((d if w is None else d * w).T)
    free = jnp.asarray(free).real.astype(x.real.dtype)
    return jnp.squeeze(quotient(c, jnp.where(free <= 0, 0, free)))


def _check_corrcoef(input: Any) -> None:
    _check_matrix("corrcoef", input)
    _check_cov(input)


def _corrcoef_node(input: Any) -> str:
    one = len(input.shape) < 2 or input.shape[0] == 1
    if one:
        return "DivBackward0"
    return "ComplexBackward0" if input.dtype.is_complex else "ClampBackward1"


@op(
    saves=("intermediate",),
    promote=INT_TO_FLOAT,
    layout=dense,
    grad_fn=_corrcoef_node,
    out=False,
    typecheck=_check_corrcoef,
    warns=_cov_warning,
)
def corrcoef(input: Array) -> Array:
    """The correlation coefficients of variables (rows), from observations."""
    c = _cov(input, 1, None, None)
    if not c.ndim:
        return c / c
    spread = jnp.sqrt(jnp.diagonal(c).real)
    c = quotient(quotient(c, spread[:, None]), spread[None, :])
    if is_complex(c):
        return _clamped(c.real) + 1j * _clamped(c.imag)
    return _clamped(c)


def _clamped(x: Array) -> Array:
    # Unlike `clip`, passes gradients on at the ends, where the diagonal is.
    return jnp.where(x < -1, -1, jnp.where(x > 1, 1, x))
