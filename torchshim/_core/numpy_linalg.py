"""Factorizations in NumPy, by the LAPACK that XLA calls, too: SciPy's."""

from __future__ import annotations

import functools
import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core.numpy_rules import Function, NoRule, rule

# What calls LAPACK, for each matrix.
FACTORIZATIONS = frozenset("cholesky eigh lu qr svd triangular_solve".split())


def _lapack(eqn: Any, library: str = "lapack") -> Callable[[str], Function]:
    """The routines of LAPACK, or of BLAS, for an equation's type."""
    module = importlib.import_module(f"scipy.linalg.{library}")  # which JAX needs, too
    letter = {"float32": "s", "float64": "d"}[eqn.invars[0].aval.dtype.name]
    return lambda name: getattr(module, letter + name)


def _each(eqn: Any, function: Callable[..., Sequence[Any]]) -> Function:
    """What applies a function of matrices to batches of them.

    It gives a result for each of the equation's, and what LAPACK says of a failure: the
    results, but for integers, are NaN then.
    """
    avals = [v.aval for v in eqn.outvars]
    batch = eqn.invars[0].aval.shape[:-2]
    if any(0 in v.aval.shape for v in eqn.invars):
        raise NoRule

    def run(*given: Any) -> list[np.ndarray]:
        made = [np.empty(aval.shape, aval.dtype) for aval in avals]
        for at in itertools.product(*map(range, batch)):
            *found, info = function(*[x[at] for x in given])
            for array, piece in zip(made, found, strict=True):
                failed = info and array.dtype.kind == "f"
                array[at] = np.nan if failed else piece
        return made

    return run


def _only(eqn: Any, **wanted: Any) -> None:
    """Raises `NoRule` if a parameter that an equation may have is another."""
    for name, value in wanted.items():
        if eqn.params.get(name, value) != value:
            raise NoRule(f"{eqn.primitive.name}: {name}")


def _work(sizes: Any) -> int:
    return int(np.real(sizes[0]))


@rule("cholesky")
def _cholesky(eqn: Any) -> Function:
    factor = _lapack(eqn)("potrf")
    run = _each(eqn, functools.partial(factor, lower=1, clean=0))
    return lambda x: run(x)[0]


@rule("qr")
def _qr(eqn: Any) -> Function:
    _only(eqn, pivoting=False)
    named = _lapack(eqn)
    full = eqn.params["full_matrices"]
    reflect, multiply = named("geqrf"), named("orgqr")
    rows, columns = eqn.invars[0].aval.shape[-2:]
    wide = rows if full else min(rows, columns)
    work = _work(named("geqrf_lwork")(rows, columns))

    def factors(x: Any) -> Sequence[Any]:
        reflected, scales, _, info = reflect(x, lwork=work)
        q = np.zeros((rows, wide), x.dtype, order="F")
        kept = min(wide, columns)
        q[:, :kept] = reflected[:, :kept]
        needed = _work(multiply(q, scales, lwork=-1)[1])
        q, _, failed = multiply(q, scales, lwork=needed)
        return q, np.triu(reflected[:wide]), info or failed

    return _each(eqn, factors)


@rule("lu")
def _lu(eqn: Any) -> Function:
    factor = _lapack(eqn)("getrf")
    rows = eqn.invars[0].aval.shape[-2]

    def factors(x: Any) -> Sequence[Any]:
        found, pivots, info = factor(x)
        order = np.arange(rows)
        for k, other in enumerate(pivots):
            order[[k, other]] = order[[other, k]]
        return found, pivots, order, info < 0  # a zero on the diagonal is none

    return _each(eqn, factors)


@rule("eigh")
def _eigh(eqn: Any) -> Function:
    _only(eqn, subset_by_index=None, algorithm=None)
    named = _lapack(eqn)
    solve, lower = named("syevd"), int(eqn.params["lower"])
    size = eqn.invars[0].aval.shape[-1]
    work, integers, _ = named("syevd_lwork")(size, lower=lower)

    def factors(x: Any) -> Sequence[Any]:
        values, vectors, info = solve(
            x, lower=lower, lwork=int(work), liwork=int(integers)
        )
        return vectors, values, info

    return _each(eqn, factors)


@rule("svd")
def _svd(eqn: Any) -> Function:
    _only(eqn, subset_by_index=None, algorithm=None)
    named = _lapack(eqn)
    solve = named("gesdd")
    chosen = {
        "compute_uv": int(eqn.params["compute_uv"]),
        "full_matrices": int(eqn.params["full_matrices"]),
    }
    rows, columns = eqn.invars[0].aval.shape[-2:]
    work, _ = named("gesdd_lwork")(rows, columns, **chosen)

    def factors(x: Any) -> Sequence[Any]:
        u, values, v, info = solve(x, lwork=int(work), **chosen)
        return (values, u, v, info) if chosen["compute_uv"] else (values, info)

    return _each(eqn, factors)


@rule("triangular_solve")
def _triangular_solve(eqn: Any) -> Function:
    params = eqn.params
    solve = functools.partial(
        _lapack(eqn, "blas")("trsm"),
        side=int(not params["left_side"]),
        lower=int(params["lower"]),
        trans_a=int(params["transpose_a"]),
        diag=int(params["unit_diagonal"]),
    )
    run = _each(eqn, lambda a, b: (solve(1, a, b), 0))
    return lambda a, b: run(a, b)[0]


@rule("top_k")
def _top_k(eqn: Any) -> Function:
    k, axis = eqn.params["k"], eqn.params["axis"]
    dtype = eqn.outvars[1].aval.dtype

    def largest(x: Any) -> tuple[Any, Any]:
        # The first of those that are equal comes first.
        order = np.argsort(_descending(x), axis, kind="stable")
        order = np.take(order, range(k), axis)
        return np.take_along_axis(x, order, axis), order.astype(dtype)

    return largest


def _descending(x: np.ndarray) -> np.ndarray:
    """Integers in the opposite order of some numbers; NaN is the largest of these."""
    if x.dtype.kind == "f":
        signed = np.dtype(f"i{x.dtype.itemsize}")
        x = np.ascontiguousarray(x).view(signed)
        x = np.where(x < 0, x ^ np.iinfo(signed).max, x)
    return np.invert(x)
