"""Comparisons, bounds, choices and tests, element by element."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from torchshim._core import dtypes
from torchshim._core.op import POSITIVE, Array, Operand, op
from torchshim._core.promotion import (
    ALWAYS_BOOL,
    NO_OPMATH,
    note_lost_part,
    real_number,
    scalar_dtype,
)
from torchshim._errors import triggered, warn_once
from torchshim._ops._common import (
    COMPLEX,
    broadcast_shapes,
    category,
    is_complex,
    is_integral,
    is_known,
    is_tensor,
    refuse,
    scalar_name,
)


def check_truth(input: Any, other: Any) -> None:
    """Truth values in place: PyTorch has them in the dtype of both on the way."""
    if isinstance(other, complex) or is_tensor(other):
        note_lost_part(getattr(other, "dtype", dtypes.complex128), input.dtype)


# Comparisons --------------------------------------------------------------------------


def _comparison(name: str) -> dict[str, Any]:
    """Fields of a comparison, whose result in place has a gradient: zero."""

    def node(input: Any, other: Any) -> str:
        return f"{name}Backward{int(is_tensor(other))}"

    tracked = {
        "differentiable": True,
        "grad_fn": node,
        "saves": (),
        "curved": False,
        "typecheck": check_truth if name in ("Eq", "Ne") else None,
    }
    return {"promote": ALWAYS_BOOL, "differentiable": False, "inplace": tracked}


@op(**_comparison("Eq"))
def eq(input: Array, other: Operand) -> Array:
    """`input == other`, broadcast."""
    return input == other


@op(**_comparison("Ne"), aliases=("not_equal",))
def ne(input: Array, other: Operand) -> Array:
    """`input != other`, broadcast."""
    return input != other


@op(**_comparison("Lt"), aliases=("less",))
def lt(input: Array, other: Operand) -> Array:
    """`input < other`, broadcast."""
    refuse("lt_cpu", input, COMPLEX)
    return input < other


@op(**_comparison("Le"), aliases=("less_equal",))
def le(input: Array, other: Operand) -> Array:
    """`input <= other`, broadcast."""
    refuse("le_cpu", input, COMPLEX)
    return input <= other


@op(**_comparison("Gt"), aliases=("greater",))
def gt(input: Array, other: Operand) -> Array:
    """`input > other`, broadcast."""
    refuse("gt_cpu", input, COMPLEX)
    return input > other


@op(**_comparison("Ge"), aliases=("greater_equal",))
def ge(input: Array, other: Operand) -> Array:
    """`input >= other`, broadcast."""
    refuse("ge_cpu", input, COMPLEX)
    return input >= other


def _check_close(
    input: Any, other: Any, rtol: float, atol: float, equal_nan: bool
) -> None:
    if input.dtype is not other.dtype:
        raise RuntimeError(
            f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}"
        )
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(
                f"{name} must be greater than or equal to zero, but got {value:g}"
            )


_TOLERANCES = {"rtol": POSITIVE, "atol": POSITIVE}


@op(
    promote=ALWAYS_BOOL,
    differentiable=False,
    out=False,
    typecheck=_check_close,
    varies=_TOLERANCES,
)
def isclose(
    input: Array,
    other: Array,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether elements are within `atol + rtol * abs(other)` of each other."""
    close = input == other
    if equal_nan and not is_integral(input):
        close |= jnp.isnan(input) & jnp.isnan(other)
    if is_known(rtol, atol) and rtol == 0 and atol == 0:
        return close
    if is_integral(input):
        floating = dtypes.get_default_dtype().np
        input, other = input.astype(floating), other.astype(floating)
    distance = jnp.abs(input - other)
    allowed = atol + jnp.abs(rtol * other)
    return close | (jnp.isfinite(distance) & (distance <= allowed))


@op(
    name="equal.values",
    namespaces=(),
    method=False,
    promote=ALWAYS_BOOL,
    differentiable=False,
    out=False,
    layout=lambda shape, operands: (),
)
def all_equal(input: Array, other: Array) -> Array:
    """Whether all elements are equal, as one value."""
    return jnp.all(input == other)


