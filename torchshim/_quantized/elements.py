"""Functions of the elements of quantized tensors: comparisons, activations, sorting.

What is monotonic is done with the codes; the rest is computed in float32 and rounded
with the scheme of the operand, as PyTorch's CPU kernels do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from torchshim import return_types
from torchshim._core.record import untracked
from torchshim._quantized.construct import as_quantized
from torchshim._quantized.tensor import (
    CODES,
    PerTensor,
    Quantized,
    Scheme,
    code_of,
    decoded,
    handles,
    is_quantized,
    per_tensor,
    quantized,
    refuse,
)

_COMPARED = {
    **{name: name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"__{name}__": name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{"greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le"},
    "not_equal": "ne",
}


def floats_of(value: Any) -> Any:
    """A quantized tensor in float32; any other value as it is."""
    return decoded(value) if is_quantized(value) else value


def _compared(name: str) -> Callable[..., Any]:
    def compared(input: Any, other: Any) -> Any:
        return getattr(floats_of(input), name)(floats_of(other))

    return compared


for _called, _name in _COMPARED.items():
    handles(_called)(_compared(_name))


@handles("equal")
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same scheme and the same codes."""
    if not is_quantized(input) or not is_quantized(other):
        return False
    mine, its = input._scheme, other._scheme
    if input.dtype is not other.dtype or type(mine) is not type(its):
        return False
    if isinstance(mine, PerTensor):
        same = mine == its
    else:
        same = mine.axis == its.axis and all(
            a.equal(b) for a, b in zip(mine[:2], its[:2], strict=True)
        )
    return same and input._v.equal(other._v)


@handles("isclose", "allclose")
def isclose(*args: Any, **kwargs: Any) -> NoReturn:
    """RuntimeError, as in PyTorch."""
    raise RuntimeError("isclose is not supported for quantized inputs.")


# Numbers ------------------------------------------------------------------------------


@handles("item")
def item(input: Any) -> float:
    """What the only element stands for."""
    return decoded(input).item()


@handles("tolist")
def tolist(input: Any) -> NoReturn:
    """RuntimeError, as in PyTorch."""
    raise RuntimeError("load_scalar: invalid type")


