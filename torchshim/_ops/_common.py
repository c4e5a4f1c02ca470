"""What several files of operators share: refusals and PyTorch's naming of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from torchshim._core import dtypes
from torchshim._core.layout import channels_last, channels_last_3d, format_strides
from torchshim._core.meta import Meta, broadcast_shape
from torchshim._core.op import Array
from torchshim._core.placement import platform
from torchshim._core.promotion import (
    DIMENSIONED,
    INT_TO_FLOAT,
    SCALAR,
    ZERO_DIM,
    resolve,
    scalar_dtype,
)
from torchshim._core.record import local

BOOL, INT, FLOAT, COMPLEX = "b", "iu", "f", "c"

HALF = (jnp.float16, jnp.bfloat16)


def kind(x: Any) -> str:
    """The letter of an array's kind: b, i, u, f, c."""
    found = np.dtype(x.dtype).kind
    return "f" if found == "V" else found  # the small float types of ml_dtypes


def is_known(*numbers: Any) -> bool:
    """Whether the values of numbers are known: none is a runtime scalar."""
    return not any(isinstance(number, jax.Array) for number in numbers)


def is_integral(x: Any) -> bool:
    return kind(x) in BOOL + INT


def is_complex(x: Any) -> bool:
    return kind(x) == COMPLEX


def scalar_name(x: Any) -> str:
    """PyTorch's C++ name of an array's dtype: Float, Long, …"""
    return dtypes.from_array_dtype(x.dtype).scalar_name


def refuse(kernel: str, x: Any, kinds: str) -> None:
    """Raises PyTorch's error for dtypes that a CPU kernel does not cover."""
    if kind(x) in kinds:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{scalar_name(x)}'"
        )


def no_half_result(kernel: str) -> Callable[..., None]:
    """A `typecheck` of floating-point operands whose common dtype may be no half."""

    def check(*operands: Any) -> None:
        known = [x for x in operands if isinstance(x, Meta)]
        kinds = [
            (x.dtype, DIMENSIONED if x.shape else ZERO_DIM)
            if isinstance(x, Meta)
            else (scalar_dtype(x), SCALAR)
            for x in operands
        ]
        found = resolve(INT_TO_FLOAT, kinds)[1]
        if known and found in (dtypes.float16, dtypes.bfloat16):
            raise NotImplementedError(
                f"\"{kernel}\" not implemented for '{found.scalar_name}'"
            )

    return check


def refuse_half(kernel: str, x: Any) -> None:
    """Raises PyTorch's error of a kernel that knows half types on accelerators only."""
    small = x.dtype in HALF
    if small and platform() == "cpu":
        refuse(kernel, x, FLOAT)


def widened(x: Any) -> Any:
    """Half types as float32, which PyTorch computes them in, too."""
    return x.astype(jnp.float32) if x.dtype in HALF else x


# Up to this size the time of a wider computation is not noticed.
_SMALL = 4096


def rounded(fn: Callable[..., Any], *xs: Any) -> Any:
    """`fn(*xs)`; small float32 arrays through float64 on the CPU.

    XLA's float32 approximations are several units in the last place off there, which
    shows in what scripts print. PyTorch's are rounded right nearly always.
    """
    single = all(x.dtype == np.float32 and x.size <= _SMALL for x in xs)
    if single and platform() == "cpu":
        return fn(*(x.astype(np.float64) for x in xs)).astype(np.float32)
    return fn(*xs)


def quotient(a: Any, b: Any) -> Any:
    """`a / b`, broadcast, and on the CPU rounded once as PyTorch's.

    XLA takes a division by what is constant or broadcast for a product with the
    reciprocal, and several divisions for one (41 / 41 is no 1 then). It does not where
    it sees nothing of the operands; on the CPU it fuses behind the barrier all the
    same. Elsewhere it may not, and PyTorch multiplies by reciprocals, too.
    """
    dtype, shape = jnp.result_type(a, b), jnp.broadcast_shapes(*map(jnp.shape, (a, b)))
    return _quotient(*(jnp.broadcast_to(jnp.asarray(x, dtype), shape) for x in (a, b)))


@jax.custom_jvp
def _quotient(a: Array, b: Array) -> Array:
    if platform() != "cpu":
        return jnp.true_divide(a, b)
    return jax.lax.optimization_barrier(a) / jax.lax.optimization_barrier(b)


