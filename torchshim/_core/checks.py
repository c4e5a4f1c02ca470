"""Checks that depend on data: found out by the program, raised at the next read.

An operator declares `checks=fn`, where `fn` takes the operator's arguments (arrays as
JAX values) and returns a list of `Check`. XLA would clamp a bad index silently; the
check makes the program report it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax


@dataclass(frozen=True, slots=True)
class Check:
    """`bad` (0-dim bool): whether it fails. `value` (0-dim int) may stand in the text
    as `{value}`, or, if `packed_floats` made it, as `{two}`."""

    bad: Any
    error: type[Exception]
    text: str
    value: Any = 0


@dataclass(frozen=True, slots=True)
class CheckSite:
    """Where a check stands: what to raise and for which operator.

    `line`: that of the first call that was recorded so; others find the same event.
    """

    error: type[Exception]
    text: str
    op: str
    line: tuple[str, int] | None

    def exception(self, value: int) -> Exception:
        text = self.text.replace("{value}", str(value))
        if "{two}" in text:
            low, high = np.int64(value).reshape(1).view(np.float32).tolist()
            text = text.replace("{two}", f"{low:g}, {high:g}")
        error = self.error(text)
        if self.line is not None:
            error.add_note(
                f"raised by {self.op}, first called so in {self.line[0]}, line "
                f"{self.line[1]}"
            )
        return error


def packed_floats(low: Any, high: Any) -> Any:
    """Two 0-dim numbers as one for `Check.value`, in float32."""
    # Not cast as a pair: JAX cannot map that over examples.
    bits = [
        lax.bitcast_convert_type(each.astype(jnp.float32), jnp.uint32).astype(jnp.int64)
        for each in (low, high)
    ]
    return bits[0] | (bits[1] << 32)


def pack(found: list[Check]) -> Any:
    """The checks of one program as one int64 array of shape (n, 2)."""
    return jnp.stack(
        [
            jnp.stack(
                [
                    jnp.asarray(c.bad).astype(jnp.int64),
                    jnp.asarray(c.value).astype(jnp.int64),
                ]
            )
            for c in found
        ]
    )


def out_of_bounds(
    index: Any, size: int, text: str, error: type[Exception] = IndexError
) -> Check:
    """A check that every element of an integer array lies in [-size, size)."""
    if index.size == 0:
        return Check(np.False_, error, text)
    bad = (index < -size) | (index >= size)
    flat, flat_bad = index.reshape(-1), bad.reshape(-1)
    return Check(bad.any(), error, text, flat[jnp.argmax(flat_bad)])
