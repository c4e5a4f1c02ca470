"""`torch._foreach_*`: one operator for each tensor of a list.

A recording makes one program of them all, so they are loops. Those that change their
tensors give the list they were given, the others a tuple.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._bind import type_name
from torchshim._core import dtypes
from torchshim._derived import fns, public
from torchshim._functions._arguments import combination, is_number
from torchshim._tensor import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 "
    "log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()

_SUMS = """(tuple of Tensors self, Number scalar)
    (tuple of Tensors self, tuple of Scalars scalars)
    (tuple of Tensors self, Tensor other, *, Number alpha = 1)
    (tuple of Tensors self, tuple of Tensors other, *, Number alpha = 1)"""

_FUSED = """(tuple of Tensors self, tuple of Tensors tensor1, tuple of Tensors tensor2, tuple of Scalars scalars)
    (tuple of Tensors self, tuple of Tensors tensor1, tuple of Tensors tensor2, Tensor scalars)
    (tuple of Tensors self, tuple of Tensors tensor1, tuple of Tensors tensor2, Number value = 1)"""  # noqa: E501

_LERP = """(tuple of Tensors self, tuple of Tensors tensors1, Number weight)
    (tuple of Tensors self, tuple of Tensors tensors1, tuple of Scalars weight)
    (tuple of Tensors self, tuple of Tensors tensors1, tuple of Tensors weights)"""

# The functions whose second operand may be one tensor that stays one.
_WITH_A_TENSOR = ("add", "mul", "div")


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _tensors(name: str, value: Any, *more: Any) -> Sequence[Any]:
    """A list of tensors that is not empty."""
    if not _is_list(value) or not all(isinstance(t, Tensor) for t in value):
        raise combination(
            name, (value, *more), {}, "(tuple of Tensors self, Number scalar)"
        )
    if not value:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return value


def _combined(name: str, value: Any, *more: Any) -> Sequence[Any]:
    """A list of tensors that is not empty nor, if empty, beside lists that are not."""
    if _is_list(value) and not value:
        lists = [each for each in more if _is_list(each) and each]
        if lists and isinstance(lists[0][0], Tensor):
            raise RuntimeError(
                "Tensor lists must have the same number of tensors, got "
                f"0 and {len(lists[0])}"
            )
    return _tensors(name, value, *more)


def _matching(name: str, tensors: Sequence[Any], value: Any) -> Sequence[Any]:
    """Another list of as many tensors."""
    if _is_list(value) and len(value) != len(tensors):
        raise RuntimeError(
            "Tensor lists must have the same number of tensors, got "
            f"{len(tensors)} and {len(value)}"
        )
    return _tensors(name, value)


def _is_scalar(value: Any) -> bool:
    """Whether PyTorch takes a value for a number."""
    if isinstance(value, Tensor):
        return not (value.dim() or value.requires_grad)
    return is_number(value)


def _as_number(tensor: Tensor, other: Tensor) -> Tensor:
    """A 0-dim tensor with the dtype that a number would take part with."""
    dtype = other._tmeta.dtype
    if dtype.category <= tensor._tmeta.dtype.category:
        return other
    if dtype.category == dtypes.INTEGER:
        return other.to(dtypes.int64)
    real = dtypes.get_default_dtype()
    return other.to(real.to_complex() if dtype.is_complex else real)


def _others(
    name: str, tensors: Sequence[Any], other: Any, one: bool = False
) -> Sequence[Any]:
    """What each tensor of a list is combined with: from a list, or the same for all.

    `one`: a tensor for all stays one; otherwise it is taken for a number.
    """
    if isinstance(other, Tensor) and not one:
        if not _is_scalar(other):
            raise combination(name, (tensors, other), {}, _SUMS)
        return [_as_number(t, other) for t in tensors]
    if isinstance(other, Tensor):
        if other.dim():
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.dim()} "
                f"dimensions and {other.numel()} elements."
            )
        return [other] * len(tensors)
    if is_number(other):
        return [other] * len(tensors)
    if not _is_list(other):
        raise combination(name, (tensors, other), {}, _SUMS)
    return _same_length(tensors, other)


def _same_length(tensors: Sequence[Any], other: Sequence[Any]) -> Sequence[Any]:
    if len(tensors) != len(other):
        if other and isinstance(other[0], Tensor):
            raise RuntimeError(
                "Tensor lists must have the same number of tensors, got "
                f"{len(tensors)} and {len(other)}"
            )
        raise RuntimeError(
            "Tensor list must have same number of elements as scalar list."
        )
    if any(isinstance(each, Tensor) for each in other):
        for i, each in enumerate(other):
            if not isinstance(each, Tensor):
                raise TypeError(
                    f"expected Tensor as element {i} in argument 1, but got "
                    f"{type_name(each)}"
                )
    return other


def _fits(function: str, name: str, value: Any) -> bool:
    """Whether the second operand is called so."""
    if _base(function) == "pow":
        return name == "exponent"
    if name == "scalar":
        return _is_scalar(value)
    if name == "scalars":
        return _is_list(value) and all(map(is_number, value))
    if name == "other" and not isinstance(value, Tensor):
        return _is_list(value) and any(isinstance(v, Tensor) for v in value)
    return name == "other" and _base(function) in _WITH_A_TENSOR


def _operand(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The second operand, whose name depends on what it is."""
    given = [*args, *[v for k, v in kwargs.items() if _fits(name, k, v)]]
    if len(given) != 1 or len(kwargs) + len(args) != 1:
        raise combination(name, args, kwargs, _SUMS)
    return given[0]