def _quotient_jvp(primals: Any, tangents: Any) -> Any:
    # As PyTorch's: no square of the divisor, which may be infinite, or 0. XLA would
    # make one of two quotients that it sees.
    (a, b), (da, db) = primals, tangents
    value = _quotient(a, b)
    if isinstance(db, SymbolicZero):
        return value, jax.lax.div(da, b)
    by_b = jax.lax.mul(db, jax.lax.div(jax.lax.optimization_barrier(value), b))
    if isinstance(da, SymbolicZero):
        return value, jax.lax.neg(by_b)
    return value, jax.lax.sub(jax.lax.div(da, b), by_b)


_quotient.defjvp(_quotient_jvp, symbolic_zeros=True)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape of several, or PyTorch's error."""
    return broadcast_shape([tuple(shape) for shape in shapes])


def is_tensor(value: Any) -> bool:
    """Whether an argument of `grad_fn=` or `typecheck=` is a tensor (its meta)."""
    return isinstance(value, Meta)


def needs_tensor(name: str, second: str = "other", out: bool = True) -> Any:
    """A `typecheck=` that refuses two numbers; `out`: if (Number, Tensor) takes it."""

    def check(a: Any, b: Any, *rest: Any) -> None:
        if is_tensor(a) or is_tensor(b):
            return
        kinds = type(a).__name__, type(b).__name__
        wrong = (
            ", *, Tensor out = None)"
            if out
            else ")\n      didn't match because some of the arguments have invalid "
            f"types: (!{kinds[0]}!, !{kinds[1]}!)"
        )
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got "
            f"({', '.join(kinds)}), but expected one of:\n"
            f" * (Tensor input, Tensor {second}, *, Tensor out = None)\n"
            f" * (Number self, Tensor {second}{wrong}\n"
            f" * (Tensor input, Number {second}, *, Tensor out = None)\n"
        )

    return check


def wants_grad(value: Any) -> bool:
    """Whether an argument of `typecheck=` is a tensor whose gradient is recorded."""
    return isinstance(value, Meta) and value.requires_grad and local.rec.grad


def check_fixed(kernel: str, **given: Any) -> None:
    """For `typecheck=`: raises for tensors that no gradient is recorded of.

    PyTorch has no formula for them, and refuses those that require grad.
    """
    for name, value in given.items():
        if wants_grad(value):
            raise RuntimeError(
                f"The function '{kernel}' is not differentiable with respect to "
                f"argument '{name}'. This input cannot have requires_grad True."
            )


def no_floats(metas: Sequence[Meta]) -> bool:
    """For `checks_for=`: where all tensors are integers or truth values."""
    return all(m.dtype.category < dtypes.FLOATING for m in metas)


def category(value: Any) -> int:
    """The category of a tensor (its meta) or a Python number in promotion."""
    if isinstance(value, Meta):
        return value.dtype.category
    if isinstance(value, bool):
        return dtypes.BOOL
    if isinstance(value, int):
        return dtypes.INTEGER
    return dtypes.COMPLEX if isinstance(value, complex) else dtypes.FLOATING


def by_second(name: str, tensor: int, scalar: int) -> Callable[..., str]:
    """A node name whose number tells whether the second operand is a tensor."""

    def node(input: Any, other: Any, *_: Any) -> str:
        return f"{name}Backward{tensor if is_tensor(other) else scalar}"

    return node


def without_derivative(name: str) -> Callable[[Any], Any]:
    """For a function that PyTorch cannot differentiate: backward says so."""

    def wrap(fn: Any) -> Any:
        wrapped = jax.custom_jvp(fn)

        def refused(primals: Any, tangents: Any) -> Any:
            raise RuntimeError(f"derivative for {name} is not implemented")

        wrapped.defjvp(refused)
        return wrapped

    return wrap


def zero(x: Any) -> Any:
    """A zero of the dtype of `x`, to broadcast."""
    return jnp.zeros((), x.dtype)


def channels_last_layout(shape: Any, operands: Any) -> tuple[int, ...]:
    """Strides of images or volumes whose channels are innermost: `layout=` of `op`."""
    wanted = channels_last if len(shape) == 4 else channels_last_3d
    return format_strides(tuple(shape), wanted)


def real_only(fn: Any, kernel: str) -> Any:
    """A function of one operand, as one that refuses complex numbers."""

    def checked(input: Array) -> Array:
        refuse(kernel, input, COMPLEX)
        return fn(input)

    checked.__name__, checked.__doc__ = fn.__name__, fn.__doc__
    checked.__module__ = fn.__module__
    return checked
