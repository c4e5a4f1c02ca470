"""A call as a function to be differentiated; `jax.vjp` with PyTorch's conventions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Outputs = tuple[jax.Array, ...]


def _conjugate(grad: Any) -> Any:
    """The conjugate, with +0 for the imaginary part of a real gradient."""
    return jax.lax.complex(grad.real, 0 - grad.imag)


def restricted(
    apply: Callable[..., Outputs],
    arrays: Sequence[Any],
    scalars: Sequence[Any],
    wrt: Sequence[int],
) -> Callable[..., Outputs]:
    """A call as a function of the arrays `wrt` alone."""

    def function(*chosen: Any) -> Outputs:
        full = list(arrays)
        for i, value in zip(wrt, chosen, strict=True):
            full[i] = value
        return apply(full, scalars)

    return function


def linearize(
    apply: Callable[..., Outputs],
    arrays: Sequence[Any],
    scalars: Sequence[Any],
    wrt: Sequence[int],
) -> tuple[Outputs, Callable[[Sequence[Any]], Outputs]]:
    """`jax.vjp` of a call with PyTorch's conventions.

    PyTorch's gradient of a complex value is the conjugate of JAX's.
    """
    function = restricted(apply, arrays, scalars, wrt)
    outs, pull = jax.vjp(function, *(arrays[i] for i in wrt))

    def backward(cotangents: Sequence[Any]) -> Outputs:
        cts = []
        for out, ct in zip(outs, cotangents, strict=True):
            if not jnp.issubdtype(out.dtype, jnp.inexact):
                ct = np.zeros(out.shape, jax.dtypes.float0)
            elif ct is None:
                ct = jnp.zeros(out.shape, out.dtype)
            elif jnp.iscomplexobj(out):
                ct = jnp.conj(ct.astype(out.dtype))
            else:
                if jnp.iscomplexobj(ct):
                    ct = ct.real
                ct = ct.astype(out.dtype)
            cts.append(ct)
        grads = pull(tuple(cts))
        return tuple(_conjugate(g) if jnp.iscomplexobj(g) else g for g in grads)

    return outs, backward
