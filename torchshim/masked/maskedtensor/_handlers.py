"""What functions do with masked tensors: handlers by the functions' names.

Each gets the function and its arguments, and calls the function with the data. Names
and the order of checks are those of PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torchshim._core.dtypes import bool_
from torchshim._core.layout import strided
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._functions.composed import Composed, recompute_input
from torchshim._functions.construct import tensor
from torchshim._functions.nn_activation import softmax as _softmax
from torchshim._functions.sparse_construct import sparse_coo_tensor
from torchshim._functions.sparse_construct_compressed import sparse_csr_tensor
from torchshim._tensor import Tensor
from torchshim.masked import _ops
from torchshim.masked.maskedtensor import core
from torchshim.masked.maskedtensor.binary import BINARY_NAMES, INPLACE_BINARY_NAMES
from torchshim.masked.maskedtensor.core import (
    HANDLERS,
    MaskedTensor,
    is_masked_tensor,
    lacking,
    masked,
    matching,
    refuse,
)
from torchshim.masked.maskedtensor.reductions import REDUCE_NAMES
from torchshim.masked.maskedtensor.unary import INPLACE_UNARY_NAMES, UNARY_NAMES

# Functions that have no operator of their own in PyTorch, whose parts come here there.
_COMPOSED_UNARY = ["isfinite"]
_COMPOSED_BINARY = ["isclose"]
# Python's operators that overrides see as themselves.
_OPERATORS = {
    "__eq__": "eq",
    "__floordiv__": "floor_divide",
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_",
    "__irshift__": "bitwise_right_shift_",
    "__pow__": "pow",
    "__ipow__": "pow_",
    "__invert__": "bitwise_not",
}
_BOTH = (
    "select transpose swapaxes swapdims adjoint split t __getitem__ expand expand_as "
    "view view_as reshape reshape_as flatten ravel unflatten cat concat concatenate "
    "unsqueeze unfold fold stack chunk narrow split_with_sizes tensor_split hsplit "
    "vsplit dsplit hstack vstack dstack row_stack column_stack"
).split()
# Keywords that PyTorch's operators take by name only.
_BY_NAME = {"alpha": 1, "rounding_mode": None, "decimals": 0, "out": None}


def handles(*names: str) -> Callable[[Any], Any]:
    """Makes a function the one that these functions and methods come to."""

    def register(handler: Any) -> Any:
        for name in names:
            HANDLERS[name] = handler
            own = {**vars(Composed), **vars(MaskedTensor)}
            if hasattr(Tensor, name) and name not in own:
                setattr(MaskedTensor, name, _method(handler, name))
        return handler

    return register


def _method(handler: Any, name: str) -> Any:
    function = getattr(Tensor, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return handler(function, self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    return method


def _parts(value: Any, part: Callable[[Any], Any]) -> Any:
    """The data, or the masks, in the place of masked tensors."""
    if isinstance(value, (list, tuple)):
        return type(value)([_parts(each, part) for each in value])
    return part(value) if is_masked_tensor(value) else value


def _data(value: Any) -> Any:
    return _parts(value, lambda tensor: tensor._v)


def _of_values(function: Any, data: Any, *others: Any) -> Any:
    """`function` of the values of sparse data, or of the data themselves."""
    if data.layout is strided:
        return function(data, *others)
    if data.layout is core._COO:
        values = function(data.values(), *others)
        return sparse_coo_tensor(data.indices(), values, data.shape, is_coalesced=True)
    crow, col = data.crow_indices(), data.col_indices()
    return sparse_csr_tensor(crow, col, function(data.values(), *others), data.shape)


def _by_name(kwargs: dict[str, Any]) -> bool:
    return any(name in _BY_NAME and v != _BY_NAME[name] for name, v in kwargs.items())


handles("_recompute_input")(recompute_input)

# Element by element -------------------------------------------------------------------


def _unary(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if _by_name(kwargs):
        raise ValueError(
            "MaskedTensor unary ops require that len(kwargs) == 0. If you need support "
            "for this, please open an issue on Github."
        )
    if not is_masked_tensor(input) or any(
        isinstance(a, Tensor) for a in (*args, *kwargs.values())
    ):
        raise TypeError(
            "MaskedTensor unary ops do not support additional Tensor arguments"
        )
    found = _of_values(lambda x: function(x, *args, **kwargs), input._v)
    return _kept(function, input, found, input._mask)


def _kept(function: Any, input: Any, data: Any, mask: Any) -> Any:
    """The result: the tensor itself for what works in place."""
    name = function.__name__
    special = name.startswith("__")
    writes = name[2] == "i" and name != "__invert__" if special else name[-1] == "_"
    if writes:
        input._set_data_mask(data, mask)
    return input if writes else masked(data, mask)


def _binary(function: Any, input: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    if _by_name(kwargs):
        raise ValueError("len(kwargs) must equal 0")
    if not is_masked_tensor(input) and not isinstance(input, Tensor):
        refuse("torch._ops.aten.rsub.Scalar", lacking("rsub"))
    both = is_masked_tensor(input) and is_masked_tensor(other)
    if both and not matching(input._mask, other._mask):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an "
            "issue on Github."
        )
    a, b = _data(input), _data(other)
    if a.layout is not strided and isinstance(b, Tensor) and b.layout is a.layout:
        _same_places(a, b)
        b = b.values()
    found = _of_values(lambda x: function(x, b, *args, **kwargs), a)
    mask = input._mask if is_masked_tensor(input) else other._mask
    if found.layout is strided and mask.shape != found.shape:
        mask = mask.expand(found.shape)
    return _kept(function, input, found, mask)


def _same_places(a: Any, b: Any) -> None:
    """Raises where two sparse tensors have other indices."""
    if a.layout is core._COO:
        if not matching(a.indices(), b.indices()):
            raise ValueError(
                "sparse_coo indices must match. If you need support for this, please "
                "open an issue on Github."
            )
        if a.shape != b.shape:
            raise ValueError(
                "input1 and input2 must have the same size for binary functions."
            )
    elif not (
        matching(a.crow_indices(), b.crow_indices())
        and matching(a.col_indices(), b.col_indices())
    ):
        raise ValueError(
            "sparse_csr indices must match. If you need support for this, please open "
            "an issue on Github."
        )


for _names, _handler in (
    ([*UNARY_NAMES, *INPLACE_UNARY_NAMES, *_COMPOSED_UNARY], _unary),
    ([*BINARY_NAMES, *INPLACE_BINARY_NAMES, *_COMPOSED_BINARY], _binary),
):
    _own = [special for special, name in _OPERATORS.items() if name in _names]
    handles(*_names, *_own)(_handler)


@handles("__rdiv__", "__rtruediv__")
def _reflected_quotient(function: Any, input: Any, other: Any) -> Any:
    return _binary(fns.mul, _unary(fns.reciprocal, input), other)


@handles("dropout")
def _dropout(
    function: Any,
    input: Any,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
) -> Any:
    if training and p:
        refuse("torch._ops.aten.native_dropout.default", lacking("native_dropout"))
    return input


@handles("softmax")
def _masked_softmax(function: Any, input: Any, dim: Any = None, **kwargs: Any) -> Any:
    if not input.is_floating_point():
        raise NotImplementedError(
            f'"masked_softmax" not implemented for {input.dtype.scalar_name!r}'
        )
    hidden = input._v.masked_fill(~input._mask, -float("inf"))
    return masked(_softmax(hidden, dim, **kwargs), input._mask)


@handles("where")
def _where(function: Any, condition: Any, input: Any, other: Any) -> Any:
    if condition._composed:
        condition, input = input, condition  # as a method
    parts = [(_data(v), _mask_of(v)) for v in (input, other)]
    data, masks = zip(*parts, strict=True)
    return masked(fns.where(condition, *data), fns.where(condition, *masks))


def _mask_of(value: Any) -> Any:
    """Where a value counts: everywhere, if it is not masked."""
    if is_masked_tensor(value):
        return value._mask
    return fns.ones_like(value).bool() if isinstance(value, Tensor) else True


# The arrangement ----------------------------------------------------------------------


@handles(*_BOTH)
def _passed(function: Any, *args: Any, **kwargs: Any) -> Any:
    def applied(part: Callable[[Any], Any]) -> Any:
        given = {name: _parts(value, part) for name, value in kwargs.items()}
        return function(*_parts(args, part), **given)

    return _joined(applied(lambda t: t._v), applied(lambda t: t._mask))


def _joined(data: Any, mask: Any) -> Any:
    if isinstance(data, (list, tuple)):
        pairs = zip(data, mask, strict=True)
        return type(data)([_joined(*pair) for pair in pairs])
    return core.checked(data, mask)


def _attribute(name: str) -> property:
    def transposed(self: Any) -> Any:
        return masked(getattr(self._v, name), getattr(self._mask, name))

    return property(transposed)


for _name in ("mT", "mH"):
    setattr(MaskedTensor, _name, _attribute(_name))


def _permuted(self: Any) -> Any:
    refuse("torch._ops.aten.permute.default", lacking("permute"))


MaskedTensor.T = property(_permuted)


@handles("is_contiguous")
def _is_contiguous(function: Any, input: Any, **kwargs: Any) -> bool:
    if input.is_sparse:
        raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
    return input._v.is_contiguous(**kwargs)


@handles("contiguous")
def _contiguous(function: Any, input: Any, **kwargs: Any) -> Any:
    if _is_contiguous(function, input, **kwargs):
        return masked(input._v, input._mask)
    return masked(input._v.contiguous(**kwargs), input._mask.contiguous(**kwargs))


@handles("to_dense")
def _to_dense(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if input.layout is strided:
        return input
    return masked(input._v.to_dense(), input._mask.to_dense())


@handles("to_sparse", "to_sparse_coo")
def _to_sparse(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if input.is_sparse_coo():
        return input
    dense = _to_dense(function, input)
    mask = dense._mask.to_sparse_coo().coalesce()
    return masked(dense._v.sparse_mask(mask), mask)


@handles("to_sparse_csr")
def _to_sparse_csr(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    if input.ndim != 2:
        raise ValueError(
            "Only 2D tensors can be converted to the SparseCsr layout but got shape: "
            f"{input.shape}"
        )
    if input.is_sparse_csr():
        return input
    dense = _to_dense(function, input)
    mask = dense._mask.to_sparse_csr()
    return masked(dense._v.sparse_mask(mask), mask)


# Copies -------------------------------------------------------------------------------


@handles("clone", "detach", "ones_like")
def _of_data(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    data = function(input._v, *args, **kwargs)
    copied = data.clone() if function.__name__ == "detach" else data
    return masked(copied, input._mask.clone())


@handles(
    *("to", "type", "type_as", "cpu", "cuda", "xpu", "float", "double", "half", "bool"),
    *("char", "short", "int", "long"),
)
def _converted(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    data = function(input._v, *_data(args), **kwargs)
    if data is input._v or isinstance(data, str):
        return input if data is input._v else data
    return core.checked(data, input._mask.to(data.device))


@handles("copy_")
def _copy(function: Any, input: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    function(input._v, _data(source), *args, **kwargs)
    return input


@handles("is_same_size")
def _is_same_size(function: Any, input: Any, other: Any) -> bool:
    return input.shape == other.shape


@handles("_is_any_true")
def _is_any_true(function: Any, input: Any) -> Any:
    called = "aten._is_any_true"
    if input.dtype is not bool_:
        raise ValueError(f"__torch_dispatch__, {called}: expected a boolean tensor")
    if input.is_sparse:
        raise ValueError(f"MaskedTensors with sparse data do not have {called}")
    return MaskedTensor(function(input._v & input._mask), tensor(True))


# Reductions ---------------------------------------------------------------------------


@handles(*REDUCE_NAMES)
def _reduced(function: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    name = function.__name__
    if name == "norm":  # PyTorch's method hands `p` on, which its handler does not know
        kwargs["p"] = "fro"
    elif not input.is_sparse:
        with untracked():
            function(input._v, *args, **kwargs)  # which refuses wrong calls
    if not args and not kwargs:
        return _reduced_whole(name, input)
    return _reduced_along(function, *_reduction(input, *args, **kwargs))


def _reduction(
    input: Any, dim: Any, keepdim: bool = False, dtype: Any = None
) -> tuple[Any, Any, bool, Any]:
    return input, dim, keepdim, dtype


_reduction.__name__ = _reduction.__qualname__ = "_reduce_dim_args"


def _reduced_whole(name: str, input: Any) -> Any:
    data, mask = input._v, input._mask
    if input.is_sparse:
        data, mask = data.values(), mask.values()
    if name == "all":
        found = data.masked_fill(~mask, True).all()
    else:
        found = getattr(_ops, name)(data, mask=mask)
    if name in ("argmin", "argmax") and input.is_sparse_coo():
        # (PyTorch looks among the indices of the first dimensions for it.)
        at = input._v.indices()[:, found.long()]
        steps = [math.prod(input.shape[i + 1 :]) for i in range(input.ndim)]
        found = (at * tensor(steps)).sum().float()
    return core.checked(found, mask.any())


def _reduced_along(
    function: Any, input: Any, dim: Any, keepdim: bool, dtype: Any
) -> Any:
    name = function.__name__
    if input.is_sparse:
        reason = f"The sparse version of {name} is not implemented in reductions.\n"
        refuse(f"torch.Tensor.{name}", reason + core._ASK, "function")
    data, mask = input._v, input._mask
    if name == "all":
        found = data.masked_fill(~mask, True).all(dim=dim, keepdim=keepdim)
    else:
        options = {"keepdim": keepdim, "dtype": dtype, "mask": mask}
        found = getattr(_ops, name)(data, dim, **options)
    for each in sorted((dim,) if isinstance(dim, int) else dim, reverse=True):
        mask = mask.any(each, keepdim)
    return core.checked(found, mask)
