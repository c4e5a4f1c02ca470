"""What JAX's primitives do, in NumPy: for programs that run too seldom to be compiled.

A rule takes an equation of a jaxpr, and gives a function of NumPy arrays; it raises
`NoRule` where NumPy has nothing that does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


class NoRule(Exception):
    """An equation that has to be compiled."""


# Types whose arithmetic is the same in NumPy and XLA. (Half precision is rounded after
# each operation by the one, after several by the other.)
_INTEGERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
_KNOWN = frozenset(map(np.dtype, ["bool", *_INTEGERS, "float32", "float64"]))


def known(aval: Any) -> bool:
    """Whether values of this type are computed with here."""
    return getattr(aval, "dtype", None) in _KNOWN


def _floating(eqn: Any) -> bool:
    return eqn.invars[0].aval.dtype.kind == "f"


RULES: dict[str, Callable[[Any], Function]] = {}
# Names of primitives of which one function serves for all sizes.
SIZELESS: set[str] = set()


def rule(
    *names: str, sizeless: bool = False
) -> Callable[[Callable[[Any], Function]], Any]:
    """Declares how primitives of these names are computed.

    `sizeless`: whether the function depends on no size of an operand or result, but on
    dtypes, numbers of dimensions, and parameters that are no sizes.
    """

    def declare(make: Callable[[Any], Function]) -> Callable[[Any], Function]:
        RULES.update(dict.fromkeys(names, make))
        if sizeless:
            SIZELESS.update(names)
        return make

    return declare


def _plain(**functions: Function) -> None:
    """Declares primitives that NumPy has as functions of arrays."""
    for name, function in functions.items():
        rule(name, sizeless=True)(lambda eqn, function=function: function)


_plain(
    add=np.add,
    add_any=np.add,
    sub=np.subtract,
    mul=np.multiply,
    neg=np.negative,
    abs=np.abs,
    sign=np.sign,
    max=np.maximum,
    min=np.minimum,
    floor=np.floor,
    ceil=np.ceil,
    exp=np.exp,
    exp2=np.exp2,
    log=np.log,
    log1p=np.log1p,
    log2=np.log2,
    expm1=np.expm1,
    sin=np.sin,
    cos=np.cos,
    tan=np.tan,
    asin=np.arcsin,
    acos=np.arccos,
    atan=np.arctan,
    atan2=np.arctan2,
    sinh=np.sinh,
    cosh=np.cosh,
    tanh=np.tanh,
    asinh=np.arcsinh,
    acosh=np.arccosh,
    atanh=np.arctanh,
    sqrt=np.sqrt,
    cbrt=np.cbrt,
    square=np.square,
    is_finite=np.isfinite,
    nextafter=np.nextafter,
    eq=np.equal,
    ne=np.not_equal,
    lt=np.less,
    le=np.less_equal,
    gt=np.greater,
    ge=np.greater_equal,
    xor=np.bitwise_xor,
    copy=lambda x: x,
    copy_p=lambda x: x,
    name=lambda x: x,
    real=lambda x: x,
    stop_gradient=lambda x: x,
    device_put=lambda *xs: xs,
    optimization_barrier=lambda *xs: xs,
    one_minus_square=lambda x: 1 - x * x,
    rsqrt=lambda x: 1 / np.sqrt(x),
    logistic=lambda x: 1 / (1 + np.exp(-x)),
    clamp=lambda low, x, high: np.minimum(np.maximum(x, low), high),
)
_plain(**{"and": np.bitwise_and, "or": np.bitwise_or, "not": np.invert})


@rule("lt_to", "le_to", "eq_to", sizeless=True)
def _in_total_order(eqn: Any) -> Function:
    compare = {"lt_to": np.less, "le_to": np.less_equal, "eq_to": np.equal}
    function = compare[eqn.primitive.name]
    return (lambda x, y: function(_rank(x), _rank(y))) if _floating(eqn) else function


def _rank(x: Any) -> Any:
    """Integers in the order of floats' bits: -NaN, -inf, …, -0, +0, …, inf, NaN."""
    bits = np.asarray(x).view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


@rule("erf", "erfc", "erf_inv", "lgamma", "digamma", sizeless=True)
def _special(eqn: Any) -> Function:
    from scipy import special  # which JAX needs, too

    name = eqn.primitive.name
    if name == "lgamma":
        return lambda x: np.where(np.isinf(x), np.abs(x), special.gammaln(x))
    names = {"erf_inv": "erfinv", "digamma": "psi"}
    return getattr(special, names[name] if name in names else name)


@rule("div", sizeless=True)
def _div(eqn: Any) -> Function:
    return np.divide if _floating(eqn) else _quotient


