"""Element-wise operators, with NumPy's functions as references."""

from __future__ import annotations

import unittest
from collections.abc import Iterator
from typing import Any

import numpy as np

from torchshim.testing._internal import common_dtype as kinds
from torchshim.testing._internal._databases import DecorateInfo
from torchshim.testing._internal._op_samples import (
    generate_elementwise_binary_broadcasting_tensors,
    generate_elementwise_binary_tensors,
    generate_elementwise_unary_tensors,
)
from torchshim.testing._internal.opinfo.core import (
    BinaryUfuncInfo,
    UnaryUfuncInfo,
)
from torchshim.testing._internal.opinfo.utils import (
    np_unary_ufunc_integer_promotion_wrapper as in_float,
)

_HALVES = kinds._named("float16", "bfloat16")
_BOOL = kinds._named("bool")
#: Letters: f floating, c complex, i integral, b bool.
_DTYPES = {
    "f": kinds.floating_types() + _HALVES,
    "c": kinds.complex_types(),
    "i": kinds.integral_types(),
    "b": _BOOL,
}


def _dtypes(letters: str) -> tuple[Any, ...]:
    return tuple(d for letter in letters for d in _DTYPES[letter])


def _unary_samples(op: Any, device: Any, dtype: Any, grad: bool) -> Any:
    given = {"device": device, "dtype": dtype, "requires_grad": grad}
    return generate_elementwise_unary_tensors(op, **given)


def _binary_samples(op: Any, device: Any, dtype: Any, grad: bool) -> Any:
    given = {"device": device, "dtype": dtype, "requires_grad": grad}
    yield from generate_elementwise_binary_tensors(op, **given)
    yield from generate_elementwise_binary_broadcasting_tensors(op, **given)


_INT8 = kinds._named("int8")
#: Where NumPy's functions and PyTorch's differ: kinds of tests, dtypes, operators.
_DIFFERENT: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("normal", _DTYPES["c"], "asinh"),
    ("small", _DTYPES["c"], "asinh atanh"),
    ("large", _DTYPES["c"], "acosh asinh atanh square"),
    ("large", kinds._named("complex128"), "cosh exp2 sinh"),
    ("large", _INT8, "cosh sinh"),
    ("extremal", _DTYPES["c"], "acosh asinh atanh log2 reciprocal"),
    ("extremal", _DTYPES["f"], "frac sgn sign"),
)


def _skips(name: str) -> Iterator[DecorateInfo]:
    for kind, dtypes, names in _DIFFERENT:
        if name in names.split():
            yield DecorateInfo(
                unittest.skip("Skipped!"),
                "TestUnaryUfuncs",
                f"test_reference_numerics_{kind}",
                dtypes=dtypes,
            )


def _unary(name: str, ref: Any, letters: str, **known: Any) -> UnaryUfuncInfo:
    return UnaryUfuncInfo(
        name,
        ref=ref,
        dtypes=_dtypes(letters),
        sample_inputs_func=_unary_samples,
        skips=tuple(_skips(name)),
        **known,
    )


def _floating(name: str, ref: Any, letters: str = "fcib", **known: Any) -> Any:
    return _unary(name, in_float(ref), letters, promotes_int_to_float=True, **known)


def _plain(name: str, ref: Any, letters: str, **known: Any) -> Any:
    return _unary(name, ref, letters, supports_autograd=False, **known)


def _sign(x: Any) -> Any:
    """The sign: NumPy has none of bools, and another one of complex numbers."""
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind != "c":
        return np.sign(x)
    return np.where(x == 0, x, x / np.where(x == 0, 1, np.abs(x))).astype(x.dtype)


_QUESTION: dict[str, Any] = {"supports_out": False, "supports_inplace": False}

unary_ufuncs: list[UnaryUfuncInfo] = [
    _unary("abs", np.abs, "fci", supports_complex_to_float=True),
    _floating("acos", np.arccos, domain=(-1, 1)),
    _floating("acosh", np.arccosh, domain=(1, None)),
    _floating("asin", np.arcsin, domain=(-1, 1)),
    _floating("asinh", np.arcsinh),
    _floating("atan", np.arctan),
    _floating("atanh", np.arctanh, domain=(-1, 1)),
    _plain("bitwise_not", np.bitwise_not, "ib"),
    _unary("ceil", np.ceil, "fi"),
    _floating("cos", np.cos),
    _floating("cosh", np.cosh),
    _floating("deg2rad", np.radians, "fib"),
    _floating("exp", np.exp),
    _floating("exp2", np.exp2),
    _floating("expm1", np.expm1),
    _unary("floor", np.floor, "fi"),
    _unary("frac", lambda x: np.modf(x)[0], "f"),
    _plain("isfinite", np.isfinite, "fcib", **_QUESTION),
    _plain("isinf", np.isinf, "fcib", **_QUESTION),
    _plain("isnan", np.isnan, "fcib", **_QUESTION),
    _plain("isneginf", np.isneginf, "fib", supports_inplace=False),
    _plain("isposinf", np.isposinf, "fib", supports_inplace=False),
    _floating("log", np.log, domain=(0, None)),
    _floating("log10", np.log10, domain=(0, None)),
    _floating("log1p", np.log1p, domain=(-1, None)),
    _floating("log2", np.log2, domain=(0, None)),
    _plain("logical_not", np.logical_not, "fcib"),
    _unary("neg", np.negative, "fci"),
    _unary("positive", np.positive, "fci", **_QUESTION),
    _floating("rad2deg", np.degrees, "fib"),
    _floating("reciprocal", np.reciprocal),
    _unary("round", np.round, "fi"),
    _floating("rsqrt", lambda x: 1 / np.sqrt(x), domain=(0, None)),
    _unary("sgn", _sign, "fcib"),
    _floating("sigmoid", lambda x: 1 / (1 + np.exp(-x)), "fib"),
    _unary("sign", _sign, "fib"),
    _plain("signbit", np.signbit, "fib", supports_inplace=False),
    _floating("sin", np.sin),
    _floating("sinc", np.sinc),
    _floating("sinh", np.sinh),
    _floating("sqrt", np.sqrt, domain=(0, None)),
    _unary("square", np.square, "fcib"),
    _floating("tan", np.tan),
    _floating("tanh", np.tanh),
    _unary("trunc", np.trunc, "fi"),
]