@op(
    name="allclose.values",
    namespaces=(),
    method=False,
    differentiable=False,
    out=False,
    typecheck=_check_close,
    varies=_TOLERANCES,
)
def all_close(
    input: Array, other: Array, rtol: float, atol: float, equal_nan: bool
) -> Array:
    """Whether all elements are close, as one value."""
    broadcast_shapes(input.shape, other.shape)
    return jnp.all(isclose(input, other, rtol, atol, equal_nan))


# Tests --------------------------------------------------------------------------------

_tests = {"promote": ALWAYS_BOOL, "differentiable": False, "out": False}


@op(**_tests)
def isnan(input: Array) -> Array:
    """Whether an element is NaN."""
    return jnp.isnan(input) if not is_integral(input) else _none(input)


@op(**_tests)
def isinf(input: Array) -> Array:
    """Whether an element is infinite."""
    return jnp.isinf(input) if not is_integral(input) else _none(input)


@op(**_tests)
def isfinite(input: Array) -> Array:
    """Whether an element is neither infinite nor NaN."""
    return jnp.isfinite(input) if not is_integral(input) else ~_none(input)


@op(**_tests)
def isreal(input: Array) -> Array:
    """Whether an element has no imaginary part."""
    return input.imag == 0 if is_complex(input) else ~_none(input)


def _none(input: Array) -> Array:
    return jnp.zeros(input.shape, bool)


def _check_infinity(name: str) -> Any:
    def check(input: Any) -> None:
        if category(input) == dtypes.COMPLEX:
            raise RuntimeError(f"{name} does not support complex inputs.")

    return check


@op(
    promote=ALWAYS_BOOL,
    differentiable=False,
    typecheck=_check_infinity("isposinf"),
    out="isposinf does not support non-boolean outputs.",
)
def isposinf(input: Array) -> Array:
    """Whether an element is positive infinity."""
    return input == jnp.inf if not is_integral(input) else _none(input)


@op(
    promote=ALWAYS_BOOL,
    differentiable=False,
    typecheck=_check_infinity("isneginf"),
    out="isneginf does not support non-boolean outputs.",
)
def isneginf(input: Array) -> Array:
    """Whether an element is negative infinity."""
    return input == -jnp.inf if not is_integral(input) else _none(input)


# The larger and the smaller -----------------------------------------------------------


def check_ordered(name: str) -> Any:
    """Refuses complex operands."""

    def check(input: Any, other: Any) -> None:
        if dtypes.COMPLEX in (category(input), category(other)):
            raise RuntimeError(f"{name} not implemented for complex tensors.")

    return check


def _extreme(choose: Any, parts: Any) -> Any:
    """A choice between two operands with PyTorch's gradients at ties and NaN."""
    chosen = jax.custom_jvp(choose)

    def jvp(primals: Any, tangents: Any) -> Any:
        from_a, from_b = parts(*primals, *tangents)
        return chosen(*primals), from_a + from_b

    chosen.defjvp(jvp)
    return chosen


def _shared(first: Any, second: Any) -> Any:
    """Ties share the gradient; NaN gives it to both."""

    def parts(a: Array, b: Array, da: Array, db: Array) -> Any:
        tie = a == b
        return (
            jnp.where(first(a, b), 0, jnp.where(tie, da / 2, da)),
            jnp.where(second(a, b), 0, jnp.where(tie, db / 2, db)),
        )

    return parts


def _first_wins(wins: Any) -> Any:
    """Ties give the gradient to the first operand, NaN to the other one."""

    def parts(a: Array, b: Array, da: Array, db: Array) -> Any:
        to_a = wins(a, b) | jnp.isnan(b)
        return jnp.where(to_a, da, 0), jnp.where(to_a, 0, db)

    return parts


_maximum = _extreme(jnp.maximum, _shared(jnp.less, jnp.greater))
_minimum = _extreme(jnp.minimum, _shared(jnp.greater, jnp.less))
_fmax = _extreme(jnp.fmax, _first_wins(jnp.greater_equal))
_fmin = _extreme(jnp.fmin, _first_wins(jnp.less_equal))


@op(
    promote=NO_OPMATH,
    grad_fn="MaximumBackward0",
    saves=("input", "other"),
    typecheck=check_ordered("maximum"),
    curved=False,
)
def maximum(input: Array, other: Array) -> Array:
    """The larger of two elements; NaN where one is NaN."""
    return _maximum(input, other)


