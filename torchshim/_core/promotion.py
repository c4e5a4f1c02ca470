"""Type promotion: which dtype an operator computes in and which one it returns.

The rules are those of
https://docs.pytorch.org/docs/2.13/tensor_attributes.html#type-promotion-doc.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.dtypes import (
    COMPLEX,
    FLOATING,
    INTEGER,
    as_dtype,
    bfloat16,
    bool_,
    complex32,
    complex64,
    dtype,
    float16,
    float32,
    get_default_dtype,
    int16,
    int64,
    type_name,
    uint8,
    uint64,
)
from torchshim._errors import warn_once

# What an operand weighs: dims beat 0-dim tensors, which beat Python numbers.
SCALAR, ZERO_DIM, DIMENSIONED = range(3)

Operand = tuple[dtype, int]


class Promotion(StrEnum):
    """How an operator's compute and result dtypes follow from its operands."""

    DEFAULT = "default"  # common dtype; half types computed in float32
    NO_OPMATH = "no_opmath"  # common dtype throughout (moves data, computes nothing)
    INT_TO_FLOAT = "int_to_float"  # integers and bool become the default dtype
    ALWAYS_BOOL = "always_bool"  # computed in the common dtype, returns bool
    COMPLEX_TO_FLOAT = "complex_to_float"  # complex in, its real type out (abs, angle)
    BOOL_TO_LONG = "bool_to_long"  # bool becomes int64 (pow, cumulative ops)
    SUM = "sum"  # integers and bool accumulate in int64
    MEAN = "mean"  # floating point and complex only


DEFAULT = Promotion.DEFAULT
NO_OPMATH = Promotion.NO_OPMATH
INT_TO_FLOAT = Promotion.INT_TO_FLOAT
ALWAYS_BOOL = Promotion.ALWAYS_BOOL
COMPLEX_TO_FLOAT = Promotion.COMPLEX_TO_FLOAT
BOOL_TO_LONG = Promotion.BOOL_TO_LONG
SUM = Promotion.SUM
MEAN = Promotion.MEAN

_OPMATH = {float16: float32, bfloat16: float32, complex32: complex64}
_INTEGRAL = frozenset(
    dtypes.NAMES[n]
    for n in (
        *("uint8", "uint16", "uint32", "uint64"),
        *("int8", "int16", "int32", "int64"),
    )
)
_ONLY_WITH_FLOATS = frozenset(
    d for d in dtypes.DTYPES if d.name.startswith("uint") and d is not uint8
)
_UNORDERED = frozenset(
    d
    for d in dtypes.DTYPES
    if d.name == "float4_e2m1fn_x2" or (d.name.startswith("int") and d.name[3:] < "8")
    if d not in _INTEGRAL
)


def _unsupported(a: dtype, b: dtype) -> str | None:
    """PyTorch's message for a pair of types without a common type."""
    names = a.name, b.name
    if any(n.startswith("q") for n in names):
        return (
            "promoteTypes with quantized numbers is not handled yet; figure out what "
            f"the correct rules should be, offending types: {a.scalar_name} "
            f"{b.scalar_name}"
        )
    if any(n.startswith("bits") for n in names):
        return f"Promotion from {a.scalar_name} and {b.scalar_name} is unsupported."
    if any(n.startswith("float8") for n in names):
        return (
            "Promotion for Float8 Types is not supported, attempted to promote "
            f"{a.scalar_name} and {b.scalar_name}"
        )
    if a in _ONLY_WITH_FLOATS or b in _ONLY_WITH_FLOATS:
        if FLOATING in (a.category, b.category):
            return None
        return (
            "Promotion for uint16, uint32, uint64 types is not supported, attempted "
            f"to promote {a.scalar_name} and {b.scalar_name}"
        )
    if a in _UNORDERED or b in _UNORDERED:
        return f"Promotion from {a.scalar_name} and {b.scalar_name} is unsupported."
    return None


