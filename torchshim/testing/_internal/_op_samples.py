"""Arguments for element-wise operators and reductions: usual ones and hard ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import torchshim as torch
from torchshim.testing import make_tensor
from torchshim.testing._internal.opinfo.core import SampleInput

_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (3, 5), (0, 3), (2, 3, 4))
_INTEGERS = (0, 1, -1, 7, 9, 55, -55, 113, 127, -128)
_SMALL = (0.0, -0.0, 1e-3, -1e-3, 0.25, -0.25, 1.0, -1.0, math.e / 2, math.pi / 2)
_LARGE_INTEGERS = (-1113, 1113, -10701, 10701)
_LARGE = (501.0, -501.0, 1001.2, -1001.2, 13437.7, -13437.7)
_EXTREMAL = (math.inf, -math.inf, math.nan)


def _is_number(dtype: Any) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _filled(values: Any, op: Any, device: Any, dtype: Any, grad: bool) -> Any:
    low, high = getattr(op, "domain", (None, None))
    real = dtype.is_floating_point
    if real and low is not None:
        values = [v for v in values if math.isnan(v) or v >= low]
    if real and high is not None:
        values = [v for v in values if math.isnan(v) or v <= high]
    if dtype is torch.bool:
        values = [True, False]
    elif not _is_number(dtype):
        info = torch.iinfo(dtype)
        values = [v for v in values if info.min <= v <= info.max]
    elif dtype.is_complex:
        values = [complex(*v) for v in itertools.product(values, repeat=2)]
    made = torch.tensor(list(values), dtype=dtype, device=device)
    return made.requires_grad_(grad and _is_number(dtype))


def _unary(op: Any, value: Any) -> SampleInput:
    return SampleInput(value, **op.sample_kwargs(value.device, value.dtype, value)[0])


def generate_elementwise_unary_tensors(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False, **kwargs: Any
) -> Iterator[SampleInput]:
    """Tensors of several shapes, within the operator's domain."""
    low, high = op.domain
    for shape in _SHAPES:
        given = {"device": device, "dtype": dtype, "requires_grad": requires_grad}
        bounds = {} if dtype is torch.bool else {"low": low, "high": high}
        yield _unary(op, make_tensor(shape, **given, **bounds, **kwargs))
    yield _unary(op, make_tensor((4, 3), **given, **bounds).t())