def _quotient(x: Any, y: Any) -> Any:
    # Towards zero; -1 by zero, as XLA has it.
    safe = np.where(y == 0, y.dtype.type(1), y)
    found = np.floor_divide(x, safe)
    found = found + ((np.remainder(x, safe) != 0) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, np.array(-1).astype(y.dtype), found.astype(x.dtype))


@rule("rem", sizeless=True)
def _rem(eqn: Any) -> Function:
    if _floating(eqn):
        return np.fmod
    return lambda x, y: np.where(
        y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y))
    )


@rule("pow", sizeless=True)
def _pow(eqn: Any) -> Function:
    base = eqn.invars[0].aval.dtype
    if base.kind != "f":
        raise NoRule
    return lambda x, y: np.power(x, y.astype(base))


@rule("integer_pow", sizeless=True)
def _integer_pow(eqn: Any) -> Function:
    exponent = eqn.params["y"]
    if exponent < 0 and not _floating(eqn):
        raise NoRule

    def power(x: Any) -> Any:
        found, left, square = None, abs(exponent), x
        while left:
            if left & 1:
                found = square if found is None else found * square
            left >>= 1
            square = square * square if left else square
        found = np.ones_like(x) if found is None else found
        return found if exponent >= 0 else 1 / found

    return power


@rule("round", sizeless=True)
def _round(eqn: Any) -> Function:
    if int(eqn.params["rounding_method"]) == 1:
        return np.rint

    def away_from_zero(x: Any) -> Any:
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) < 0.5, whole, whole + np.sign(x))

    return away_from_zero


@rule("shift_left", "shift_right_logical", "shift_right_arithmetic", sizeless=True)
def _shift(eqn: Any) -> Function:
    dtype, name = eqn.invars[0].aval.dtype, eqn.primitive.name
    bits = dtype.itemsize * 8
    unsigned = np.dtype(f"u{dtype.itemsize}")

    def shift(x: Any, by: Any) -> Any:
        within = by.astype(unsigned) < bits
        places = np.where(within, by, 0).astype(dtype)
        if name == "shift_left":
            return np.where(within, np.left_shift(x, places), dtype.type(0))
        if name == "shift_right_logical":
            found = np.right_shift(x.astype(unsigned), places.astype(unsigned))
            return np.where(within, found.astype(dtype), dtype.type(0))
        all_of_it = np.right_shift(x, dtype.type(bits - 1))
        return np.where(within, np.right_shift(x, places), all_of_it)

    return shift


@rule("select_n", sizeless=True)
def _select(eqn: Any) -> Function:
    if eqn.invars[0].aval.dtype == np.bool_:
        if len(eqn.invars) == 2:
            return lambda which, only: only
        if not eqn.outvars[0].aval.shape:
            return lambda which, no, yes: yes if which else no
        return lambda which, no, yes: np.where(which, yes, no)
    return lambda which, *cases: np.choose(which, cases)


@rule("platform_index")
def _platform(eqn: Any) -> Function:
    platforms = eqn.params["platforms"]
    mine = [k for k, names in enumerate(platforms) if names is None or "cpu" in names]
    if not mine:
        raise NoRule
    index = np.array(mine[0], eqn.outvars[0].aval.dtype)
    return lambda: index


@rule("convert_element_type", sizeless=True)
def _convert(eqn: Any) -> Function:
    before, after = eqn.invars[0].aval.dtype, np.dtype(eqn.params["new_dtype"])
    if not (before.kind == "f" and after.kind in "iu"):
        return lambda x: np.asarray(x).astype(after, copy=False)
    # What does not fit becomes the nearest that does; NaN becomes 0.
    info: Any = np.iinfo(after)

    def convert(x: Any) -> Any:
        found = np.asarray(x).astype(after)
        found = np.where(x >= float(info.max), after.type(info.max), found)
        found = np.where(x <= float(info.min), after.type(info.min), found)
        return np.where(np.isnan(x), after.type(0), found)

    return convert


@rule("bitcast_convert_type", sizeless=True)
def _bitcast(eqn: Any) -> Function:
    after = np.dtype(eqn.params["new_dtype"])
    if after.itemsize != eqn.invars[0].aval.dtype.itemsize:
        raise NoRule
    return lambda x: np.asarray(x).view(after)


# Sums and their kind


@rule("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", sizeless=True)
def _reduce(eqn: Any) -> Function:
    axes, dtype = tuple(eqn.params["axes"]), eqn.outvars[0].aval.dtype
    name = eqn.primitive.name[7:]
    if name in ("sum", "prod"):
        function = np.add if name == "sum" else np.multiply
        return lambda x: function.reduce(x, axes, dtype)
    if 0 in eqn.invars[0].aval.shape:
        raise NoRule
    function = np.maximum if name == "max" else np.minimum
    return lambda x: function.reduce(x, axes)