def _join(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    message = _unsupported(a, b)
    if message is not None:
        raise RuntimeError(message)
    low, high = sorted((a, b), key=lambda d: (d.category, d.itemsize))
    if high.category == COMPLEX and low.category >= FLOATING:
        return _join(low.to_real(), high.to_real()).to_complex()
    if low.category < high.category:
        return high
    if low.itemsize == high.itemsize:
        # Neither type of the pair holds the other's values.
        return int16 if high.category == INTEGER else float32
    return high


_joined: dict[tuple[dtype, dtype], dtype] = {}


def promote(a: dtype, b: dtype) -> dtype:
    """The smallest type of the lattice that holds both; RuntimeError if none does.

    >>> promote(dtypes.uint8, dtypes.int8), promote(float16, bfloat16)
    (torch.int16, torch.float32)
    """
    found = _joined.get((a, b))
    if found is None:
        found = _joined[a, b] = _join(a, b)
    return found


def _combine(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Lets the lighter group decide only where it is of a higher category."""
    if higher is None or lower is None:
        return higher or lower
    if higher.category == COMPLEX:
        return higher
    if higher.category == FLOATING:
        return higher.to_complex() if lower.category == COMPLEX else higher
    if lower.category == COMPLEX:
        return lower
    if higher is bool_ or lower.category == FLOATING:
        return promote(higher, lower)
    return higher


def _result_dtype(operands: tuple[Operand, ...], default: dtype) -> dtype:
    groups: list[dtype | None] = [None, None, None]
    for current, kind in operands:
        if kind == SCALAR and current.category == FLOATING:
            current = default
        elif kind == SCALAR and current.category == COMPLEX:
            current = default.to_complex()
        before = groups[kind]
        groups[kind] = current if before is None else promote(before, current)
    lighter = _combine(groups[ZERO_DIM], groups[SCALAR])
    result = _combine(groups[DIMENSIONED], lighter)
    if result is None:
        raise ValueError("promotion needs at least one operand")
    return result


_results: dict[tuple[tuple[Operand, ...], dtype], dtype] = {}


def result_dtype(operands: Sequence[Operand], default: dtype | None = None) -> dtype:
    """The common dtype of operands given as (dtype, weight) pairs.

    The weight is DIMENSIONED, ZERO_DIM or SCALAR (a Python number, whose dtype is
    that of `scalar_dtype`). Raises RuntimeError where no common dtype exists. See
    https://docs.pytorch.org/docs/2.13/generated/torch.result_type.html.

    >>> result_dtype(((dtypes.int32, DIMENSIONED), (float32, SCALAR)))
    torch.float32
    >>> result_dtype(((dtypes.float16, DIMENSIONED), (dtypes.float64, ZERO_DIM)))
    torch.float16
    """
    key = (tuple(operands), default or get_default_dtype())
    found = _results.get(key)
    if found is None:
        found = _results[key] = _result_dtype(*key)
    return found


def scalar_dtype(number: Any, default: dtype | None = None) -> dtype:
    """The dtype of a Python number (or NumPy scalar) as an operand.

    >>> scalar_dtype(True), scalar_dtype(1), scalar_dtype(1.0), scalar_dtype(1j)
    (torch.bool, torch.int64, torch.float32, torch.complex64)
    """
    kind = number.__class__
    if kind is int:
        return int64 if number < 2**63 else uint64
    if kind is bool:
        return bool_
    if default is None:
        default = get_default_dtype()
    if kind is float:
        return default
    if isinstance(number, (int, np.integer)):
        return int64
    return default.to_complex() if isinstance(number, complex) else default


def opmath(d: dtype) -> dtype:
    """The dtype that arithmetic on `d` is carried out in.

    >>> opmath(bfloat16), opmath(dtypes.int8)
    (torch.float32, torch.int8)
    """
    return _OPMATH.get(d, d)


def _resolve(
    kind: str, operands: tuple[Operand, ...], default: dtype
) -> tuple[dtype, dtype]:
    common = result_dtype(operands, default)
    exact = common in _INTEGRAL or common is bool_
    if kind == NO_OPMATH:
        return common, common
    if kind == INT_TO_FLOAT and exact:
        common = default
    elif kind == ALWAYS_BOOL:
        return opmath(common), bool_
    elif kind == COMPLEX_TO_FLOAT:
        return opmath(common), common.to_real()
    elif (kind == BOOL_TO_LONG and common is bool_) or (kind == SUM and exact):
        common = int64
    elif kind == MEAN and common.category < FLOATING:
        check_mean("mean", common)
    return opmath(common), common


_resolved: dict[tuple[str, tuple[Operand, ...], dtype], tuple[dtype, dtype]] = {}


def resolve(
    kind: str, operands: Sequence[Operand], default: dtype | None = None
) -> tuple[dtype, dtype]:
    """(compute dtype, result dtype) of an operator with a promotion kind.

    >>> resolve(INT_TO_FLOAT, ((dtypes.int32, DIMENSIONED),))
    (torch.float32, torch.float32)
    >>> resolve(SUM, ((bool_, DIMENSIONED),))
    (torch.int64, torch.int64)
    >>> resolve(DEFAULT, ((bfloat16, DIMENSIONED), (int64, SCALAR)))
    (torch.float32, torch.bfloat16)
    """
    key = (kind, tuple(operands), default or get_default_dtype())
    found = _resolved.get(key)
    if found is None:
        found = _resolved[key] = _resolve(*key)
    return found


def check_mean(name: str, given: dtype, of: str = "Input") -> None:
    """Raises PyTorch's error if an averaging reduction gets integers or bool.

    >>> check_mean("mean", int64)
    Traceback (most recent call last):
    ...
    RuntimeError: mean(): could not infer output dtype. Input dtype must be either \
a floating point or complex dtype. Got: Long
    """
    if given.category < FLOATING:
        raise RuntimeError(
            f"{name}(): could not infer output dtype. {of} dtype must be either a "
            f"floating point or complex dtype. Got: {given.scalar_name}"
        )


def reduce_dtype(kind: str, given: dtype, asked: dtype | None, name: str) -> dtype:
    """The result dtype of a reduction with an optional ``dtype=`` argument.

    >>> reduce_dtype(SUM, dtypes.int8, None, "sum")
    torch.int64
    >>> reduce_dtype(MEAN, dtypes.int8, float16, "mean")
    torch.float16
    """
    if kind == MEAN:
        check_mean(name, asked or given, "Optional" if asked else "Input")
    if asked is not None:
        return asked
    return resolve(kind, ((given, DIMENSIONED),))[1]


# Casts ----------------------------------------------------------------------


def castable(source: dtype, target: dtype) -> bool:
    """Whether a result may be written to a tensor of another dtype.

    >>> castable(float32, int64), castable(int64, dtypes.uint8)
    (False, True)
    """
    if source.category == COMPLEX and target.category != COMPLEX:
        return False
    if source.category == FLOATING and target in _INTEGRAL:
        return False
    return source is bool_ or target is not bool_


def check_result(result: dtype, out: dtype) -> None:
    """Raises PyTorch's error if an in-place or ``out=`` tensor can't take a result.

    >>> check_result(float32, int64)
    Traceback (most recent call last):
    ...
    RuntimeError: result type Float can't be cast to the desired output type Long
    """
    if not castable(result, out):
        raise RuntimeError(
            f"result type {result.scalar_name} can't be cast to the desired output "
            f"type {out.scalar_name}"
        )


def _dtype_arguments(
    function: str, names: tuple[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dtype, dtype]:
    """Two dtype arguments, checked with the texts of PyTorch's argument parser."""
    if len(args) > 2:
        raise TypeError(
            f"{function}() takes 2 positional arguments but {len(args)} were given"
        )
    missing = [n for n in names[len(args) :] if n not in kwargs]
    if missing:
        plural = "" if len(missing) > 1 else "s"
        listed = ", ".join(f'"{n}"' for n in missing)
        raise TypeError(
            f"{function}() missing {len(missing)} required positional "
            f"argument{plural}: {listed}"
        )
    found: list[dtype] = []
    for position, name in enumerate(names):
        positional = position < len(args)
        value = args[position] if positional else kwargs[name]
        d = as_dtype(value)
        if d is None:
            where = f" (position {position + 1})" if positional else ""
            raise TypeError(
                f"{function}(): argument '{name}'{where} must be torch.dtype, not "
                f"{type_name(value.__class__)}"
            )
        found.append(d)
    for name in kwargs:
        if name in names[len(args) :]:
            continue
        if name in names:
            raise TypeError(f"{function}() got multiple values for argument '{name}'")
        raise TypeError(f"{function}() got an unexpected keyword argument '{name}'")
    return found[0], found[1]


def promote_types(*args: Any, **kwargs: Any) -> dtype:
    """The smallest dtype that both `type1` and `type2` can be converted to.

    Raises RuntimeError where PyTorch has no common dtype. See
    https://docs.pytorch.org/docs/2.13/generated/torch.promote_types.html.

    >>> promote_types(dtypes.int32, float32)
    torch.float32
    """
    return promote(*_dtype_arguments("promote_types", ("type1", "type2"), args, kwargs))


def can_cast(*args: Any, **kwargs: Any) -> bool:
    """Whether promotion allows the cast from dtype `from_` to dtype `to`.

    See https://docs.pytorch.org/docs/2.13/generated/torch.can_cast.html.

    >>> can_cast(dtypes.float64, float32), can_cast(float32, dtypes.int32)
    (True, False)
    """
    return castable(*_dtype_arguments("can_cast", ("from_", "to"), args, kwargs))


def converted(array: Any, np_dtype: Any) -> Any:
    """An array in another dtype.

    XLA makes a selection of the product with a truth value in a floating type, which
    has no NaN in the place of NaN * 0 and no -0. in that of -1. * 0; by way of an
    integer type it does not.
    """
    if array.dtype == np_dtype:
        return array
    if array.dtype == np.bool_ and jnp.issubdtype(np_dtype, jnp.inexact):
        array = array.astype(np.uint8)
    return array.astype(np_dtype)


def within(array: Any, target: Any) -> Any:
    """What is left of an array (NumPy's or JAX's) for a conversion to another dtype.

    PyTorch takes what is beyond the largest ``float8_e4m3fn``, infinity too, for that,
    and drops the signs that ``float8_e8m0fnu`` has not.

    >>> within(np.float32([-1, 500]), np.dtype("float8_e4m3fn"))
    array([ -1., 448.], dtype=float32)
    """
    if target.name == "float8_e4m3fn":
        return array.clip(-448, 448)
    return abs(array) if target.name == "float8_e8m0fnu" else array


def cast(x: Any, np_dtype: Any) -> Any:
    """`x` in another dtype, where a value does not fit as C on x86 has it.

    A floating-point number out of range becomes the least int32 (int64), of which
    narrower types keep the low bits; complex numbers lose their imaginary part.
    """
    x, target = jnp.asarray(x), np.dtype(np_dtype)
    if x.dtype == target:
        return x
    if target == np.bool_:
        return x != 0
    if jnp.iscomplexobj(x) and target.kind != "c":
        x = x.real
    if target.kind in "iu" and jnp.issubdtype(x.dtype, jnp.floating):
        wide = np.int64 if target.itemsize == 8 or target == np.uint32 else np.int32
        if target == np.uint64:
            # From 2**63 on the conversion is unsigned.
            high = x >= 2.0**63
            low = _to_int(jnp.where(high, x - 2.0**63, x), np.int64)
            return low.astype(np.uint64) + (high.astype(np.uint64) << np.uint64(63))
        x = _to_int(x, wide)
    elif target.itemsize == 1 and target.kind not in "iu" and x.dtype != np.bool_:
        x = _within(x, target)
    return converted(x, target)


def note_lost_part(was: dtype, now: dtype) -> None:
    """Warns, once, where a cast from one dtype to another drops imaginary parts."""
    if was.is_complex and not now.is_complex and now is not bool_:
        warn_once(
            "Casting complex values to real discards the imaginary part (Triggered "
            "internally at /__w/pytorch/pytorch/aten/src/ATen/native/Copy.cpp:307.)"
        )


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _within(x: Any, target: Any) -> Any:
    return within(x, target)


@_within.defjvp
def _within_derivative(target: Any, primals: Any, tangents: Any) -> Any:
    # That of a conversion, whatever the values.
    return _within(*primals, target), tangents[0]


def _to_int(x: Any, wide: Any) -> Any:
    limit = 2.0 ** (8 * np.dtype(wide).itemsize - 1)
    if x.dtype.itemsize < 4:
        x = x.astype(jnp.float32)
    fits = (x >= -limit) & (x < limit)
    return jnp.where(fits, jnp.where(fits, x, 0).astype(wide), np.iinfo(wide).min)


def no_element(np_dtype: Any) -> str:
    """PyTorch's text for a number that cannot become an element of an array's dtype."""
    found = dtypes.from_array_dtype(np_dtype)
    integral = found.category == dtypes.INTEGER and found is not dtypes.int32
    name = f"{found.name}_t" if integral else found.cpp_name
    return f"value cannot be converted to type {name} without overflow"


def holds(kind: dtype, value: Any) -> bool:
    """Whether PyTorch converts a number to elements of a dtype: it is not too large.

    >>> holds(dtypes.uint8, 255), holds(dtypes.uint8, 256), holds(float32, 1e39)
    (True, False, False)
    """
    if kind.category == dtypes.INTEGER:
        if isinstance(value, float) and not math.isfinite(value):
            return False
        limits = np.iinfo(kind.np)
        # Negative integers of the same width wrap around.
        wraps = not (limits.min or isinstance(value, float))
        return bool((-limits.max if wraps else limits.min) <= value <= limits.max)
    if kind is dtypes.bool_ or kind.to_real().itemsize == 8:
        return True
    most = _largest(kind)
    return not any(most < abs(v) < math.inf for v in (value.real, value.imag))


@functools.cache
def _largest(kind: dtype) -> float:
    return float(dtypes.finfo(kind).max)


def real_number(value: Any, np_dtype: Any) -> Any:
    """A number for elements of a dtype: complex ones are refused where it is real."""
    if not isinstance(value, complex) or np.issubdtype(np_dtype, np.complexfloating):
        return value
    if np_dtype == np.bool_:
        return bool(value)
    if value.imag:
        raise RuntimeError(no_element(np_dtype))
    return value.real


def element(value: Any, np_dtype: Any) -> Any:
    """As `real_number`; what elements of a dtype cannot hold is refused, too."""
    value = real_number(value, np_dtype)
    if isinstance(value, (int, float)):
        if not holds(dtypes.from_array_dtype(np_dtype), value):
            raise RuntimeError(no_element(np_dtype))
    return value


def number(value: Any, np_dtype: Any, fits: bool = False) -> Any:
    """A Python number or runtime scalar as a 0-dim array of the given dtype.

    If it `fits`, one that is too large is refused; otherwise integers wrap around.
    """
    if isinstance(value, jax.Array):
        return value.astype(np_dtype)
    value = element(value, np_dtype) if fits else real_number(value, np_dtype)
    if (
        isinstance(value, int)
        and np.issubdtype(np_dtype, np.integer)
        and not isinstance(value, bool)
    ):
        # As C converts: modulo 2**bits.
        bits = np.dtype(np_dtype).itemsize * 8
        value = int(value) & ((1 << bits) - 1)
        if np.issubdtype(np_dtype, np.signedinteger) and value >> (bits - 1):
            value -= 1 << bits
    with np.errstate(over="ignore"):  # what is too large for half types is infinite
        return np.asarray(value, dtype=np_dtype)