@op(
    promote=NO_OPMATH,
    grad_fn="MinimumBackward0",
    saves=("input", "other"),
    typecheck=check_ordered("minimum"),
    curved=False,
)
def minimum(input: Array, other: Array) -> Array:
    """The smaller of two elements; NaN where one is NaN."""
    return _minimum(input, other)


@op(
    promote=NO_OPMATH,
    grad_fn="FmaxBackward0",
    saves=("input", "other"),
    typecheck=check_ordered("fmax"),
    curved=False,
)
def fmax(input: Array, other: Array) -> Array:
    """The larger of two elements; the other one where one is NaN."""
    return _fmax(input, other) if not is_integral(input) else _maximum(input, other)


@op(
    promote=NO_OPMATH,
    grad_fn="FminBackward0",
    saves=("input", "other"),
    typecheck=check_ordered("fmin"),
    curved=False,
)
def fmin(input: Array, other: Array) -> Array:
    """The smaller of two elements; the other one where one is NaN."""
    return _fmin(input, other) if not is_integral(input) else _minimum(input, other)


# Bounds -------------------------------------------------------------------------------


def _clamp_node(name: str, tensor: int) -> Any:
    def node(input: Any, *bounds: Any) -> str:
        given = any(is_tensor(b) for b in bounds)
        return f"{name}Backward{tensor if given else 1 - tensor}"

    return node


def _check_clamp(input: Any, min: Any, max: Any) -> None:
    if min is None and max is None:
        raise RuntimeError(
            "torch.clamp: At least one of 'min' or 'max' must not be None"
        )
    if input.dtype.is_floating_point:
        for bound in (min, max):
            real_number(bound, np.dtype(np.float64))
    _check_bound("clamp")(input, min, max)
    if max is None:
        _refuse_truths("_min", input, min)
    elif min is None:
        _refuse_truths("_max", input, max)
    else:
        _refuse_truths("", input, min, max)


def _refuse_truths(form: str, input: Any, *bounds: Any) -> None:
    if any(category(each) != dtypes.BOOL for each in (input, *bounds)):
        return
    if any(is_tensor(bound) for bound in bounds):
        if form:
            return
    else:
        form += "_scalar"
    raise NotImplementedError(f"\"clamp{form}_cpu\" not implemented for 'Bool'")


def _check_bound(name: str, form: str = "") -> Any:
    def check(input: Any, *bounds: Any) -> None:
        if form:
            _refuse_truths(form, input, *bounds)
        # The kernels refuse complex tensors as bounds, when shapes and dtypes fit.
        told = [b for b in bounds if b is not None and not is_tensor(b)]
        if not form or len(told) == len(bounds):
            told.append(input)
        if any(category(v) == dtypes.COMPLEX for v in told):
            raise NotImplementedError(f"{name} is not supported for complex types")

    return check


def _refuse_complex(kernel: str, input: Array) -> None:
    if jnp.iscomplexobj(input):
        raise NotImplementedError(
            f"\"{kernel}_cpu\" not implemented for '{scalar_name(input)}'"
        )


def _raised(x: Array, low: Array) -> Array:
    """The greater of two; the first where they are equal, as zeros have signs."""
    return jnp.where((x >= low) | (x != x), x, low)


def _lowered(x: Array, high: Array) -> Array:
    return jnp.where((x <= high) | (x != x), x, high)


@jax.custom_jvp
def _clamp_below(x: Array, low: Array) -> Array:
    return _raised(x, low)


@_clamp_below.defjvp
def _clamp_below_jvp(primals: Any, tangents: Any) -> Any:
    # At the bound the whole gradient goes to the input; JAX's is halved.
    (x, low), (dx, dlow) = primals, tangents
    return _clamp_below(x, low), _where(x >= low, dx) + _where(x < low, dlow)


@jax.custom_jvp
def _clamp_above(x: Array, high: Array) -> Array:
    return _lowered(x, high)


@_clamp_above.defjvp
def _clamp_above_jvp(primals: Any, tangents: Any) -> Any:
    # As for the lower bound.
    (x, high), (dx, dhigh) = primals, tangents
    return _clamp_above(x, high), _where(x <= high, dx) + _where(x > high, dhigh)


@jax.custom_jvp
def _clamp_both(x: Array, low: Array, high: Array) -> Array:
    return _lowered(_raised(x, low), high)


