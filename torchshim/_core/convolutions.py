"""Convolutions in functions that stay functions, in the one order of XLA's fast kernel.

XLA for the CPU brings the dimensions of a convolution into the order that its kernel
takes (batch, space, channels) only in a program's entry. In the body of a loop or in a
function that is not inlined, one in another order becomes a plain loop nest: 15 times
slower, and 300 times where the program was compiled fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def ordered(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with all its convolutions in XLA's order, if this is for the CPU."""
    if jax.default_backend() != "cpu":
        return fn

    def run(*args: Any) -> Any:
        closed, shapes = jax.make_jaxpr(fn, return_shape=True)(*args)
        results = evaluated(closed, jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return run


def evaluated(closed: Any, args: Sequence[Any]) -> list[Any]:
    """The results of a traced function; its convolutions are made by `convolved`."""
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def value(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else env[atom]  # a literal, a variable

    for eqn in jaxpr.eqns:
        operands = [value(v) for v in eqn.invars]
        if eqn.primitive is lax.conv_general_dilated_p:
            made = [convolved(*operands, **eqn.params)]
        elif eqn.primitive.name == "jit" and has_convolution(eqn.params["jaxpr"]):
            made = evaluated(eqn.params["jaxpr"], operands)
        else:
            params = eqn.primitive.get_bind_params(eqn.params)
            with getattr(eqn.ctx, "manager", nullcontext()):
                made = eqn.primitive.bind(*operands, **params)
            made = made if eqn.primitive.multiple_results else [made]
        env.update(zip(eqn.outvars, made, strict=True))
    return [value(v) for v in jaxpr.outvars]


def has_convolution(jaxpr: Any) -> bool:
    """Whether a traced function has a convolution, at any depth."""
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    return any(
        eqn.primitive is lax.conv_general_dilated_p
        or any(map(has_convolution, _functions_in(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _functions_in(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if hasattr(each, "eqns"):
                yield each


def convolved(lhs: Any, rhs: Any, **params: Any) -> Any:
    """A convolution. Grouped ones are left alone: a loop nest is as good for them."""
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        return lax.conv_general_dilated_p.bind(lhs, rhs, **params)
    numbers = params["dimension_numbers"]
    n = lhs.ndim - 2
    batch, features, *space = numbers.lhs_spec
    outputs, inputs, *window = numbers.rhs_spec
    data = (0, n + 1, *range(1, n + 1))
    wanted = lax.ConvDimensionNumbers(data, (n + 1, n, *range(n)), data)
    out = lax.conv_general_dilated_p.bind(
        jnp.transpose(lhs, (batch, *space, features)),
        jnp.transpose(rhs, (*window, inputs, outputs)),
        **params | {"dimension_numbers": wanted},
    )
    # Where each dimension of the result is in what was made.
    batch, features, *space = numbers.out_spec
    return jnp.moveaxis(out, range(n + 2), (batch, *space, features))
