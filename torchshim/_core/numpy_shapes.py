"""What JAX's primitives do to shapes and places, in NumPy: see `numpy_rules`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core.numpy_rules import Function, NoRule, rule

# Elements up to which repeating them takes less than `broadcast_to`.
_FILLED = 2048
# What JAX's gather gives beyond the operand, by the kind of its dtype.
_FILLS: dict[str, Callable[[Any], Any]] = {
    "f": lambda dtype: np.nan,
    "i": lambda dtype: np.iinfo(dtype).min,
    "u": lambda dtype: np.iinfo(dtype).max,
    "b": lambda dtype: True,
}


@rule("broadcast_in_dim")
def _broadcast(eqn: Any) -> Function:
    shape, dims = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    source = eqn.invars[0].aval.shape
    between = [1] * len(shape)
    for dim, length in zip(dims, source, strict=True):
        between[dim] = length
    if len(eqn.invars) > 1:
        raise NoRule
    elements = math.prod(shape)
    if elements == math.prod(source):
        return lambda x: x.reshape(shape)
    if elements > _FILLED:
        return lambda x: np.broadcast_to(x.reshape(between), shape)

    def fill(x: Any) -> Any:
        found = np.empty(shape, x.dtype)
        found[...] = x.reshape(between)
        return found

    return fill


@rule("reshape")
def _reshape(eqn: Any) -> Function:
    shape, order = eqn.outvars[0].aval.shape, eqn.params.get("dimensions")
    if order is not None:
        return lambda x: np.reshape(np.transpose(x, order), shape)
    return lambda x, *dynamic: x.reshape(shape)


@rule("dim_as_value")
def _dim_as_value(eqn: Any) -> Function:
    value = np.asarray(eqn.params["dim"], eqn.outvars[0].aval.dtype)
    return lambda: value


@rule("squeeze", "expand_dims")
def _squeeze(eqn: Any) -> Function:
    shape = eqn.outvars[0].aval.shape
    return lambda x: x.reshape(shape)


@rule("transpose", sizeless=True)
def _transpose(eqn: Any) -> Function:
    order = eqn.params["permutation"]
    return lambda x: x.transpose(order)


@rule("rev", sizeless=True)
def _rev(eqn: Any) -> Function:
    dims = eqn.params["dimensions"]
    return lambda x: np.flip(x, dims)


@rule("concatenate", sizeless=True)
def _concatenate(eqn: Any) -> Function:
    dim = eqn.params["dimension"]
    return lambda *xs: np.concatenate(xs, dim)


@rule("stack", sizeless=True)
def _stack(eqn: Any) -> Function:
    axis = eqn.params["axis"]
    return lambda *xs: np.stack(xs, axis)


@rule("unstack", sizeless=True)
def _unstack(eqn: Any) -> Function:
    axis = eqn.params["axis"]
    return lambda x: tuple(np.moveaxis(x, axis, 0))


@rule("tile")
def _tile(eqn: Any) -> Function:
    reps = eqn.params["reps"]
    return lambda x: np.tile(x, reps)


@rule("split")
def _split(eqn: Any) -> Function:
    ends = np.cumsum(eqn.params["sizes"])[:-1].tolist()
    axis = eqn.params["axis"]
    return lambda x: tuple(np.split(x, ends, axis))


@rule("slice")
def _slice(eqn: Any) -> Function:
    starts, ends = eqn.params["start_indices"], eqn.params["limit_indices"]
    steps = eqn.params["strides"] or (1,) * len(starts)
    places = tuple(map(slice, starts, ends, steps))
    return lambda x: x[places]


def padded(shape: Sequence[int], config: Sequence[tuple[int, int, int]]) -> Function:
    """Puts elements of a value before, behind and between those of an array; negative
    numbers take away."""
    whole, into, taken = [], [], []
    for (low, high, interior), length in zip(config, shape, strict=True):
        step = interior + 1
        size = low + high + max(length * step - interior, 0)
        first = max(0, -(low // step)) if low < 0 else 0
        last = length
        while last > first and low + (last - 1) * step >= size:
            last -= 1
        taken.append(slice(first, last))
        start = low + first * step
        into.append(slice(start, start + max(last - first, 0) * step, step))
        whole.append(size)
    if not any(any(each) for each in config):
        return lambda x, fill: x

    def pad(x: Any, fill: Any) -> Any:
        found = np.full(whole, fill)
        piece = x[tuple(taken)]
        if piece.size:
            found[tuple(into)] = piece
        return found

    return pad


@rule("pad")
def _pad(eqn: Any) -> Function:
    return padded(eqn.invars[0].aval.shape, eqn.params["padding_config"])


@rule("iota")
def _iota(eqn: Any) -> Function:
    shape, dim = eqn.params["shape"], eqn.params["dimension"]
    between = [1] * len(shape)
    between[dim] = shape[dim]
    found = np.arange(shape[dim], dtype=eqn.params["dtype"]).reshape(between)
    found = np.broadcast_to(found, shape)
    return lambda: found


def _starts(operand: Any, sizes: Sequence[int], given: Sequence[Any]) -> list[int]:
    return [
        min(max(int(start), 0), whole - size)
        for start, whole, size in zip(given, operand.shape, sizes, strict=True)
    ]


@rule("dynamic_slice")
def _dynamic_slice(eqn: Any) -> Function:
    sizes = eqn.params["slice_sizes"]

    def take(x: Any, *given: Any) -> Any:
        starts = _starts(x, sizes, given)
        return x[tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))]

    return take


@rule("dynamic_update_slice")
def _dynamic_update_slice(eqn: Any) -> Function:
    sizes = eqn.invars[1].aval.shape

    def put(x: Any, piece: Any, *given: Any) -> Any:
        found = np.array(x)
        starts = _starts(x, sizes, given)
        places = tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))
        found[places] = piece
        return found

    return put


# Indexing


def _clamps(mode: Any) -> bool:
    name = getattr(mode, "name", str(mode))
    if name not in ("CLIP", "PROMISE_IN_BOUNDS", "FILL_OR_DROP"):
        raise NoRule
    return name != "FILL_OR_DROP"


class _Windows:
    """The elements of an array that the indices of a gather or scatter name."""

    def __init__(
        self,
        shape: Sequence[int],
        sizes: Sequence[int],
        mapped: Sequence[int],
        batched: Sequence[int],
        along: Sequence[int],
    ) -> None:
        self.shape, self.sizes, self.mapped = tuple(shape), tuple(sizes), mapped
        self.batched = list(zip(batched, along, strict=True))

    def places(self, indices: Any, clamped: bool) -> tuple[tuple[Any, ...], Any]:
        """Index arrays for each dimension, of the shape of all indices and then that
        of a window; and which windows lie within (None: all do)."""
        lead, rank = indices.ndim - 1, len(self.shape)
        within = None
        found: list[Any] = []
        for dim, (length, size) in enumerate(zip(self.shape, self.sizes, strict=True)):
            window = np.arange(size).reshape(
                [1] * (lead + dim) + [size] + [1] * (rank - dim - 1)
            )
            if dim in self.mapped:
                start = indices[..., self.mapped.index(dim)].astype(np.int64)
                if clamped:
                    start = np.clip(start, 0, length - size)
                else:
                    inside = (start >= 0) & (start <= length - size)
                    within = inside if within is None else within & inside
                    start = np.where(inside, start, 0)
                window = window + start.reshape(start.shape + (1,) * rank)
            for mine, theirs in self.batched:
                if mine == dim:
                    turn = [1] * (lead + rank)
                    turn[theirs] = indices.shape[theirs]
                    window = window + np.arange(indices.shape[theirs]).reshape(turn)
            found.append(window)
        return tuple(found), within


@rule("gather")
def _gather(eqn: Any) -> Function:
    numbers, sizes = eqn.params["dimension_numbers"], eqn.params["slice_sizes"]
    operand, indices = (v.aval for v in eqn.invars)
    clamped = _clamps(eqn.params["mode"])
    dropped = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    windows = _Windows(
        operand.shape,
        sizes,
        list(numbers.start_index_map),
        numbers.operand_batching_dims,
        numbers.start_indices_batching_dims,
    )
    fill = eqn.params["fill_value"]
    if fill is None:
        kind = operand.dtype.kind
        if kind not in _FILLS:
            raise NoRule
        fill = _FILLS[kind](operand.dtype)
    lead = indices.ndim - 1
    squeezed = tuple(lead + d for d in dropped)
    result = eqn.outvars[0].aval.shape
    if 0 in result:
        return lambda x, given: np.zeros(result, operand.dtype)
    offset = list(numbers.offset_dims)
    rest = [d for d in range(len(result)) if d not in offset]
    # Where each dimension of the result comes from: all indices first, then windows.
    order = np.argsort([*rest, *offset]).tolist()

    def gather(x: Any, given: Any) -> Any:
        places, within = windows.places(given, clamped)
        found = x[places]
        if within is not None and not within.all():
            outside = ~within.reshape(within.shape + (1,) * x.ndim)
            found = np.where(outside, np.array(fill, x.dtype), found)
        return np.transpose(np.squeeze(found, squeezed), order)

    return gather


_COMBINING = {
    "scatter": None,
    "scatter-add": np.add,
    "scatter-sub": np.subtract,
    "scatter-mul": np.multiply,
    "scatter-min": np.minimum,
    "scatter-max": np.maximum,
}


@rule(*_COMBINING, *(name.replace("-", "_") for name in _COMBINING))
def _scatter(eqn: Any) -> Function:
    numbers = eqn.params["dimension_numbers"]
    operand, indices, updates = (v.aval for v in eqn.invars)
    combine = _COMBINING[eqn.primitive.name.replace("_", "-")]
    clamped = _clamps(eqn.params["mode"])
    window_dims = list(numbers.update_window_dims)
    dropped = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    kept = [d for d in range(operand.ndim) if d not in dropped]
    sizes = [1] * operand.ndim
    for dim, at in zip(kept, window_dims, strict=True):
        sizes[dim] = updates.shape[at]
    windows = _Windows(
        operand.shape,
        sizes,
        list(numbers.scatter_dims_to_operand_dims),
        numbers.operand_batching_dims,
        numbers.scatter_indices_batching_dims,
    )
    order = [d for d in range(updates.ndim) if d not in window_dims] + window_dims
    shape = (*indices.shape[:-1], *sizes)

    def scatter(x: Any, given: Any, values: Any) -> Any:
        found = np.array(x)
        if not (values.size and found.size):  # all of it is out of range
            return found
        places, within = windows.places(given, clamped)
        values = np.reshape(np.transpose(values, order), shape)
        if within is not None and not within.all():
            places = tuple(np.broadcast_to(p, shape)[within] for p in places)
            values = values[within]
        if combine is None:
            found[places] = values
        else:
            combine.at(found, places, values)
        return found

    return scatter
