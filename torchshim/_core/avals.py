"""A call as JAX sees it: its equations, and the shapes and dtypes of its results.

Tracing is most of what a new kind of events costs. So a call is traced once for
operands of some shapes and dtypes: results' shapes, programs, and what NumPy computes
all come of the same equations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.core
import numpy as np

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._core.placement import platform
from torchshim._core.precision import precision
from torchshim._core.template import scalar_holes

Avals = tuple[tuple[tuple[int, ...], DType], ...]

# What `host_kernels` provides: the results of a call of which others, of other sizes,
# were traced for many sizes at once; None: they do not tell.
known_results: list[Callable[[Any, Avals], Avals | None]] = []

# Traces kept: those of a large model and its gradients.
_TRACES = 1024


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


def trace_of(call: Any, avals: Avals) -> Any:
    """The call's equations (a closed jaxpr) for arrays, then runtime scalars.

    Raises what the operator raises.
    """
    # What operators ask for while they are traced.
    return _trace(call, avals, platform(), precision.key)


@functools.lru_cache(_TRACES)
def _trace(call: Any, avals: Avals, *_: Any) -> Any:
    def apply(arrays: Any, scalars: Any) -> Any:
        try:
            return call.apply(arrays, scalars)
        except Exception as error:
            raise _Raised(error) from None

    error = None
    try:
        with jax.enable_x64(True):
            return jax.make_jaxpr(apply)(*abstract(call, avals))
    except _Raised as raised:
        (error,) = raised.args
    try:
        raise error
    finally:
        del error  # its traceback has this frame


def infer_avals(call: Any, avals: Avals) -> Avals:
    """Shapes and dtypes of a call's results, by a trace of it, or of others.

    Raises what the operator raises.
    """
    for told in known_results:
        if (known := told(call, avals)) is not None:
            return known
    outs = trace_of(call, avals).out_avals
    return tuple((tuple(o.shape), dtypes.from_array_dtype(o.dtype)) for o in outs)


def evaluated(call: Any, arrays: Sequence[Any], scalars: Sequence[Any]) -> list[Any]:
    """The call's results for arrays and runtime scalars (or tracers), by its trace."""
    avals = tuple((tuple(x.shape), dtypes.from_array_dtype(x.dtype)) for x in arrays)
    closed = trace_of(call, avals)
    return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *arrays, *scalars)