def generate_elementwise_unary_small_value_tensors(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """Small numbers, zeros of both signs among them."""
    values = _SMALL if _is_number(dtype) else _INTEGERS
    yield _unary(op, _filled(values, op, device, dtype, requires_grad))


def generate_elementwise_unary_large_value_tensors(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """Large numbers."""
    values = _LARGE if _is_number(dtype) else _LARGE_INTEGERS
    yield _unary(op, _filled(values, op, device, dtype, requires_grad))


def generate_elementwise_unary_extremal_value_tensors(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """Infinities and NaN."""
    yield _unary(op, _filled(_EXTREMAL, op, device, dtype, requires_grad))


def _operands(
    op: Any, left: Any, right: Any, device: Any, dtype: Any, grad: bool
) -> SampleInput:
    given = {"device": device, "dtype": dtype, "requires_grad": grad}
    first = make_tensor(left, **given, **op.lhs_make_tensor_kwargs)
    second = make_tensor(right, **given, **op.rhs_make_tensor_kwargs)
    broadcasts = torch.broadcast_shapes(left, right) != torch.Size(left)
    return SampleInput(first, args=(second,)).with_metadata(broadcasts_input=broadcasts)


def generate_elementwise_binary_tensors(
    op: Any,
    *,
    device: Any,
    dtype: Any,
    requires_grad: bool = False,
    exclude_zero: bool = False,
) -> Iterator[SampleInput]:
    """Pairs of tensors of one shape."""
    for shape in _SHAPES:
        yield _operands(op, shape, shape, device, dtype, requires_grad)


def generate_elementwise_binary_broadcasting_tensors(
    op: Any,
    *,
    device: Any,
    dtype: Any,
    requires_grad: bool = False,
    exclude_zero: bool = False,
) -> Iterator[SampleInput]:
    """Pairs of tensors of different shapes."""
    for left, right in (
        *(((1,), ()), ((2,), ()), ((1,), (2,)), ((2, 1), (2,))),
        *(((1, 2), (3, 2)), ((3, 1, 2), (1, 3, 2)), ((1, 3, 2), (3, 2))),
    ):
        yield _operands(op, left, right, device, dtype, requires_grad)


def _pairs(
    values: Any, op: Any, device: Any, dtype: Any, grad: bool
) -> Iterator[SampleInput]:
    found = _filled(values, op, device, dtype, False)
    left, right = torch.meshgrid(found, found, indexing="ij")
    kept = grad and _is_number(dtype)
    first = left.flatten().requires_grad_(kept)
    yield SampleInput(first, args=(right.flatten().requires_grad_(kept),))


def generate_elementwise_binary_small_value_tensors(
    op: Any,
    *,
    device: Any,
    dtype: Any,
    requires_grad: bool = False,
    exclude_zero: Any = None,
) -> Iterator[SampleInput]:
    """All pairs of small numbers."""
    excluded = exclude_zero or op.rhs_make_tensor_kwargs.get("exclude_zero", False)
    values = _SMALL if _is_number(dtype) else _INTEGERS
    values = tuple(v for v in values if v or not excluded)
    return _pairs(values, op, device, dtype, requires_grad)


def generate_elementwise_binary_large_value_tensors(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """All pairs of large numbers."""
    values = _LARGE if _is_number(dtype) else _LARGE_INTEGERS
    return _pairs(values, op, device, dtype, requires_grad)


def generate_elementwise_binary_extremal_value_tensors(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """All pairs of infinities and NaN."""
    return _pairs(_EXTREMAL, op, device, dtype, requires_grad)


def generate_elementwise_binary_with_scalar_samples(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """Tensors with numbers, numbers with tensors, and numbers alone."""
    if op.supports_rhs_python_scalar:
        for shape in ((), (3,), (5, 3), (0, 1, 3), (1, 5)):
            sample = _operands(op, shape, (), device, dtype, requires_grad)
            yield SampleInput(sample.input, args=(sample.args[0].item(),))
        if op.supports_one_python_scalar:
            sample = _operands(op, (), (1, 5), device, dtype, requires_grad)
            yield SampleInput(sample.input.item(), args=sample.args)
    if op.supports_two_python_scalars:
        sample = _operands(op, (), (), device, dtype, requires_grad)
        yield SampleInput(sample.input.item(), args=(sample.args[0].item(),))


_WITH_EXTREMES = ("eq", "ne", "gt", "ge", "lt", "le")


def generate_elementwise_binary_with_scalar_and_type_promotion_samples(
    op: Any, *, device: Any, dtype: Any, requires_grad: bool = False
) -> Iterator[SampleInput]:
    """Tensors of any dtype compared with infinite numbers and NaN."""
    if op.name not in _WITH_EXTREMES:
        return
    for number in (*_EXTREMAL, *map(torch.tensor, _EXTREMAL)):
        sample = _operands(op, (23,), (23,), device, dtype, requires_grad)
        yield SampleInput(sample.input, args=(number,))
        if op.supports_one_python_scalar:
            yield SampleInput(number, args=sample.args)


def sample_inputs_reduction(
    op: Any, device: Any, dtype: Any, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    """Tensors, reduced over each dimension, over several and over all."""
    given = {"device": device, "dtype": dtype, "requires_grad": requires_grad}
    for shape in ((), (2,), (3, 5), (3, 2, 1, 2)):
        dims: list[Any] = [{}, {"dim": 0}, {"dim": -1, "keepdim": True}]
        if op.supports_multiple_dims and len(shape) > 1:
            dims += [{"dim": (0, -1)}, {"dim": (0, 1), "keepdim": True}]
        for chosen in dims:
            value = make_tensor(shape, **given)
            for args, options in op.generate_args_kwargs(value, **chosen):
                yield SampleInput(value, args=args, kwargs=options | chosen)