@_clamp_both.defjvp
def _clamp_both_jvp(primals: Any, tangents: Any) -> Any:
    # As for one bound; where the bounds cross, the upper one is what counts.
    (x, low, high), (dx, dlow, dhigh) = primals, tangents
    out = (
        _where((x >= low) & (x <= high), dx)
        + _where((low < high) & (x < low), dlow)
        + _where((x > high) | (high < low), dhigh)
    )
    return _clamp_both(x, low, high), out


def _where(mask: Array, value: Array) -> Array:
    return jnp.where(mask, value, jnp.zeros((), value.dtype))


def _clamp_in_place(input: Any, *bounds: Any) -> None:
    """With numbers as bounds PyTorch names the dtype as C++ does."""
    given = [b for b in bounds if b is not None]
    if not given or any(is_tensor(b) for b in given):
        return
    result = scalar_dtype(max(given, key=category), dtypes.get_default_dtype())
    if input.dtype.category < result.category < dtypes.COMPLEX:
        raise RuntimeError(
            f"result type {result.scalar_name} can't be cast to the desired output "
            f"type {input.dtype.cpp_name}"
        )


def _out_of_clamp(input: Any, *bounds: Any) -> bool | str:
    """With numbers as bounds an `out=` of another dtype is refused."""
    return True if any(hasattr(b, "shape") for b in bounds) else "same"


@op(
    promote=NO_OPMATH,
    grad_fn=_clamp_node("Clamp", 0),
    saves={
        "input": ("input", "min", "max"),
        "min": ("input", "min", "max"),
        "max": ("input", "min", "max"),
    },
    inplace=True,
    inplace_check=_clamp_in_place,
    aliases=("clip",),
    typecheck=_check_clamp,
    curved=False,
    fits=("min", "max"),
    out=_out_of_clamp,
)
def clamp(
    input: Array, min: Operand | None = None, max: Operand | None = None
) -> Array:
    """Elements moved to the nearest value between `min` and `max`."""
    _refuse_complex(
        "minimum" if min is None else "maximum" if max is None else "clamp", input
    )
    if min is None:
        return _clamp_above(input, max)
    if max is None:
        return _clamp_below(input, min)
    return _clamp_both(input, min, max)


@op(
    promote=NO_OPMATH,
    grad_fn=_clamp_node("ClampMin", 1),
    saves=("input", "min"),
    inplace=True,
    inplace_check=_clamp_in_place,
    typecheck=_check_bound("clamp", "_min"),
    curved=False,
    fits=("min",),
    out=_out_of_clamp,
)
def clamp_min(input: Array, min: Operand) -> Array:
    """Elements of at least `min`."""
    _refuse_complex("maximum", input)
    return _clamp_below(input, min)


@op(
    promote=NO_OPMATH,
    grad_fn=_clamp_node("ClampMax", 1),
    saves=("input", "max"),
    inplace=True,
    inplace_check=_clamp_in_place,
    typecheck=_check_bound("clamp", "_max"),
    curved=False,
    fits=("max",),
    out=_out_of_clamp,
)
def clamp_max(input: Array, max: Operand) -> Array:
    """Elements of at most `max`."""
    _refuse_complex("minimum", input)
    return _clamp_above(input, max)


# Choices ------------------------------------------------------------------------------

_BYTES = triggered(
    "where received a uint8 condition tensor. This behavior is deprecated and will be "
    "removed in a future version of PyTorch. Use a boolean condition instead.",
    "aten/src/ATen/native/TensorCompare.cpp:621",
)


def _check_condition(condition: Any, input: Any, other: Any) -> None:
    if condition.dtype is dtypes.uint8:
        warn_once(_BYTES)
    elif condition.dtype is not dtypes.bool_:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with "
            f"dtype {condition.dtype.scalar_name}"
        )


@op(
    promote=NO_OPMATH,
    operands=("input", "other"),
    grad_fn="WhereBackward0",
    differentiable=("input", "other"),
    saves=("condition",),
    method=False,
    typecheck=_check_condition,
    fits=("input", "other"),
    out=("Expected out type to be {want.scalar_name} but got {have.scalar_name}"),
)
def where(condition: Array, input: Operand, other: Operand) -> Array:
    """`input` where the condition holds, else `other`, broadcast."""
    return jnp.where(condition.astype(bool), input, other)
