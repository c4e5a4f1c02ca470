"""The factorization of symmetric matrices that need not be definite.

Bunch's and Kaufman's algorithm, as LAPACK has it: `A = L D L^T` with rows and columns
swapped on the way, D of blocks of one and of two rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from torchshim._core.checks import Check
from torchshim._core.op import Array
from torchshim._ops._common import is_integral, scalar_name, without_derivative
from torchshim._ops._linalg import (
    batched,
    check_equation,
    check_floating,
    check_square,
    columns,
    failed,
    linalg_op,
    refuse_kernel,
)

# Below this share of the largest element beside it a pivot is not taken alone.
_ALPHA = float((1 + np.sqrt(17)) / 8)


def _size(x: Array) -> Array:
    return jnp.abs(x.real) + jnp.abs(x.imag) if jnp.iscomplexobj(x) else jnp.abs(x)


def _turned(x: Array, hermitian: bool) -> Array:
    return jnp.conj(x) if hermitian else x


def _swapped(at: Array, i: Array, j: Array) -> Array:
    return jnp.where(at == i, j, jnp.where(at == j, i, at))


def _pivot(S: Array, k: Array, at: Array) -> tuple[Array, Array, Array]:
    """The row that comes to the pivot's place, whether the block has two, if none."""
    column = jnp.where(at > k, _size(S[:, k]), 0)
    low = jnp.argmax(column)
    largest, own = column[low], _size(S[k, k])
    beside = jnp.where((at >= k) & (at != low), _size(S[low]), 0).max()
    none = jnp.maximum(own, largest) == 0
    enough = own >= _ALPHA * largest
    enough |= own * beside >= _ALPHA * largest * largest
    alone = enough | none | jnp.isnan(own)
    single = alone | (_size(S[low, low]) >= _ALPHA * beside)
    return jnp.where(alone, k, low), ~single, none


