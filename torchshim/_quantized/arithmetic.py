"""Sums, products, joins and activations of quantized tensors, by another scale.

https://github.com/pytorch/pytorch/blob/v2.13.0/aten/src/ATen/native/quantized/cpu/BinaryOps.cpp
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchshim._core.layout import channels_last
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._ops._formats import suggested_format
from torchshim._quantized import elements
from torchshim._quantized.construct import arranged
from torchshim._quantized.lanes import by_lanes
from torchshim._quantized.packed import operator
from torchshim._quantized.products import check_backend
from torchshim._quantized.tensor import (
    CODES,
    PerTensor,
    decoded,
    encoded,
    is_quantized,
    per_tensor,
    quantized,
)
from torchshim._quantized.views import copy_
from torchshim.nn import functional as F


def result_scheme(scale: Any, zero_point: Any) -> PerTensor:
    """The scheme of a result that a call asks for."""
    return PerTensor(float(scale), int(zero_point))


def in_order(tensor: Any) -> Any:
    """A tensor whose codes are in the order that results have."""
    meta = tensor._v._tmeta
    kept = suggested_format(meta.shape, meta.strides)
    return tensor._like(tensor._v.contiguous(memory_format=kept))


def _pair(a: Any, b: Any, name: str) -> tuple[Any, Any, bool]:
    """Both operands, of one size, and whether they have been; RuntimeError if not."""
    per_tensor(a, f"Only per tensor quantization is supported in {name}.")
    if not is_quantized(b) or type(a._scheme) is not type(b._scheme):
        raise RuntimeError(
            f"Both inputs to {name} must have the same quantization scheme."
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name} operands should have same data type.")
    if a.shape == b.shape:
        a = in_order(a)
        kept = b._v.stride() == a._v.stride()
        return a, b if kept else b._like(b._v.contiguous()), kept
    shape = fns.eq(a._v, b._v).shape
    return in_order(a.expand(shape)), in_order(b.expand(shape)), False


def _added(a: Any, b: Any, relu: bool, scheme: PerTensor) -> Any:
    a, b, alike = _pair(a, b, "Add")

    def add(x: Any, y: Any) -> Any:
        return (x + y).relu() if relu else x + y

    return by_lanes(add, (a, b), scheme, not alike)


def _multiplied(a: Any, b: Any, relu: bool, scheme: PerTensor) -> Any:
    a, b, _ = _pair(a, b, "Mul")
    one, two, scale = (np.float32(t.scale) for t in (a._scheme, b._scheme, scheme))
    factor = float(one * two * (np.float32(1) / scale))
    kind, least, most = CODES[a.dtype]
    with untracked():
        steps = (_steps(a) * _steps(b)).float() * factor
        codes = steps.round().double() + scheme.zero_point
        codes = codes.clamp(scheme.zero_point if relu else least, most)
        return quantized(codes.to(kind), scheme)


def _steps(tensor: Any) -> Any:
    return tensor._v.double() - tensor._scheme.zero_point


def _add_number(a: Any, number: float, relu: bool) -> Any:
    """A sum whose scheme changes, not its codes; where these do not reach, both."""
    scale, zero = per_tensor(a, "Only per tensor quantization is supported in Add.")
    _, least, most = CODES[a.dtype]
    shifted = zero - int(np.rint(number / scale))
    if least <= shifted <= most:
        made = quantized(a._v.clone(), PerTensor(scale, shifted))
        return made.relu() if relu else made
    end = least if shifted < least else most
    reach = most - shifted if shifted < least else shifted - least
    wide = PerTensor(float(reach) / (most - least) * scale, end)
    factor = float(np.float32(scale) * (np.float32(1) / np.float32(wide.scale)))
    moved = in_order(quantized(a._v, PerTensor(scale, shifted)))
    with untracked():
        codes = (_steps(moved).float() * factor).round().double() + end
        kind = moved._v.dtype
        codes = codes.clamp(end if relu else least, most).to(kind)
        return quantized(codes, wide)


def _multiply_number(a: Any, number: float, relu: bool) -> Any:
    """A product whose scheme changes; by a negative number, the codes are turned."""
    scale, zero = per_tensor(a, "Only per tensor quantization is supported in Mul.")
    _, least, most = CODES[a.dtype]
    if number > 0:
        made = quantized(a._v.clone(), PerTensor(number * scale, zero))
    elif number == 0:
        return quantized(a._v * 0, PerTensor(1.0, 0))
    else:
        turned = PerTensor(abs(number) * scale, most - (zero - least))
        codes = (most + least) - a._v.long()
        made = quantized(codes.to(a._v.dtype), turned)
    return made.relu() if relu else made


_Binary = Callable[[Any, Any, bool, PerTensor], Any]
_ByNumber = Callable[[Any, float, bool], Any]


def _declare(name: str, by_tensor: _Binary, by_number: _ByNumber, relu: bool) -> None:
    """The operators of one name: of tensors, of a number, with `out`."""
    end = "_relu" if relu else ""

    def binary(
        qa: Any,
        qb: Any = None,
        scale: Any = None,
        zero_point: Any = None,
        *,
        b: Any = None,
        out: Any = None,
    ) -> Any:
        """Of two quantized tensors, by the scale of the result; or of a number."""
        qb = b if qb is None else qb
        if not is_quantized(qb) and not hasattr(qb, "dtype"):
            made = by_number(qa, float(qb), relu)
        elif not is_quantized(qa) and not hasattr(qa, "dtype"):
            made = by_number(qb, float(qa), relu)
        else:
            check_backend(qa, f"quantized::{name}")
            asked = out._scheme if out is not None else (scale, zero_point)
            if None in asked:
                raise RuntimeError(
                    f"quantized::{name}() is missing value for argument 'scale'."
                )
            made = by_tensor(qa, qb, relu, result_scheme(*asked))
        return made if out is None else copy_(out, made)

    def scalar(qa: Any, b: Any) -> Any:
        """Of a quantized tensor and a number; the result has its own scheme."""
        return by_number(qa, float(b), relu)

    def written(qa: Any, qb: Any, out: Any) -> Any:
        """Of two quantized tensors, by the scale of `out`, which takes it."""
        return copy_(out, by_tensor(qa, qb, relu, per_tensor(out)))

    def scalar_out(qa: Any, b: Any, out: Any) -> Any:
        """Of a quantized tensor and a number, in the place of `out`."""
        return copy_(out, by_number(qa, float(b), relu))

    operator(f"{name}{end}")(binary)
    operator(f"{name}{end}_out")(written)
    operator(f"{name}_scalar{end}")(scalar)
    operator(f"{name}_scalar{end}_out")(scalar_out)


for _relu in (False, True):
    _declare("add", _added, _add_number, _relu)
    _declare("mul", _multiplied, _multiply_number, _relu)


@operator("matmul")
def matmul(qa: Any, qb: Any, scale: float, zero_point: int) -> Any:
    """The product of matrices, by the scale of the result."""
    for each in (qa, qb):
        per_tensor(each, "Only per-tensor quantization is supported in Matmul.")
    if qa.dtype is not qb.dtype:
        raise RuntimeError("MatMul operands should have same data type.")
    if qa.dtype.name not in ("qint8", "quint8"):
        raise RuntimeError("MatMul operands should be qint8 or quint8.")
    with untracked():
        made = decoded(qa).matmul(decoded(qb))
        scheme = result_scheme(scale, zero_point)
        return quantized(encoded(made, scheme, qa.dtype), scheme)


# Joining ------------------------------------------------------------------------------


def _joined(
    qx: Sequence[Any], dim: int, scale: Any, zero_point: Any, relu: bool
) -> Any:
    first = qx[0]
    check_backend(first, "aten::qscheme")
    own = per_tensor(first, "Only per-tensor quantization is supported in 'cat'!")
    scheme = result_scheme(
        own.scale if scale is None else scale,
        own.zero_point if zero_point is None else zero_point,
    )
    for each in qx:
        check_backend(each, "quantized::cat")
        if each.dtype is not first.dtype:
            raise RuntimeError("All dtypes must be the same.")
        if type(each._scheme) is not type(own):
            raise RuntimeError("Quantization schemes must be the same.")
    by_channels = dim == 1 and first.dim() == 4 and all(map(_channels_are_last, qx))
    codes = [_rescaled(each, scheme, relu, by_channels)._v for each in qx]
    return quantized(fns.cat(codes, dim), scheme)


def _channels_are_last(tensor: Any) -> bool:
    return tensor.dim() == 4 and tensor.is_contiguous(memory_format=channels_last)


def _rescaled(tensor: Any, scheme: PerTensor, relu: bool, by_channels: bool) -> Any:
    def function(x: Any) -> Any:
        return x.relu() if relu else x

    if by_channels:
        if tensor._scheme == scheme and not relu:
            return tensor
        return by_lanes(function, (tensor,), scheme, row=tensor.shape[1])
    with untracked():
        numbers = function(decoded(tensor))
        return quantized(encoded(numbers, scheme, tensor.dtype), scheme)


def _join(relu: bool) -> None:
    name = "cat_relu" if relu else "cat"

    def cat(qx: Sequence[Any], dim: int, scale: Any, zero_point: Any) -> Any:
        """As `torch.cat`, by the scale of the result; the first one's for None."""
        return _joined(qx, dim, scale, zero_point, relu)

    def cat_out(qx: Sequence[Any], dim: int, out: Any) -> Any:
        """As `torch.cat`, by the scale of `out`, which takes the result."""
        return copy_(out, _joined(qx, dim, *per_tensor(out), relu))

    operator(name)(cat)
    operator(f"{name}_out")(cat_out)