@handles("numpy", "__array__")
def numpy(input: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """TypeError: NumPy has no such type."""
    raise TypeError(f"Got unsupported ScalarType {input.dtype.scalar_name}")


def _number(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda input: kind(decoded(input))


for _kind in (float, int, complex, bool):
    handles(f"__{_kind.__name__}__")(_number(_kind))
handles("is_nonzero")(_number(bool))
Quantized.__bool__ = lambda self: bool(decoded(self))


# Activations --------------------------------------------------------------------------


def written(input: Any, made: Any) -> Any:
    """The operand of a function in place, with the codes of its result."""
    input._v.copy_(made._v)
    return input


@handles("relu")
def relu(input: Any, inplace: bool = False) -> Any:
    """`max(input, 0)`."""
    zero = per_tensor(input).zero_point
    made = input._like(input._v.clamp(min=zero))
    return written(input, made) if inplace else made


@handles("relu_")
def relu_(input: Any) -> Any:
    """`relu` in place."""
    return relu(input, True)


@handles("clamp", "clip")
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """The elements within two bounds, which are rounded as elements are."""
    scheme = per_tensor(input)
    ends = (
        None if end is None else code_of(float(end), scheme, input.dtype)
        for end in (min, max)
    )
    return input._like(input._v.clamp(*ends))


@handles("hardtanh")
def hardtanh(
    input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Any:
    """As `clamp`."""
    made = clamp(input, min_val, max_val)
    return written(input, made) if inplace else made


@handles("hardtanh_")
def hardtanh_(input: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """`hardtanh` in place."""
    return hardtanh(input, min_val, max_val, True)


@handles("relu6")
def relu6(input: Any, inplace: bool = False) -> Any:
    """As `clamp` from 0 to 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


def through(input: Any, function: Callable[[Any], Any], scheme: Any = None) -> Any:
    """A function of the elements in float32, rounded by the operand's scheme."""
    per_tensor(input)
    with untracked():
        return as_quantized(function(decoded(input)), input, scheme)


@handles("leaky_relu")
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """As `torch.nn.functional.leaky_relu`."""
    made = through(input, lambda x: x.where(x > 0, x * negative_slope))
    return written(input, made) if inplace else made


@handles("leaky_relu_")
def leaky_relu_(input: Any, negative_slope: float = 0.01) -> Any:
    """`leaky_relu` in place."""
    return leaky_relu(input, negative_slope, True)


@handles("threshold")
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """As `torch.nn.functional.threshold`."""
    made = through(input, lambda x: x.masked_fill(x <= threshold, value))
    return written(input, made) if inplace else made


@handles("gelu")
def gelu(input: Any, approximate: str = "none") -> Any:
    """As `torch.nn.functional.gelu`; the scale is rounded to float32."""
    from torchshim.nn.functional import gelu as of_floats

    scale, zero = per_tensor(input)
    scheme = PerTensor(float(np.float32(scale)), zero)
    return through(input, lambda x: of_floats(x, approximate=approximate), scheme)


def unit_scheme(dtype: Any, signed: bool) -> PerTensor:
    """The scheme of what lies between 0 and 1, or (`signed`) between -1 and 1."""
    _, least, most = CODES[dtype]
    bits = (most - least + 1).bit_length() - 1
    if signed:
        return PerTensor(2.0 ** (1 - bits), (least + most + 1) // 2)
    return PerTensor(2.0**-bits, least if bits == 8 else 0)


@handles("sigmoid")
def sigmoid(input: Any) -> Any:
    """As `torch.sigmoid`, in 256 steps from 0 to 1."""
    return through(input, lambda x: x.sigmoid(), unit_scheme(input.dtype, False))


@handles("tanh")
def tanh(input: Any) -> Any:
    """As `torch.tanh`, in 256 steps from -1 to 1."""
    return through(input, lambda x: x.tanh(), unit_scheme(input.dtype, True))


@handles("hardsigmoid")
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """As `torch.nn.functional.hardsigmoid`, in 256 steps from 0 to 1."""
    scheme = unit_scheme(input.dtype, False)
    return through(input, lambda x: (x / 6 + 0.5).clamp(0, 1), scheme)


@handles("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout")
def dropout(
    input: Any, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Any:
    """The tensor itself, where nothing is dropped."""
    if training:
        refuse("aten::native_dropout")
    return input


# Reductions and order -----------------------------------------------------------------

_ONE_SCHEME = (
    "{} operator for quantized tensors only works for per tensor quantized tensors. "
    "Please open an issue on https://github.com/pytorch/pytorch/issues if you need per "
    "channel quantized tensor support."
)


def _extreme(name: str) -> Callable[..., Any]:
    def extreme(input: Any, *args: Any, **kwargs: Any) -> Any:
        scheme = per_tensor(input, _ONE_SCHEME.format(name.capitalize()))
        if any(is_quantized(other) for other in (*args, *kwargs.values())):
            refuse(f"aten::{name}imum.out")
        return _picked(getattr(input._v, name)(*args, **kwargs), scheme)

    return extreme


def _picked(found: Any, scheme: Scheme) -> Any:
    """A result of codes, or of codes and indices."""
    if not isinstance(found, tuple):
        return quantized(found, scheme)
    kind = getattr(return_types, type(found).__name__)
    return kind((quantized(found[0], scheme), found[1]))


for _name in ("max", "min"):
    handles(_name)(_extreme(_name))


def _ordered(name: str) -> Callable[..., Any]:
    def ordered(input: Any, *args: Any, **kwargs: Any) -> Any:
        scheme = per_tensor(input)
        found = getattr(input._v, name)(*args, **kwargs)
        return found if name == "argsort" else _picked(found, scheme)

    return ordered


for _name in ("sort", "topk", "argsort", "msort"):
    handles(_name)(_ordered(_name))


@handles("mean")
def mean(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `torch.mean`."""
    return through(input, lambda x: x.mean(*args, **kwargs))


@handles("std")
def std(input: Any, *args: Any, **kwargs: Any) -> Any:
    """As `torch.std`."""
    return through(input, lambda x: x.std(*args, **kwargs))