def _factored(A: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    n = A.shape[-1]
    at = jnp.arange(n)
    lower = jnp.tril(A, -1)
    middle = jnp.diagonal(A)
    middle = middle.real.astype(A.dtype) if hermitian else middle
    S = lower + _turned(lower.T, hermitian) + jnp.diag(middle)

    def step(state: Any) -> Any:
        k, S, LD, pivots, info = state
        row, double, none = _pivot(S, k, at)
        other = jnp.minimum(k + 1, n - 1)
        order = _swapped(at, jnp.where(double, other, k), row)
        S = S[order][:, order]
        # One row: the column below it, divided by the pivot.
        d = jnp.where(none, 1, S[k, k])
        one = jnp.where(at > k, S[:, k] / d, 0)
        # Two rows: the columns below them, times the inverse of the block.
        columns = jnp.where(at[:, None] > other, S[:, jnp.stack([k, other])], 0)
        a, b, c = S[k, k], S[other, k], S[other, other]
        across = _turned(b, hermitian)
        determinant = a * c - b * across
        determinant = jnp.where(double, determinant, 1)
        inverse = jnp.array([[c, -across], [-b, a]]) / determinant
        two = columns @ inverse
        rest = jnp.where(
            double,
            two @ _turned(columns.T, hermitian),
            d * jnp.outer(one, _turned(one, hermitian)),
        )
        first = jnp.where(double, two[:, 0], one)
        first = first.at[k].set(S[k, k])
        first = first.at[other].set(jnp.where(double, b, first[other]))
        LD = LD.at[:, k].set(first)
        second = two[:, 1].at[other].set(c)
        LD = jnp.where(double & (at == other)[None], second[:, None], LD)
        pivots = pivots.at[k].set(jnp.where(double, -(row + 1), row + 1))
        pivots = jnp.where(double & (at == other), -(row + 1), pivots)
        info = jnp.where((info == 0) & none, k + 1, info)
        return k + 1 + double, S - rest, LD, pivots, info

    zero = jnp.zeros((), at.dtype)
    start = (zero, S, jnp.zeros_like(A), jnp.zeros_like(at), zero)
    done = lax.while_loop(lambda state: state[0] < n, step, start)
    return done[2], done[3].astype(jnp.int32), done[4].astype(jnp.int32)


def _flat(fn: Any, results: int, *operands: tuple[Array, int]) -> Any:
    """A function of single matrices, for batches: operands with their dimensions."""
    batch = operands[0][0].shape[: operands[0][0].ndim - operands[0][1]]
    flat = [x.reshape(-1, *x.shape[x.ndim - d :]) for x, d in operands]
    out = jax.vmap(fn)(*flat)
    if results == 1:
        return out.reshape(*batch, *out.shape[1:])
    return tuple(o.reshape(*batch, *o.shape[1:]) for o in out)


def _ldl(A: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    if not A.size:
        batch = A.shape[:-2]
        pivots = jnp.zeros(A.shape[:-1], jnp.int32)
        return A, pivots, jnp.zeros(batch, jnp.int32)

    @without_derivative("aten::linalg_ldl_factor_ex")
    def factor(A: Array) -> Any:
        return _flat(partial(_factored, hermitian=hermitian), 3, (A, 2))

    return factor(A)


def _check(A: Array) -> None:
    check_square(A, "torch.linalg.ldl_factor_ex")
    check_floating(A, "torch.linalg.ldl_factor_ex", "ldl_factor_kernel_cpu")


def _checks(name: str) -> Any:
    def checks(A: Array, hermitian: bool, check_errors: bool = True) -> list[Check]:
        if not check_errors:
            return []
        text = "Unknown error code: {code}."  # PyTorch has no better words for it
        return failed(_ldl(A, hermitian)[2], name, text, RuntimeError)

    return checks


@linalg_op(
    "NotImplemented",
    named_result=("LD", "pivots"),
    checks=_checks("torch.linalg.ldl_factor"),
    layout=columns,
)
def ldl_factor(input: Array, *, hermitian: bool = False) -> tuple[Array, Array]:
    """The factors L and D in one matrix, and the swaps."""
    _check(input)
    return _ldl(input, hermitian)[:2]


@linalg_op(
    "NotImplemented",
    named_result=("LD", "pivots", "info"),
    checks=_checks("torch.linalg.ldl_factor_ex"),
    layout=columns,
)
def ldl_factor_ex(
    input: Array, *, hermitian: bool = False, check_errors: bool = False
) -> tuple[Array, Array, Array]:
    """As `ldl_factor`, and where the first zero on D's diagonal is."""
    _check(input)
    return _ldl(input, hermitian)


def _solved(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    n = LD.shape[-1]
    at = jnp.arange(n)

    def below(k: Array, last: Array) -> Array:
        return jnp.where(at > last, LD[:, k], 0)

    def forward(state: Any) -> Any:
        k, B = state
        double, other = pivots[k] < 0, jnp.minimum(k + 1, n - 1)
        row = jnp.abs(pivots[k]) - 1
        last = jnp.where(double, other, k)
        B = B[_swapped(at, last, row)]
        change = jnp.outer(below(k, last), B[k])
        change += jnp.where(double, jnp.outer(below(other, last), B[other]), 0)
        a, b, c = LD[k, k], LD[other, k], LD[other, other]
        across = _turned(b, hermitian)
        determinant = jnp.where(double, a * c - b * across, 1)
        upper = (c * B[k] - across * B[other]) / determinant
        lower = (a * B[other] - b * B[k]) / determinant
        new = (B - change).at[k].set(jnp.where(double, upper, B[k] / a))
        new = jnp.where(double & (at == other)[:, None], lower[None], new)
        return k + 1 + double, new

    def backward(state: Any) -> Any:
        k, B = state
        double, other = pivots[k] < 0, jnp.maximum(k - 1, 0)
        row = jnp.abs(pivots[k]) - 1
        mine = B[k] - _turned(below(k, k), hermitian) @ B
        its = B[other] - _turned(below(other, k), hermitian) @ B
        new = B.at[k].set(mine)
        new = jnp.where(double & (at == other)[:, None], its[None], new)
        return k - 1 - double, new[_swapped(at, k, row)]

    start = jnp.zeros((), at.dtype)
    _, B = lax.while_loop(lambda state: state[0] < n, forward, (start, B))
    end = start + (n - 1)
    return lax.while_loop(lambda state: state[0] >= 0, backward, (end, B))[1]


def _solution(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    @without_derivative("aten::linalg_ldl_solve")
    def solve(LD: Array, B: Array) -> Array:
        each = partial(_solved, hermitian=hermitian)
        return _flat(each, 1, (LD, 2), (pivots, 1), (B, 2))

    return solve(LD, B)


def _pivot_checks(LD: Array, pivots: Array, *_: Any, **__: Any) -> list[Check]:
    if not pivots.size:
        return []
    bad = (jnp.abs(pivots) > LD.shape[-2]).any()
    return [Check(bad, RuntimeError, _BAD_PIVOTS)]


_BAD_PIVOTS = (
    "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). "
    "Did you properly pass the result of ldl_factor?"
)


@linalg_op("NotImplemented", layout=columns, checks=_pivot_checks)
def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """The solution for a matrix that is given by `ldl_factor`."""
    name = "torch.linalg.ldl_solve"
    check_square(LD, name)
    if is_integral(LD):
        check_floating(LD, name)
    check_equation(name, LD, B)
    if pivots.shape != LD.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got "
            f"pivots with shape {list(pivots.shape)} instead"
        )
    if not is_integral(pivots) or pivots.dtype == bool:
        raise RuntimeError(
            f"{name}: Expected pivots to be integers. Got {scalar_name(pivots)}"
        )
    LD, B = batched(LD, B)
    refuse_kernel(LD, "ldl_solve_kernel_cpu")
    pivots = jnp.broadcast_to(pivots, LD.shape[:-1])
    return _solution(LD, pivots, B, hermitian) if B.size else B