_join(False)
_join(True)

# Activations --------------------------------------------------------------------------


def _through(x: Any, scheme: PerTensor, function: Callable[[Any], Any]) -> Any:
    check_backend(x, "quantized::activation")
    per_tensor(x)
    return by_lanes(function, (in_order(x),), scheme)


@operator("hardswish")
def hardswish(input: Any, output_scale: float, output_zero_point: int) -> Any:
    """As `torch.nn.functional.hardswish`, by the scale of the result."""
    scheme = result_scheme(output_scale, output_zero_point)
    return _through(input, scheme, lambda x: x * (x + 3).clamp(0, 6) / 6)


@operator("elu")
def elu(
    self: Any,
    output_scale: float,
    output_zero_point: int,
    alpha: Any = 1,
    scale: Any = 1,
    input_scale: Any = 1,
) -> Any:
    """As `torch.nn.functional.elu`, by the scale of the result."""
    below = alpha * scale

    def function(x: Any) -> Any:
        return (x * scale).where(x >= 0, ((x * input_scale).exp() - 1) * below)

    scheme = result_scheme(output_scale, output_zero_point)
    check_backend(self, "quantized::elu")
    per_tensor(self)
    whole = self._like(self._v.contiguous())
    return by_lanes(function, (whole,), scheme, not self.is_contiguous())


