"""Forward mode: the derivative of a call in the direction of its operands' tangents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core.call import (
    AnyCall,
    Levels,
    Outputs,
    intern_call,
)
from torchshim._core.linearize import forward_mode, restricted
from torchshim._core.op import bends

UNSUPPORTED = (
    "Trying to use forward AD with {} that does not support it because it has not been "
    "implemented yet.\nPlease file an issue to PyTorch at https://github.com/pytorch/"
    "pytorch/issues/new?template=feature-request.yml so that we can prioritize its "
    "implementation or submit a PR adding the implementation to derivatives.yaml"
)


class DualStep(tuple[Any, ...]):
    """A step of a view's path behind which there are other tangents than before it.

    Results of `make_dual`, primals of `unpack_dual` and detached aliases share memory
    with the tensors they are made from, but not tangents. Theirs are kept here, for all
    tensors whose path has this step.
    """

    # The level whose tangents are others; None: those of all levels.
    level: int | None
    tangents: dict[int, Any]

    @classmethod
    def of(
        cls, step: tuple[Any, ...], level: int | None, tangents: dict[int, Any]
    ) -> DualStep:
        """A step of a path, with these tangents behind it."""
        self = cls(step)
        self.level, self.tangents = level, tangents
        return self

    def behind(self, before: Mapping[int, Any]) -> dict[int, Any]:
        """The tangents behind the step, given those before it."""
        return {n: t for n, t in before.items() if not self.begins(n)} | self.tangents

    def across(
        self, written: Mapping[int, Any], before: Mapping[int, Any]
    ) -> dict[int, Any]:
        """The tangents before the step, given those written behind it, and before."""
        kept = {n: t for n, t in before.items() if self.begins(n)}
        return {n: t for n, t in written.items() if not self.begins(n)} | kept

    def begins(self, level: int) -> bool:
        """Whether there are other tangents of a level behind the step."""
        return self.level is None or self.level == level


def through_dual(path: Sequence[Any]) -> bool:
    """Whether a path has a `DualStep`."""
    return any(step.__class__ is DualStep for step in path)


class JvpCall(AnyCall):
    """`jax.jvp` of a call: a call itself, so that it can be differentiated again.

    Operands: those of `inner`, then a tangent for each of the operands `along`.
    Results: the tangents of `inner`'s results.
    """

    __slots__ = ("along", "grad_name", "inner", "levels", "n_arrays", "n_primals")

    op: Any = None
    write = False

    def __init__(self, inner: Any, along: tuple[int, ...], n_primals: int) -> None:
        self.inner = inner
        self.along = along
        self.n_primals = n_primals
        self.n_arrays = n_primals + len(along)
        self.levels = inner.levels
        self.grad_name: str | None = None
        self._inferred = {}

    def __repr__(self) -> str:
        return f"jvp[{self.inner!r}]"

    def around(self, inner: Any) -> JvpCall:
        """The same derivative of another call."""
        return jvp_call(inner, self.along, self.n_primals)

    @property
    def template(self) -> Any:
        return self.inner.template

    def levels_of(self, i: int) -> Levels:
        at = i if i < self.n_primals else self.along[i - self.n_primals]
        return self.inner.levels_of(at)

    def levels_of_result(self, k: int) -> Levels:
        return self.inner.levels_of_result(k)

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        primals = list(arrays[: self.n_primals])
        # What complex and real operands promote to decides about the tangent's dtype.
        tangents = [
            tangent.astype(primals[i].dtype)
            for i, tangent in zip(self.along, arrays[self.n_primals :], strict=True)
        ]
        function = restricted(self.inner.apply, primals, scalars, self.along)
        try:
            with forward_mode(True):
                outs, moved = jax.jvp(
                    function, tuple(primals[i] for i in self.along), tuple(tangents)
                )
        except NotImplementedError as error:
            if not str(error).startswith("the derivative for "):
                raise
            raise NotImplementedError(
                UNSUPPORTED.format(self.inner.op.parsed)
            ) from None
        return tuple(
            tangent
            if tangent.dtype != jax.dtypes.float0
            else jnp.zeros(out.shape, np.float32)
            for out, tangent in zip(outs, moved, strict=True)
        )

    def saved(self, wrt: Sequence[int]) -> tuple[str, ...]:
        return ("operands",)

    def needs(self, wrt: Sequence[int]) -> tuple[int, ...]:
        return tuple(range(self.n_arrays))

    def differentiable(self, i: int) -> bool:
        if i >= self.n_primals:
            return self.inner.differentiable(self.along[i - self.n_primals])
        return bends(self.inner, self.along, i)


def jvp_call(inner: Any, along: tuple[int, ...], n_primals: int) -> JvpCall:
    """The interned forward derivative of `inner`."""
    return intern_call(
        ("jvp", inner, along, n_primals), lambda: JvpCall(inner, along, n_primals)
    )
