"""Shapes and dtypes of a call's results, which JAX finds by tracing it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._core.template import scalar_holes

Avals = tuple[tuple[tuple[int, ...], DType], ...]


def abstract(call: Any, avals: Avals) -> tuple[list[Any], list[Any]]:
    """What JAX traces a call with: its arrays and runtime scalars, without values."""
    return [jax.ShapeDtypeStruct(shape, dtype.np) for shape, dtype in avals], [
        jax.ShapeDtypeStruct((), np.int64 if hole.integer else np.float64)
        for hole in scalar_holes(call.template)
    ]


class _Raised(BaseException):
    """Carries an operator's error past JAX.

    JAX takes its frames out of an `Exception`'s traceback, which takes milliseconds,
    and adds a note of that to what the user reads.
    """


def infer_avals(call: Any, avals: Avals) -> Avals:
    """Shapes and dtypes of a call's results through `jax.eval_shape`."""

    def apply(arrays: Any, scalars: Any) -> Any:
        try:
            return call.apply(arrays, scalars)
        except Exception as error:
            raise _Raised(error) from None

    outs, error = (), None
    try:
        with jax.enable_x64(True):
            outs = jax.eval_shape(apply, *abstract(call, avals))
    except _Raised as raised:
        (error,) = raised.args
    if error is not None:
        try:
            raise error
        finally:
            del error  # its traceback has this frame
    return tuple((tuple(o.shape), dtypes.from_array_dtype(o.dtype)) for o in outs)
