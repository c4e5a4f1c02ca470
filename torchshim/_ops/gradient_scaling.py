"""What the gradient scaler of mixed precision records."""

from __future__ import annotations

import jax.numpy as jnp

from torchshim._core.op import Array, Arrays, Scalar, op


@op(
    namespaces=(),
    method=False,
    differentiable=False,
    out=False,
    mutates=("grads", "found_inf"),
)
def unscale_gradients(
    grads: Arrays, found_inf: Arrays, inv_scale: Arrays
) -> tuple[Array, ...]:
    """The gradients times `inv_scale`; `found_inf` is 1 where any is not finite."""
    finite = jnp.stack([jnp.isfinite(g).all() for g in grads]).all()
    # The product is made in float32, as half types are scaled beyond their range.
    scaled = [
        (g.astype(jnp.promote_types(g.dtype, jnp.float32)) * inv_scale[0]).astype(
            g.dtype
        )
        for g in grads
    ]
    found = jnp.where(finite, found_inf[0], jnp.ones_like(found_inf[0]))
    return (*scaled, found)


@op(
    namespaces=(),
    method=False,
    differentiable=False,
    out=False,
    mutates=("scale", "growth_tracker"),
)
def update_gradient_scale(
    scale: Arrays,
    growth_tracker: Arrays,
    found_inf: Arrays,
    growth_factor: Scalar,
    backoff_factor: Scalar,
    growth_interval: int,
) -> tuple[Array, ...]:
    """The scale after a step, and for how many steps it was not lowered."""
    (old,), (tracker,), (found,) = scale, growth_tracker, found_inf
    overflow = found != 0
    grown = (old * growth_factor).astype(old.dtype)
    due = tracker + 1 == growth_interval
    kept = jnp.where(due & jnp.isfinite(grown), grown, old)
    new = jnp.where(overflow, (old * backoff_factor).astype(old.dtype), kept)
    count = jnp.where(overflow | due, 0, tracker + 1).astype(tracker.dtype)
    return new, count
