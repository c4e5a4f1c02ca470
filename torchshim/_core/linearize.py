"""A call as a function to be differentiated; `jax.vjp` with PyTorch's conventions."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

Outputs = tuple[jax.Array, ...]

_FORWARD: ContextVar[bool] = ContextVar("forward mode", default=False)


@contextmanager
def forward_mode(on: bool) -> Generator[None]:
    """Says what rules of `jax.custom_jvp` are asked for, which `is_forward` answers."""
    before = _FORWARD.set(on)
    try:
        yield
    finally:
        _FORWARD.reset(before)


def is_forward() -> bool:
    """Whether a rule of `jax.custom_jvp` gives tangents of forward mode.

    Not all of PyTorch's formulas for tangents are those that its gradients transpose.
    """
    return _FORWARD.get()


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
    # Of each result: whether it can have a gradient.
    smooth: list[bool] = []

    def parted(*chosen: Any) -> tuple[Outputs, Outputs]:
        outs = function(*chosen)
        smooth[:] = [jnp.issubdtype(out.dtype, jnp.inexact) for out in outs]
        pairs = [*zip(outs, smooth, strict=True)]
        return tuple(o for o, there in pairs if there), tuple(
            o for o, there in pairs if not there
        )

    with forward_mode(False):
        inexact, pull, others = jax.vjp(parted, *(arrays[i] for i in wrt), has_aux=True)
    parts = {True: iter(inexact), False: iter(others)}
    outs = tuple([next(parts[there]) for there in smooth])

    def backward(cotangents: Sequence[Any]) -> Outputs:
        cts = []
        for out, ct, there in zip(outs, cotangents, smooth, strict=True):
            if not there:
                continue
            if ct is None:
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