def _binary(name: str, ref: Any, letters: str, **known: Any) -> BinaryUfuncInfo:
    return BinaryUfuncInfo(
        name,
        ref=ref,
        dtypes=_dtypes(letters),
        sample_inputs_func=_binary_samples,
        **known,
    )


_NO_ZERO: dict[str, Any] = {"rhs_make_tensor_kwargs": {"exclude_zero": True}}
_TENSORS: dict[str, Any] = {"supports_rhs_python_scalar": False}
_ONE_NUMBER: dict[str, Any] = {"supports_one_python_scalar": True}
_BITS: dict[str, Any] = {"supports_autograd": False, **_ONE_NUMBER}
_TWO_NUMBERS: dict[str, Any] = {"supports_two_python_scalars": True, **_ONE_NUMBER}
_FLOOR: dict[str, Any] = {"supports_autograd": False, **_NO_ZERO, **_TWO_NUMBERS}


def _heaviside(x: Any, y: Any) -> Any:
    # NumPy's has floats only, and 0 at NaN.
    return np.where(x == 0, y, np.where(x > 0, 1, 0)).astype(x.dtype)


def _comparison(name: str, ref: Any, letters: str, **known: Any) -> BinaryUfuncInfo:
    known |= {"always_returns_bool": True, "supports_autograd": False}
    return _binary(name, ref, letters, **known)


binary_ufuncs: list[BinaryUfuncInfo] = [
    _binary("add", np.add, "fcib", **_TWO_NUMBERS),
    _binary("atan2", np.arctan2, "fib", promotes_int_to_float=True, **_TENSORS),
    _binary("bitwise_and", np.bitwise_and, "ib", **_BITS),
    _binary("bitwise_or", np.bitwise_or, "ib", **_BITS),
    _binary("bitwise_xor", np.bitwise_xor, "ib", **_BITS),
    _binary("copysign", np.copysign, "fib", promotes_int_to_float=True),
    _binary("div", np.true_divide, "fcib", promotes_int_to_float=True, **_NO_ZERO),
    _comparison("eq", np.equal, "fcib"),
    _binary("floor_divide", np.floor_divide, "fi", **_FLOOR),
    _binary("fmax", np.fmax, "fib", **_TENSORS),
    _binary("fmin", np.fmin, "fib", **_TENSORS),
    _binary("fmod", np.fmod, "fi", **_NO_ZERO),
    _binary("gcd", np.gcd, "i", supports_autograd=False, **_TENSORS),
    _comparison("ge", np.greater_equal, "fib"),
    _comparison("gt", np.greater, "fib"),
    _binary("heaviside", _heaviside, "fib", supports_autograd=False, **_TENSORS),
    _binary("hypot", np.hypot, "f", **_TENSORS),
    _binary("lcm", np.lcm, "i", supports_autograd=False, **_TENSORS),
    _comparison("le", np.less_equal, "fib"),
    _binary("logaddexp", np.logaddexp, "f", **_TENSORS),
    _binary("logaddexp2", np.logaddexp2, "f", **_TENSORS),
    _comparison("logical_and", np.logical_and, "fcib", **_TENSORS),
    _comparison("logical_or", np.logical_or, "fcib", **_TENSORS),
    _comparison("logical_xor", np.logical_xor, "fcib", **_TENSORS),
    _comparison("lt", np.less, "fib"),
    _binary("maximum", np.maximum, "fib", **_TENSORS),
    _binary("minimum", np.minimum, "fib", **_TENSORS),
    _binary("mul", np.multiply, "fcib", **_TWO_NUMBERS),
    _comparison("ne", np.not_equal, "fcib"),
    _binary("nextafter", np.nextafter, "f", supports_autograd=False, **_TENSORS),
    _binary("remainder", np.remainder, "fi", **_NO_ZERO, **_ONE_NUMBER),
    _binary("sub", np.subtract, "fci", **_TWO_NUMBERS),
]
