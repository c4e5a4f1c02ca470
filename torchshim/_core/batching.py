"""Calls under `vmap`: the same function, mapped over dimensions of its arrays.

Under `vmap` a tensor shows the shape of one example. Its array has one dimension more
for each level that maps over it, and its `Meta` says which (`Meta.batch`). A call with
such operands is recorded as a `BatchedCall`: `jax.vmap` of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from torchshim._core.avals import Avals
from torchshim._core.call import (
    AnyCall,
    Levels,
    Outputs,
    PythonCall,
    intern_call,
)
from torchshim._core.meta import Meta

UNBATCHED_TARGET = (
    "vmap: {name}(self, *extra_args) is not possible because there exists "
    "a Tensor `other` in extra_args that has more elements than `self`. This happened "
    "due to `other` being vmapped over but `self` not being vmapped over {where}. "
    "Please try to use out-of-place operators instead of {name}. If said operator is "
    "being called inside the PyTorch framework, please file a bug report instead."
)
# What the text above calls operators that PyTorch has rules for; of others (`add_`) it
# compares the shapes.
_NAMES_IN_TEXTS = {
    **dict.fromkeys(
        ("sub_", "mul_", "div_", "copy_", "put_piece_", "masked_fill_"),
        "inplace arithmetic",
    ),
    **dict.fromkeys(
        ("clamp_min_", "clamp_max_", "logical_and_", "logical_or_", "logical_xor_"),
        "inplace arithmetic",
    ),
    **dict.fromkeys(("put_tensors_", "put_mask_"), "index_put_"),
    **{n: n for n in ("scatter_add_", "index_add_", "index_fill_", "scatter_reduce_")},
    "_fill_": "fill_",
}
_BY_SHAPE = frozenset(("add_", "atan2_", "copysign_", "gcd_", "lcm_")) | frozenset(
    f"bitwise_{name}_" for name in ("and", "or", "xor", "left_shift", "right_shift")
)


# Products of two operands, and of how many dimensions these are.
_PRODUCTS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}


def wrong_product(call: Any, metas: Sequence[Meta]) -> str | None:
    """PyTorch's error for a mapped product that was refused; None: the usual one."""
    name = "" if call.op is None else call.op.public
    if name not in _PRODUCTS or not any(m.batch for m in metas):
        return None
    given, wanted = tuple(len(m.shape) for m in metas), _PRODUCTS[name]
    if given == wanted or len(given) != 2:
        return None
    if name == "dot":
        return "Got wrong shapes for dot"
    return (
        f"Shape mismatch: Got incorrect dims for {name}(a, b). a has dim {given[0]}and "
        f"b has dim {given[1]}but expected them to have dim {wanted[0]} and dim "
        f"{wanted[1]}"
    )


