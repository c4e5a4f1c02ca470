"""Element-wise functions that return what is no result of one operator."""

from __future__ import annotations

from typing import Any

from torchshim._bind import type_name
from torchshim._core import dtypes
from torchshim._core.promotion import scalar_dtype
from torchshim._core.storage import TensorBase
from torchshim._derived import fns, public
from torchshim._functions._arguments import tensor_argument
from torchshim._functions.data_dependent import refuse_examples, refuse_rule
from torchshim._functions.memory import write_into
from torchshim._tensor import Tensor


def _tensor(function: str, name: str, position: int, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(
            f"{function}(): argument '{name}' (position {position}) must be Tensor, "
            f"not {type_name(value)}"
        )


def _dtype(value: Any) -> dtypes.dtype:
    """The dtype of a tensor or a number."""
    return value._tmeta.dtype if isinstance(value, TensorBase) else scalar_dtype(value)


# Signs -----------------------------------------------------------------------------


@public(namespaces=(), method="absolute_")
@public(method=True)
def abs_(input: Tensor) -> Tensor:
    """`abs` in place. RuntimeError for complex numbers, whose moduli are real.

    >>> import torchshim as torch
    >>> torch.tensor([-1, 2]).abs_()
    tensor([1, 2])
    """
    _tensor("abs_", "input", 1, input)
    if input._tmeta.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return fns.abs_(input)


@public(method=True)
def positive(input: Tensor) -> Tensor:
    """`input` itself. RuntimeError if it is a bool tensor.

    https://docs.pytorch.org/docs/2.13/generated/torch.positive.html

    >>> import torchshim as torch
    >>> torch.positive(torch.tensor([1.0]))
    tensor([1.])
    """
    _tensor("positive", "input", 1, input)
    if input._tmeta.dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = positive

# Comparisons of whole tensors ---------------------------------------------------------


@public(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.equal.html

    >>> import torchshim as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    _tensor("equal", "input", 1, input)
    _tensor("equal", "other", 2, other)
    refuse_rule("equal", input, other)
    if tuple(input._tmeta.shape) != tuple(other._tmeta.shape):
        return False
    return bool(getattr(fns, "equal.values")(input, other).item())


@public(method=True)
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Whether all elements lie within `atol + rtol * abs(other)` of each other.

    https://docs.pytorch.org/docs/2.13/generated/torch.allclose.html

    >>> import torchshim as torch
    >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7]))
    True
    """
    _tensor("allclose", "input", 1, input)
    _tensor("allclose", "other", 2, other)
    if input._tmeta.batch or other._tmeta.batch:
        raise RuntimeError(
            "vmap over torch.allclose isn't supported yet. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    values = getattr(fns, "allclose.values")
    return bool(values(input, other, rtol, atol, equal_nan).item())


# Choices and powers -------------------------------------------------------------------


@public
def where(
    condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None
) -> Any:
    """`input` where the condition holds, else `other`, broadcast.

    With the condition alone: the indices where it holds, one tensor a dimension.
    https://docs.pytorch.org/docs/2.13/generated/torch.where.html

    >>> import torchshim as torch
    >>> torch.where(torch.tensor([True, False]), 1.0, 2.0)
    tensor([1., 2.])
    """
    if input is None and other is None and out is None:
        _tensor("where", "condition", 1, condition)
        refuse_examples("where", condition)
        return condition.nonzero(as_tuple=True)
    return fns.where(condition, input, other, out=out)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Any:
    """As `torch.where(condition, self, other)`.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.where.html

    >>> import torchshim as torch
    >>> x = torch.tensor([-1.0, 2.0])
    >>> x.where(x > 0, 0.0)
    tensor([0., 2.])
    """
    return fns.where(condition, self, other)


_where_method.__name__ = "where"
Tensor.where = _where_method


def _power_operands(input: Any, exponent: Any) -> tuple[Any, Any, dtypes.dtype]:
    """Both operands in the dtype that `float_power` computes in."""
    if not isinstance(input, TensorBase) and not isinstance(exponent, TensorBase):
        raise TypeError(
            "float_power() received an invalid combination of arguments - got "
            f"({type_name(input)}, {type_name(exponent)}), but expected one of:\n"
            " * (Tensor input, Tensor exponent, *, Tensor out = None)\n"
            " * (Number self, Tensor exponent, *, Tensor out = None)\n"
            " * (Tensor input, Number exponent, *, Tensor out = None)\n"
        )
    either = (_dtype(input), _dtype(exponent))
    wide = dtypes.complex128 if any(d.is_complex for d in either) else dtypes.float64

    def cast(value: Any) -> Any:
        if isinstance(value, TensorBase):
            return value.to(wide)  # type: ignore[attr-defined]
        return complex(value) if wide.is_complex else float(value)

    return cast(input), cast(exponent), wide


@public(method=True)
def float_power(input: Any, exponent: Any, *, out: Any = None) -> Tensor:
    """`input ** exponent` in float64 (complex128 if an operand is complex).

    https://docs.pytorch.org/docs/2.13/generated/torch.float_power.html

    >>> import torchshim as torch
    >>> torch.float_power(torch.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=torch.float64)
    """
    base, power, _ = _power_operands(input, exponent)
    result = fns.pow(base, power)
    if out is None:
        return result
    tensor_argument("float_power", "out", 0, out)
    return write_into(
        "pow",
        result,
        out,
        (input, exponent),
        "the output given to float_power has dtype {have.scalar_name} but the "
        "operation's result requires dtype {want.scalar_name}",
    )


def _float_power_(self: Tensor, exponent: Any) -> Tensor:
    """`float_power` in place: the tensor has to have its result's dtype.

    RuntimeError for another dtype than float64 or, of complex operands, complex128.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.float_power_.html

    >>> import torchshim as torch
    >>> torch.tensor([2.0], dtype=torch.float64).float_power_(-1)
    tensor([0.5000], dtype=torch.float64)
    """
    _, power, wide = _power_operands(self, exponent)
    if self._tmeta.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self._tmeta.dtype.scalar_name} "
            f"but the operation's result requires dtype {wide.scalar_name}"
        )
    return self.pow_(power)


_float_power_.__name__ = "float_power_"
Tensor.float_power_ = _float_power_