@rule("reduce_and", "reduce_or", "reduce_xor", sizeless=True)
def _reduce_bits(eqn: Any) -> Function:
    axes, name = tuple(eqn.params["axes"]), eqn.primitive.name[7:]
    function = {
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[name]
    return lambda x: function.reduce(x, axes)


@rule("argmax", "argmin", sizeless=True)
def _arg(eqn: Any) -> Function:
    (axis,), dtype = eqn.params["axes"], eqn.params["index_dtype"]
    function = np.argmax if eqn.primitive.name == "argmax" else np.argmin
    if 0 in eqn.invars[0].aval.shape:
        raise NoRule
    return lambda x: np.asarray(function(x, axis)).astype(dtype)


@rule("cumsum", "cumprod", "cummax", "cummin", sizeless=True)
def _cumulative(eqn: Any) -> Function:
    axis, reverse = eqn.params["axis"], eqn.params["reverse"]
    function = {
        "cumsum": np.add,
        "cumprod": np.multiply,
        "cummax": np.maximum,
        "cummin": np.minimum,
    }[eqn.primitive.name]
    dtype = eqn.outvars[0].aval.dtype

    def along(x: Any) -> Any:
        if reverse:
            x = np.flip(x, axis)
        found = function.accumulate(x, axis, dtype)
        return np.flip(found, axis) if reverse else found

    return along


@rule("sort", sizeless=True)
def _sort(eqn: Any) -> Function:
    axis = eqn.params["dimension"]
    if eqn.params["num_keys"] != 1:
        raise NoRule

    def sort(*xs: Any) -> Any:
        if len(xs) == 1:
            return (np.sort(xs[0], axis, kind="stable"),)
        order = np.argsort(xs[0], axis, kind="stable")
        return tuple(np.take_along_axis(x, order, axis) for x in xs)

    return sort


# Up to so many multiplications OpenBLAS takes one thread (of matrices, and with a
# vector); from so many on several threads are worth it on a busy machine, too. (In
# between, their waiting for one another without sleep made 10 s of 0.3.)
_ALONE, _VECTOR, _WORTH = 2**18, 9000, 2**24
# Lengths of pieces of a product that are multiplied well.
_ROWS, _DEPTH = 64, 512


def product(x: Any, y: Any) -> Any:
    """`x @ y` for matrices, or batches of them; small ones by one thread."""
    m, k, n = *x.shape[-2:], y.shape[-1]
    if x.dtype.kind != "f" or m * k * n <= _VECTOR or m * k * n >= _WORTH:
        return np.matmul(x, y)
    if 1 in (m, n):
        return np.einsum("...ij,...jk->...ik", x, y)
    if m * k * n <= _ALONE:
        return np.matmul(x, y)
    depth, rows = min(k, _DEPTH), min(m, _ROWS)
    columns = min(n, max(1, _ALONE // (depth * rows)))
    rows = min(m, max(1, _ALONE // (depth * columns)))
    found = np.zeros((*x.shape[:-1], n), x.dtype)
    for i in range(0, m, rows):
        for j in range(0, n, columns):
            piece = found[..., i : i + rows, j : j + columns]
            for d in range(0, k, depth):
                left = x[..., i : i + rows, d : d + depth]
                piece += left @ y[..., d : d + depth, j : j + columns]
    return found


@rule("dot_general")
def _dot_general(eqn: Any) -> Function:
    (mine, theirs), (batch, batch2) = eqn.params["dimension_numbers"]
    a, b = (v.aval.shape for v in eqn.invars)
    dtype = eqn.outvars[0].aval.dtype
    if any(v.aval.dtype != dtype for v in eqn.invars):
        raise NoRule
    rest = [d for d in range(len(a)) if d not in (*mine, *batch)]
    rest2 = [d for d in range(len(b)) if d not in (*theirs, *batch2)]
    order, order2 = (*batch, *rest, *mine), (*batch2, *theirs, *rest2)
    shape = [a[d] for d in batch]
    summed = int(np.prod([a[d] for d in mine], dtype=int))
    as_matrix = (*shape, int(np.prod([a[d] for d in rest], dtype=int)), summed)
    as_matrix2 = (*shape, summed, int(np.prod([b[d] for d in rest2], dtype=int)))
    result = eqn.outvars[0].aval.shape

    def contract(x: Any, y: Any) -> Any:
        x = np.reshape(np.transpose(x, order), as_matrix)
        y = np.reshape(np.transpose(y, order2), as_matrix2)
        return np.reshape(product(x, y), result)

    return contract