class BatchedCall(AnyCall):
    """`inner` mapped over the levels `mapped`.

    Operand i has the levels `given[i]`, those that `inner` handles itself included.
    """

    __slots__ = ("given", "inner", "levels", "mapped", "sizes")

    def __init__(
        self,
        inner: Any,
        mapped: Levels,
        sizes: tuple[int, ...],
        given: tuple[Levels, ...],
    ) -> None:
        self.inner = inner
        self.mapped = mapped
        self.sizes = sizes
        self.given = given
        self.levels = inner.levels | frozenset(mapped)
        self._inferred = {}

    def __repr__(self) -> str:
        return f"vmap[{self.inner!r}]"

    def around(self, inner: Any) -> BatchedCall:
        """Another call, mapped in the same way."""
        return _interned(inner, self.mapped, self.sizes, self.given)

    def __getattr__(self, name: str) -> Any:
        """Everything else is as it is of the call that is mapped."""
        return getattr(self.inner, name)

    def levels_of(self, i: int) -> Levels:
        """The levels of operand `i`."""
        return self.given[i]

    def levels_of_result(self, k: int) -> Levels:
        """The levels of result `k`."""
        return merged(self.inner.levels_of_result(k), self.mapped)

    def apply(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> Outputs:
        inner = self.inner

        def alone(*arrays: Any) -> Outputs:
            return inner.apply(arrays, scalars)

        return self._mapped_over(alone, 0, self.given)(*arrays)

    def _mapped_over(
        self, function: Callable[..., Outputs], first: int, given: Sequence[Levels]
    ) -> Callable[..., Outputs]:
        if first == len(self.mapped):
            return function
        level, open_levels = self.mapped[first], self.mapped[first:]
        within = [tuple(n for n in levels if n != level) for levels in given]
        each = self._mapped_over(function, first + 1, within)
        at: list[int] = []

        def counted(*arrays: Any) -> Outputs:
            outs = each(*arrays)
            at.clear()
            for k in range(len(outs)):
                levels = merged(self.inner.levels_of_result(k), open_levels)
                at.append(levels.index(level))
            return outs

        def moved(*arrays: Any) -> Outputs:
            outs = jax.vmap(
                counted,
                in_axes=tuple(
                    levels.index(level) if level in levels else None for levels in given
                ),
                axis_size=self.sizes[first],
            )(*arrays)
            return tuple(
                out if axis == 0 else jnp.moveaxis(out, 0, axis)
                for out, axis in zip(outs, at, strict=True)
            )

        return moved

    def check(self, arrays: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
        """The checks of the call, each for all examples together."""
        sites: list[Any] = []

        def alone(*arrays: Any) -> list[Any]:
            sites[:] = self.inner.check(arrays, scalars)
            return [(jnp.asarray(c.bad), jnp.asarray(c.value)) for c in sites]

        function: Callable[..., Any] = alone
        given = list(self.given)
        axes: list[tuple[int | None, ...]] = []
        for level in self.mapped:
            axes.append(tuple(n.index(level) if level in n else None for n in given))
            given = [tuple(n for n in levels if n != level) for levels in given]
        for each, size in zip(reversed(axes), reversed(self.sizes), strict=True):
            function = jax.vmap(function, in_axes=each, axis_size=size)
        outcomes = function(*arrays)
        return [
            replace(site, bad=bad.any(), value=value.ravel()[bad.argmax()])
            for site, (bad, value) in zip(sites, outcomes, strict=True)
        ]


def _interned(
    inner: Any, mapped: Levels, sizes: tuple[int, ...], given: tuple[Levels, ...]
) -> BatchedCall:
    return intern_call(
        ("vmap", inner, mapped, sizes, given),
        lambda: BatchedCall(inner, mapped, sizes, given),
    )


def merged(*groups: Sequence[int]) -> Levels:
    """All levels of the groups, by rising number."""
    return tuple(sorted({level for group in groups for level in group}))


def batched(call: Any, metas: Sequence[Meta]) -> Any:
    """The call as it is recorded for operands of these metas."""
    if isinstance(call, PythonCall):
        return call  # its results exist already
    sizes = {
        level: size
        for meta in metas
        for level, size in meta.batch
        if level not in call.levels
    }
    if not sizes:
        return call
    mapped = tuple(sorted(sizes))
    given = tuple(tuple(level for level, _ in meta.batch) for meta in metas)
    extents = tuple(sizes[level] for level in mapped)
    return _interned(call, mapped, extents, given)


def alone(call: Any) -> Any:
    """A call without what `vmap` made of it."""
    return call.inner if isinstance(call, BatchedCall) else call


def without(call: Any, outside: Levels) -> Any:
    """A call as it is seen within the levels `outside`: for one example of each."""
    if not outside or not isinstance(call, BatchedCall):
        return call
    mapped = tuple(n for n in call.mapped if n not in outside)
    if mapped == call.mapped:
        return call
    if not mapped:
        return call.inner
    sizes = tuple(
        size for n, size in zip(call.mapped, call.sizes, strict=True) if n in mapped
    )
    given = tuple(tuple(n for n in levels if n not in outside) for levels in call.given)
    return _interned(call.inner, mapped, sizes, given)


def seen_by(call: Any, meta: Meta) -> tuple[int, ...]:
    """The shape of an operand's array as the call's own function gets it."""
    if not call.levels:
        return meta.shape
    sizes = (size for level, size in meta.batch if level in call.levels)
    return (*sizes, *meta.shape)


def results_of(
    call: Any, metas: Sequence[Meta], avals: Avals
) -> list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]:
    """(shape, batch) of each result of a call, from what its function gives."""
    outside = {
        level: size
        for meta in metas
        for level, size in meta.batch
        if level not in call.levels
    }
    found: list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]] = []
    for k, (shape, _) in enumerate(avals):
        if isinstance(call, PythonCall):
            found.append((shape, metas[call.n_inputs + k].batch))
            continue
        own = call.levels_of_result(k)
        sizes = dict(zip(own, shape, strict=False)) | outside
        found.append((tuple(shape[len(own) :]), tuple(sorted(sizes.items()))))
    if call.write and found[0][1] != metas[0].batch:
        name = call.op.public
        if name in _BY_SHAPE:
            sizes = [size for _, size in found[0][1]]
            raise RuntimeError(
                f"output with shape {list(metas[0].shape)} doesn't match the "
                f"broadcast shape {[*sizes, *found[0][0]]}"
            )
        known = _NAMES_IN_TEXTS.get(name)
        if known is None:
            whole = name in ("scatter_set_", "scatter_value_")
            known = f"aten::{'scatter_' if whole else name}"
            where = f"at level {len(found[0][1])}"
        else:
            where = "in a vmap"
        raise RuntimeError(UNBATCHED_TARGET.format(name=known, where=where))
    return found
