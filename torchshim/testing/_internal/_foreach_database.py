"""The operators on lists of tensors, and the arguments that tests give them."""

from __future__ import annotations

import enum
import itertools
import math
import random
import unittest
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torchshim as torch
from torchshim.testing import make_tensor
from torchshim.testing._internal._databases import DecorateInfo
from torchshim.testing._internal.common_dtype import complex_types, get_all_dtypes
from torchshim.testing._internal.opinfo.core import OpInfo, SampleInput

foreach_num_tensors = [20, 23]
NUM_SIZE0_TENSORS = 10000


class ForeachRightmostArgType(enum.Enum):
    """What the last operand of an operator on lists is."""

    TensorList = enum.auto()
    ScalarList = enum.auto()
    Scalar = enum.auto()
    Tensor = enum.auto()


class ForeachSampleInput(SampleInput):
    """Arguments, and those that the operator on single tensors gets.

    `disable_fastpath` says that no kernel computes all tensors at once: here none does.
    """

    __slots__ = ("disable_fastpath", "ref_args")

    def __init__(
        self,
        *args: Any,
        disable_fastpath: bool = True,
        ref_args: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.ref_args = ref_args or self.args
        self.disable_fastpath = disable_fastpath


def get_foreach_method_names(name: str) -> tuple[Any, Any, Any, Any]:
    """The operator on lists and its form in place, the same of single tensors."""
    return (
        getattr(torch, f"_foreach_{name}", None),
        getattr(torch, f"_foreach_{name}_", None),
        getattr(torch.Tensor, name, None) if name == "clone" else _function(name),
        getattr(torch.Tensor, f"{name}_", None),
    )


def _function(name: str) -> Any:
    return getattr(torch, name, None)


class ForeachFuncInfo(OpInfo):
    """What is known of an operator on lists of tensors."""

    def __init__(
        self,
        name: str,
        *,
        sample_inputs_func: Any,
        supports_out: bool = True,
        supports_autograd: bool = True,
        supports_alpha_param: bool = False,
        supports_scalar_self_arg: bool = False,
        backward_requires_result: bool = False,
        supports_inplace_autograd: bool | None = None,
        supports_forward_ad: bool = True,
        decorators: Sequence[Any] = (),
        refs: tuple[Any, Any] | None = None,
    ) -> None:
        every, every_in_place, single, single_in_place = get_foreach_method_names(name)
        if not supports_out:
            every, single = every_in_place, single_in_place
        super().__init__(
            f"_foreach_{name}",
            op=every,
            dtypes=get_all_dtypes(include_qint=False),
            sample_inputs_func=sample_inputs_func,
            supports_out=supports_out,
            supports_autograd=supports_autograd,
            supports_forward_ad=supports_forward_ad,
            decorators=decorators,
        )
        self.ref, self.ref_inplace = refs or (single, single_in_place)
        self.method_variant = every
        self.inplace_variant = every_in_place
        self.has_no_in_place = every_in_place is None
        self.supports_alpha_param = supports_alpha_param
        self.supports_scalar_self_arg = supports_scalar_self_arg
        self.backward_requires_result = backward_requires_result
        given = supports_inplace_autograd
        self.supports_inplace_autograd = supports_autograd if given is None else given

    def sample_zero_size_inputs(
        self, device: Any, dtype: Any, requires_grad: bool = False, **kwargs: Any
    ) -> Iterable[ForeachSampleInput]:
        """Many empty tensors."""
        make = getattr(self.sample_inputs_func, "of_empty_tensors", None)
        return make(self, device, dtype, requires_grad) if make else ()


def sample_inputs_foreach(
    self: Any,
    device: Any,
    dtype: Any,
    N: int,
    *,
    noncontiguous: bool = False,
    same_size: bool = False,
    low: Any = None,
    high: Any = None,
    zero_size: bool,
    requires_grad: bool,
    intersperse_empty_tensors: bool = False,
) -> list[Any]:
    """As many square matrices, of one size or each smaller by one than the last."""
    made = []
    for i in range(N):
        side = N if same_size else N - i
        empty = zero_size or (intersperse_empty_tensors and i % 3 == 0)
        made.append(
            make_tensor(
                (0,) if empty else (side, side),
                dtype=dtype,
                device=device,
                low=low,
                high=high,
                noncontiguous=noncontiguous,
                requires_grad=requires_grad,
            )
        )
    return made


class _Samples:
    """Makes the arguments of an operator that takes so many lists before its last."""

    def __init__(self, lists: int, kinds: Sequence[str], between: bool = False) -> None:
        self.lists = lists
        self._rightmost_arg_types = [ForeachRightmostArgType[kind] for kind in kinds]
        self.arity = lists + bool(kinds)
        self.empty_between = (True, False) if between else (False,)

    def __call__(
        self,
        op: Any,
        device: Any,
        dtype: Any,
        requires_grad: bool,
        *,
        num_input_tensors: Sequence[int] = foreach_num_tensors,
        allow_higher_dtype_scalars: bool = False,
        **kwargs: Any,
    ) -> Iterator[ForeachSampleInput]:
        for count, between in itertools.product(num_input_tensors, self.empty_between):
            options = {"zero_size": False, "intersperse_empty_tensors": between}
            options |= {"requires_grad": requires_grad, **kwargs}

            def lists(many: int, count: int = count, options: Any = options) -> Any:
                return [
                    sample_inputs_foreach(None, device, dtype, count, **options)
                    for _ in range(many)
                ]

            yield from self.given(op, dtype, count, lists, allow_higher_dtype_scalars)

    def given(
        self, op: Any, dtype: Any, count: int, lists: Callable[[int], Any], wide: bool
    ) -> Iterator[ForeachSampleInput]:
        """The arguments of one length."""
        first, *more = lists(self.lists)
        for kind in self._rightmost_arg_types:
            if kind is ForeachRightmostArgType.TensorList:
                alpha = {"alpha": _alpha(dtype)} if op.supports_alpha_param else {}
                yield ForeachSampleInput(first, *more, *lists(1), **alpha)
            elif kind is ForeachRightmostArgType.Tensor:
                x = lists(1)[0][-1].detach().reshape(-1)[0].clone()
                last = [*more, [x] * count]
                yield ForeachSampleInput(first, *more, x, ref_args=last)
            elif kind is ForeachRightmostArgType.Scalar:
                for number in _numbers(op, dtype, wide):
                    last = [*more, [number] * count]
                    yield ForeachSampleInput(first, *more, number, ref_args=last)
            else:
                for numbers in _lists_of_numbers(op, dtype, wide, count):
                    yield ForeachSampleInput(first, *more, numbers)
        if not self._rightmost_arg_types:
            yield ForeachSampleInput(first, *more)

    def of_empty_tensors(
        self, op: Any, device: Any, dtype: Any, requires_grad: bool
    ) -> Iterator[ForeachSampleInput]:
        """Lists of empty tensors."""
        options = {"zero_size": True, "requires_grad": requires_grad}
        first, *more = (
            sample_inputs_foreach(None, device, dtype, NUM_SIZE0_TENSORS, **options)
            for _ in range(self.arity)
        )
        yield ForeachSampleInput(first, *more)


class _Pointwise(_Samples):
    """A factor, one for each tensor or for all, is given by name."""

    def given(
        self, op: Any, dtype: Any, count: int, lists: Callable[[int], Any], wide: bool
    ) -> Iterator[ForeachSampleInput]:
        first, *more = lists(self.lists)
        yield ForeachSampleInput(first, *more)
        for number in _numbers(op, dtype, wide):
            yield ForeachSampleInput(first, *more, value=number)
        for numbers in _lists_of_numbers(op, dtype, wide, count):
            yield ForeachSampleInput(first, *more, scalars=numbers)

    of_empty_tensors = None  # type: ignore[assignment]


class _Norms(_Samples):
    def given(
        self, op: Any, dtype: Any, count: int, lists: Callable[[int], Any], wide: bool
    ) -> Iterator[ForeachSampleInput]:
        (first,) = lists(1)
        orders = [0, 1, 2]
        if all(x.numel() for x in first):
            orders += [-1, -2, math.inf, -math.inf]
        result = torch.complex128 if dtype in complex_types() else torch.float64
        for order in orders:
            yield ForeachSampleInput(first, ord=order, dtype=result)
        if dtype.is_floating_point:
            with torch.no_grad():
                holed = [x.detach().clone() for x in first if x.numel()]
                for x in holed:
                    x.view(-1)[-1:].fill_(math.nan)
            for order in orders:
                yield ForeachSampleInput(holed, ord=order)


class _Products(_Samples):
    def given(
        self, op: Any, dtype: Any, count: int, lists: Callable[[int], Any], wide: bool
    ) -> Iterator[ForeachSampleInput]:
        yield ForeachSampleInput(*lists(2))


def _alpha(dtype: Any) -> Any:
    if dtype.is_complex:
        return complex(3, 3)
    return 3.14 if dtype.is_floating_point else 3


def _fraction(small: bool) -> float:
    # Within (0, 1]; half types have not the range for powers.
    return random.choice((1.0, 2.0)) if small else 1.0 - random.random()


def _small(op: Any, dtype: Any) -> bool:
    return op.name == "_foreach_pow" and dtype in (torch.float16, torch.bfloat16)


def _numbers(op: Any, dtype: Any, wide: bool) -> Iterator[Any]:
    small = _small(op, dtype)
    yield random.randint(1, 3 if small else 10)
    if wide or dtype.is_floating_point:
        yield _fraction(small)
    if wide or dtype.is_complex:
        yield complex(_fraction(small), _fraction(small))
    yield True


def _lists_of_numbers(op: Any, dtype: Any, wide: bool, count: int) -> Iterator[Any]:
    small = _small(op, dtype)
    yield [random.randint(1, 3 if small else 10) for _ in range(count)]
    if wide or dtype.is_floating_point:
        yield [_fraction(small) for _ in range(count)]
    if wide or dtype.is_complex:
        pairs = range(count)
        yield [complex(_fraction(small), _fraction(small)) for _ in pairs]
        for start in ([1, 2.0, 3.0 + 4.5j], [True, 1, 2.0, 3.0 + 4.5j]):
            yield start + [3.0] * (count - len(start))


_EVERY = ("TensorList", "Scalar", "ScalarList")
_COMPLEX = complex_types()
# Operators whose gradient is computed from the result.
_OF_RESULT = "exp tan tanh sqrt rsqrt expm1 reciprocal sigmoid".split()
_UNARY = (
    "exp acos asin atan cos cosh log log10 log2 tan tanh sin sinh neg sqrt rsqrt ceil "
    "erf erfc expm1 floor log1p round frac reciprocal sigmoid trunc abs zero sign "
    "lgamma clone"
).split()


def _fails(test: str) -> DecorateInfo:
    fails = unittest.expectedFailure
    return DecorateInfo(fails, "TestForeach", test, dtypes=_COMPLEX)


foreach_unary_op_db = [
    ForeachFuncInfo(
        name,
        sample_inputs_func=_Samples(1, ()),
        supports_out=name != "zero",
        backward_requires_result=name in _OF_RESULT,
    )
    for name in _UNARY
]


def _bound(name: str, single: str) -> ForeachFuncInfo:
    # `maximum` of one tensor takes no numbers.
    known = name == single
    return ForeachFuncInfo(
        name,
        sample_inputs_func=_Samples(1, _EVERY),
        supports_forward_ad=known,
        supports_inplace_autograd=known,
        decorators=(_fails("test_binary_op_scalar_with_overlapping_tensors"),),
        refs=(getattr(torch, single), getattr(torch.Tensor, f"{single}_")),
    )


foreach_binary_op_db = [
    ForeachFuncInfo(
        "add",
        sample_inputs_func=_Samples(1, (*_EVERY, "Tensor")),
        supports_alpha_param=True,
    ),
    ForeachFuncInfo(
        "sub", sample_inputs_func=_Samples(1, _EVERY), supports_alpha_param=True
    ),
    ForeachFuncInfo("mul", sample_inputs_func=_Samples(1, (*_EVERY, "Tensor"))),
    ForeachFuncInfo("div", sample_inputs_func=_Samples(1, (*_EVERY, "Tensor"))),
    _bound("clamp_min", "clamp_min"),
    _bound("clamp_max", "clamp_max"),
    _bound("minimum", "clamp_max"),
    _bound("maximum", "clamp_min"),
    ForeachFuncInfo(
        "pow",
        sample_inputs_func=_Samples(1, _EVERY),
        supports_scalar_self_arg=True,
        backward_requires_result=True,
    ),
    ForeachFuncInfo(
        "copy",
        sample_inputs_func=_Samples(1, ("TensorList",)),
        supports_out=False,
        supports_autograd=False,
        supports_forward_ad=False,
    ),
]
foreach_pointwise_op_db = [
    ForeachFuncInfo(name, sample_inputs_func=_Pointwise(3, (), between=True))
    for name in ("addcmul", "addcdiv")
]
foreach_reduce_op_db = [
    ForeachFuncInfo(
        "max",
        sample_inputs_func=_Samples(1, ()),
        decorators=(
            _fails("test_autodiff"),
            _fails("test_foreach_reduce_large_input"),
        ),
    ),
    ForeachFuncInfo(
        "norm",
        sample_inputs_func=_Norms(1, (), between=True),
        refs=(torch.linalg.vector_norm, None),
    ),
]
foreach_other_op_db = [
    ForeachFuncInfo("lerp", sample_inputs_func=_Samples(2, _EVERY)),
    ForeachFuncInfo(
        "mm", sample_inputs_func=_Products(2, ()), supports_forward_ad=False
    ),
]