def _expose(name: str, function: Callable[..., Any], doc: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    public(function)


def _both(name: str, make: Callable[..., Any], *operators: Any) -> None:
    """Makes a function public, and its in-place form, from the operator's two forms."""
    plain, change = operators or (getattr(fns, name), getattr(fns, f"{name}_"))
    called = f"_foreach_{name}"
    _expose(called, make(called, plain), f"`{name}` of each tensor of a list.")
    in_place = make(f"{called}_", change)

    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        in_place(self, *args, **kwargs)
        return self

    _expose(f"{called}_", changed, f"`{name}` of each tensor of a list, in place.")


def _unary(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def each(self: Any) -> tuple[Any, ...]:
        return tuple([operator(t) for t in _tensors(name, self)])

    return each


def _base(name: str) -> str:
    return name.removeprefix("_foreach_").removesuffix("_")


def _binary(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def each(self: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        other = _operand(name, args, kwargs)
        tensors = _combined(name, self, other)
        one = _base(name) in _WITH_A_TENSOR
        pairs = zip(tensors, _others(name, tensors, other, one), strict=True)
        return tuple([operator(t, o) for t, o in pairs])

    return each


def _sum(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def each(
        self: Any, *args: Any, alpha: Any = None, **kwargs: Any
    ) -> tuple[Any, ...]:
        other = _operand(name, args, kwargs)
        tensors = _combined(name, self, other)
        # Numbers take no `alpha`, and a tensor that could be a number is one without.
        one = _base(name) in _WITH_A_TENSOR
        one = one and (alpha is not None or not _is_scalar(other))
        others = _others(name, tensors, other, one)
        number = not isinstance(others[0] if one or _is_list(other) else None, Tensor)
        if alpha is not None and number:
            raise combination(name, (self, other), {"alpha": alpha}, _SUMS)
        pairs = zip(tensors, others, strict=True)
        factor = 1 if alpha is None else alpha
        return tuple([operator(t, o, alpha=factor) for t, o in pairs])

    return each


def _lerp(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def each(
        self: Any, tensors1: Any, weight: Any = None, *, weights: Any = None
    ) -> tuple[Any, ...]:
        if (weight is None) is (weights is None):
            raise combination(name, (self, tensors1), {}, _LERP)
        if weights is not None and not _fits("lerp", "other", weights):
            raise combination(name, (self, tensors1), {"weights": weights}, _LERP)
        weight = weights if weight is None else weight
        tensors = _combined(name, self, tensors1, weight)
        ends = _matching(name, tensors, tensors1)
        if isinstance(weight, Tensor):
            if not _is_scalar(weight):
                raise combination(name, (self, tensors1, weight), {}, _LERP)
            weight = weight.item()
        weights = _others(name, tensors, weight)
        rows = zip(tensors, ends, weights, strict=True)
        return tuple([operator(t, end, w) for t, end, w in rows])

    return each


def _three(name: str, *lists: Any) -> tuple[Sequence[Any], ...]:
    """Three lists of as many tensors."""
    first, *more = lists
    if all(_is_list(each) for each in lists):
        for each in more:
            if len(each) != len(first):
                raise RuntimeError(
                    "Tensor lists must have the same number of tensors, got "
                    f"{len(first)} and {len(each)}"
                )
    return tuple(_tensors(name, each, *more) for each in lists)


def _unpacked(scalars: Tensor, count: int) -> list[Any]:
    """The elements of a vector that gives each tensor of a list its number."""
    if scalars.device.type != "cpu":
        raise RuntimeError(
            f"Expected scalars to be on CPU, got {scalars.device} instead."
        )
    if not scalars.is_contiguous():
        raise RuntimeError("Expected scalars to be contiguous.")
    if scalars.dim() != 1:
        raise RuntimeError(
            "Expected packed scalar Tensor to be of dimension 1. Got "
            f"{scalars.dim()} instead."
        )
    if scalars.numel() != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got "
            f"{scalars.numel()} instead."
        )
    return scalars.detach().tolist()


def _fused(name: str, operator: Callable[..., Any]) -> Callable[..., Any]:
    def each(
        self: Any,
        tensor1: Any,
        tensor2: Any,
        scalars: Any = None,
        *,
        value: Any = None,
    ) -> tuple[Any, ...]:
        if scalars is not None and value is not None:
            given = (self, tensor1, tensor2, scalars)
            raise combination(name, given, {"value": value}, _FUSED)
        tensors = _three(name, self, tensor1, tensor2)
        if isinstance(scalars, Tensor):
            values = _unpacked(scalars, len(self))
        else:
            given = scalars if scalars is not None else 1 if value is None else value
            values = _others(name, self, given)
        rows = zip(*tensors, values, strict=True)
        return tuple([operator(*row, value=v) for *row, v in rows])

    return each


def _bound(name: str, clamp: str) -> None:
    """The larger or smaller of two, where PyTorch takes numbers as well."""
    of_tensors, of_number = getattr(fns, name), getattr(fns, clamp)

    def plain(t: Any, other: Any) -> Any:
        # Complex tensors are refused in the words of the clamp.
        tensors = isinstance(other, Tensor) and not other.is_complex()
        return (of_tensors if tensors else of_number)(t, other)

    _both(name, _binary, plain, getattr(fns, f"{clamp}_"))


for _name in _UNARY:
    _both(_name, _unary)
for _name in ("mul", "div", "clamp_min", "clamp_max"):
    _both(_name, _binary)
_bound("maximum", "clamp_min")
_bound("minimum", "clamp_max")
for _name in ("add", "sub"):
    _both(_name, _sum)
for _name in ("addcmul", "addcdiv"):
    _both(_name, _fused)
_both("lerp", _lerp)
_both("pow", _binary)


def _foreach_pow(self: Any, exponent: Any) -> tuple[Tensor, ...]:
    """`pow` of each tensor of a list, or of one base and each tensor."""
    if _is_list(self):
        return _powers(self, exponent)
    name = "_foreach_pow"
    return tuple([fns.pow(self, e) for e in _tensors(name, exponent)])


_powers = _binary("_foreach_pow", fns.pow)
public(_foreach_pow)


@public
def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of each tensor of a list."""
    tensors = _tensors("_foreach_clone", self)
    if memory_format is None:
        return tuple([t.clone() for t in tensors])
    return tuple([t.clone(memory_format=memory_format) for t in tensors])


@public
def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Copies each tensor of `src` into the one at its place in `self`."""
    tensors = _tensors("_foreach_copy_", self, src)
    if not isinstance(non_blocking, bool):
        raise TypeError(
            "_foreach_copy_(): argument 'non_blocking' (position 3) must be bool, not "
            f"{type_name(non_blocking)}"
        )
    pairs = zip(tensors, _same_length(tensors, _tensors("", src)), strict=True)
    for target, source in pairs:
        target.copy_(source, non_blocking)
    return self


@public
def _foreach_zero_(self: Any) -> Any:
    """Sets each tensor of a list to zero."""
    for t in _tensors("_foreach_zero_", self):
        t.zero_()
    return self


@public
def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The vector norm of each tensor of a list."""
    tensors = _tensors("_foreach_norm", self)
    if isinstance(ord, (bool, complex)):
        raise RuntimeError(
            "foreach_tensor_norm_slow expects ord to be integer or float"
        )
    if isinstance(ord, (int, float)) and ord == math.inf:
        for tensor in tensors:
            if not tensor.numel():
                raise RuntimeError(
                    "_foreach_norm cannot compute the infinity norm on an empty tensor "
                    "because the operation does not have an identity"
                )
    return tuple([fns.vector_norm(t, ord, None, False, dtype=dtype) for t in tensors])


@public
def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of each tensor's absolute values to a power."""
    tensors = _tensors("_foreach_powsum", self)
    for tensor in tensors:
        dtype_of = tensor._tmeta.dtype
        if not (dtype_of.is_floating_point or dtype_of.is_complex):
            name = dtype_of.scalar_name
            raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{name}'")
    return tuple([t.abs().pow(ord).sum(dtype=dtype) for t in tensors])


@public
def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor of a list."""
    tensors = _tensors("_foreach_max", self)
    if not all(t.numel() for t in tensors):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero "
            "elements is undefined."
        )
    return tuple([t.max() for t in tensors])


@public
def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """The matrix products of two lists."""
    tensors = _tensors("_foreach_mm", self, mat2)
    if _is_list(mat2) and len(tensors) != len(mat2):
        raise RuntimeError(
            "_foreach_mm: self and mat2 must have the same number of tensors"
        )
    pairs = zip(tensors, _tensors("", mat2), strict=True)
    return tuple([fns.mm(a, b) for a, b in pairs])