@operator("celu")
def celu(self: Any, output_scale: float, output_zero_point: int, alpha: Any = 1) -> Any:
    """As `torch.nn.functional.celu`, by the scale of the result."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu(self, output_scale, output_zero_point, alpha, 1, 1.0 / alpha)


@operator("leaky_relu")
def leaky_relu(
    qx: Any,
    negative_slope: Any,
    inplace: bool,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """As `torch.nn.functional.leaky_relu`, by the scale of the result."""
    if inplace:
        return elements.leaky_relu(qx, negative_slope, True)
    scheme = result_scheme(output_scale, output_zero_point)
    return _through(qx, scheme, lambda x: x.where(x > 0, x * negative_slope))


@operator("sigmoid")
def sigmoid(qx: Any, output_scale: float, output_zero_point: int) -> Any:
    """As `torch.sigmoid`, by the scale of the result."""
    scheme = result_scheme(output_scale, output_zero_point)
    return _through(qx, scheme, lambda x: x.sigmoid())


@operator("softmax")
def softmax(qx: Any, dim: int, output_scale: float, output_zero_point: int) -> Any:
    """As `torch.softmax`, by the scale of the result."""
    scheme = result_scheme(output_scale, output_zero_point)
    with untracked():
        made = decoded(qx).softmax(dim)
        return quantized(encoded(made, scheme, qx.dtype), scheme)


@operator("prelu")
def prelu(qx: Any, weight: Any, output_scale: float, output_zero_point: int) -> Any:
    """As `torch.nn.functional.prelu` with a quantized weight, by the result's scale."""
    scheme = result_scheme(output_scale, output_zero_point)
    check_backend(weight, "aten::q_zero_point")
    with untracked():
        made = F.prelu(decoded(qx), decoded(weight))
        return quantized(encoded(arranged(made), scheme, qx.dtype), scheme)


@operator("threshold")
def threshold(qx: Any, threshold: Any, value: Any) -> Any:
    """As `torch.nn.functional.threshold`."""
    below = float(np.float32(threshold))
    return _through(
        qx, per_tensor(qx), lambda x: x.masked_fill(x <= below, float(value))
    )


@operator("relu6")
def relu6(qx: Any, inplace: bool = False) -> Any:
    """As `torch.nn.functional.relu6`."""
    return elements.relu6(qx, inplace)


@operator("clamp")
def clamp(qx: Any, min: Any = None, max: Any = None) -> Any:
    """As `torch.clamp`."""
    return elements.clamp(qx, min, max)


@operator("dropout")
def dropout(
    self: Any,
    output_scale: float,
    output_zero_point: int,
    p: Any = 0.5,
    training: bool = False,
) -> Any:
    """The tensor itself: nothing is dropped of quantized tensors."""
    return self


@operator("max_pool1d")
def max_pool1d(qx: Any, *args: Any) -> Any:
    """As `torch.quantized_max_pool1d`."""
    return _pool("max_pool1d", qx, args)


@operator("max_pool2d")
def max_pool2d(qx: Any, *args: Any) -> Any:
    """As `torch.quantized_max_pool2d`."""
    return _pool("max_pool2d", qx, args)


def _pool(name: str, qx: Any, args: Sequence[Any]) -> Any:
    kernel, stride, *rest = args
    return getattr(F, name)(qx, kernel, stride or None, *rest)
